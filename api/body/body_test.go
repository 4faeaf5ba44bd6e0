package body

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	starlingv1 "starling/api/v1"
)

// tasks is a job with so many tasks without a word, in the wire format.
func tasks(count int) []byte {
	field := (&starlingv1.JobSpec{}).ProtoReflect().Descriptor().Fields().ByName("tasks").Number()
	return bytes.Repeat(protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), nil), count)
}

// TestManyMessages refuses a body that is small and would be large in memory before anything of it is read.
func TestManyMessages(t *testing.T) {
	for _, c := range []struct {
		codec interface{ Unmarshal([]byte, any) error }
		body  []byte
		want  error
	}{
		{binary{}, tasks(MessagesMax), nil},
		{binary{}, tasks(MessagesMax + 1), errMany},
		{strictJSON{"json"}, []byte(`{"tasks":[` + strings.Repeat(`{},`, MessagesMax-2) + `{}]}`), nil},
		{strictJSON{"json"}, []byte(`{"tasks":[` + strings.Repeat(`{},`, MessagesMax-1) + `{}]}`), errMany},
	} {
		if err := c.codec.Unmarshal(c.body, &starlingv1.JobSpec{}); !errors.Is(err, c.want) {
			t.Errorf("%T reads %d bytes: %v, want %v", c.codec, len(c.body), err, c.want)
		}
	}
	large := tasks(1 << 21)
	if most := testing.AllocsPerRun(1, func() { _ = binary{}.Unmarshal(large, &starlingv1.JobSpec{}) }); most > 10 {
		t.Errorf("%v allocations before %d bytes are refused", most, len(large))
	}
}

// TestDeepMessages refuses what lies too deep, and takes what users nest.
func TestDeepMessages(t *testing.T) {
	for depth, want := range map[int]error{depthMax - 1: nil, depthMax: errDeep} {
		one := &starlingv1.Constraint{}
		for range depth {
			one = &starlingv1.Constraint{Any: []*starlingv1.Constraint{one}}
		}
		data, err := proto.Marshal(&starlingv1.TaskSpec{Constraints: []*starlingv1.Constraint{one}})
		if err != nil {
			t.Fatal(err)
		}
		if err := (binary{}).Unmarshal(data, &starlingv1.TaskSpec{}); !errors.Is(err, want) {
			t.Errorf("at depth %d: %v, want %v", depth, err, want)
		}
	}
}

// TestUnknownFields refuses what a newer client has asked for, wherever it stands.
func TestUnknownFields(t *testing.T) {
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1)
	spec := (&starlingv1.SubmitJobRequest{}).ProtoReflect().Descriptor().Fields().ByName("spec").Number()
	for _, c := range []struct {
		message proto.Message
		body    []byte
		of      string
	}{
		{&starlingv1.KillJobRequest{}, unknown, "KillJobRequest"},
		{&starlingv1.SubmitJobRequest{}, protowire.AppendBytes(protowire.AppendTag(nil, spec, protowire.BytesType), unknown),
			"JobSpec"},
	} {
		want := "the body has in its " + c.of + " a field 1000, which this peer does not know"
		if err := (binary{}).Unmarshal(c.body, c.message); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
