// Package body reads the bodies of requests, and writes those of answers.
package body

import (
	"bytes"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"starling/api/wire"
)

const (
	// MessagesMax bounds the messages within a request. Each takes some hundred bytes of memory once it is read, and may
	// be two bytes before.
	MessagesMax = 1 << 16
	// depthMax bounds how deep they lie in each other.
	depthMax = 100
)

// Codecs are those of the API, as an option of its handler.
func Codecs() connect.HandlerOption {
	return connect.WithHandlerOptions(connect.WithCodec(strictJSON{"json"}),
		connect.WithCodec(strictJSON{"json; charset=utf-8"}), connect.WithCodec(binary{}))
}

// strictJSON is JSON with the field names of the description. It refuses fields that it does not know: a misspelt
// field that is passed over is a job that runs elsewhere or otherwise than its author meant.
type strictJSON struct{ name string }

// Name returns the codec's part of a content type.
func (c strictJSON) Name() string { return c.name }

// Marshal writes a message.
func (c strictJSON) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a message", message)
	}
	return wire.JSON(m)
}

// Unmarshal reads a message.
func (c strictJSON) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	switch {
	case !ok:
		return fmt.Errorf("%T is not a message", message)
	case len(data) == 0:
		return errors.New("the body is empty: send a JSON object, at least {}")
	case bytes.Count(data, []byte("{")) > MessagesMax:
		return errMany
	}
	if err := protojson.Unmarshal(data, m); err != nil {
		return fmt.Errorf("the body is not a %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return nil
}

// binary is the wire format of protocol buffers. It refuses unknown fields, too.
type binary struct{}

// Name returns the codec's part of a content type.
func (binary) Name() string { return "proto" }

// Marshal writes a message.
func (binary) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a message", message)
	}
	return proto.Marshal(m)
}

// Unmarshal reads a message.
func (binary) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a message", message)
	}
	left := MessagesMax
	if err := count(data, m.ProtoReflect().Descriptor(), depthMax, &left); err != nil {
		return err
	}
	if err := proto.Unmarshal(data, m); err != nil {
		return fmt.Errorf("the body is not a %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return nil
}

var (
	errMany = fmt.Errorf("the body has more than %d messages in it", MessagesMax)
	errDeep = fmt.Errorf("messages of the body lie in each other more than %d deep", depthMax)
)

// count takes the messages within a message off those that are left, and refuses what has a field that this program
// does not know: who asked would believe that it was heeded. What is wrong otherwise the reader says.
func count(data []byte, d protoreflect.MessageDescriptor, depth int, left *int) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return nil
		}
		field := d.Fields().ByNumber(number)
		if field == nil {
			return fmt.Errorf("the body has in its %s a field %d, which this peer does not know, as it runs an older program than the "+
				"client: ask another peer, or update this one", d.Name(), number)
		}
		if kind == protowire.BytesType && field.Message() != nil {
			within, _ := protowire.ConsumeBytes(data)
			if *left--; *left < 0 {
				return errMany
			}
			if depth == 0 {
				return errDeep
			}
			if err := count(within, field.Message(), depth-1, left); err != nil {
				return err
			}
		}
		data = data[n:]
	}
	return nil
}
