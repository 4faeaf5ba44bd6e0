package api

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// strictJSON is JSON with the field names of the description. It refuses fields that it does not know: a misspelt
// field that is passed over is a job that runs elsewhere or otherwise than its author meant.
type strictJSON struct{ name string }

// Name returns the codec's part of a content type.
func (c strictJSON) Name() string { return c.name }

// Marshal writes a message.
func (c strictJSON) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", message)
	}
	return marshalJSON(m)
}

// Unmarshal reads a message.
func (c strictJSON) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	switch {
	case !ok:
		return fmt.Errorf("%T is no message", message)
	case len(data) == 0:
		return errors.New("the body is empty: send a JSON object, at least {}")
	}
	if err := protojson.Unmarshal(data, m); err != nil {
		return fmt.Errorf("the body is no %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return nil
}

// marshalJSON writes a message with all fields that are told, zeroes included, so that programs find them.
func marshalJSON(m proto.Message) ([]byte, error) {
	return protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(m)
}
