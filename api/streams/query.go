package streams

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
)

// read reads the parameters of a request into its message, and returns the id of the last event that the reader has
// seen, nil if it says none. A parameter that is not known is refused: passed over it would be another question.
func read(r *http.Request, path string, into proto.Message) (last *uint64, failure *wire.Failure) {
	if err := door.Check(r.Context(), path); err != nil {
		return nil, wire.FailureOf(err)
	}
	m := into.ProtoReflect()
	fields := m.Descriptor().Fields()
	for name, values := range r.URL.Query() {
		field := fields.ByName(protoreflect.Name(name))
		if field == nil {
			return nil, invalid("unknown parameter %q: there are %s", name, names(fields))
		}
		if reason := set(m, field, values); reason != "" {
			return nil, invalid("%s must be %s, is %q", name, reason, strings.Join(values, ","))
		}
	}
	if text := r.Header.Get(lastEventID); text != "" {
		id, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return nil, invalid("%s must be the id of an event, is %q", lastEventID, text)
		}
		last = &id
	}
	return last, nil
}

func invalid(format string, args ...any) *wire.Failure {
	return &wire.Failure{Code: wire.Invalid, Reason: fmt.Sprintf(format, args...)}
}

func names(fields protoreflect.FieldDescriptors) string {
	var all []string
	for i := range fields.Len() {
		all = append(all, string(fields.Get(i).Name()))
	}
	return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}

// set gives a field what stands in a query, and says what it must be if it is not that.
func set(m protoreflect.Message, field protoreflect.FieldDescriptor, values []string) (must string) {
	if field.IsList() {
		list := m.Mutable(field).List()
		list.Truncate(0)
		for _, text := range strings.Split(strings.Join(values, ","), ",") {
			value, must := valueOf(field, text)
			if must != "" {
				return must
			}
			list.Append(value)
		}
		return ""
	}
	if len(values) > 1 {
		return "given once"
	}
	value, must := valueOf(field, values[0])
	if must == "" {
		m.Set(field, value)
	}
	return must
}

// valueOf reads one value of a field.
func valueOf(field protoreflect.FieldDescriptor, text string) (value protoreflect.Value, must string) {
	switch field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text), ""
	case protoreflect.BoolKind:
		if text != "true" && text != "false" {
			return value, "true or false"
		}
		return protoreflect.ValueOfBool(text == "true"), ""
	case protoreflect.Uint32Kind:
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return value, "a number such as 100"
		}
		return protoreflect.ValueOfUint32(uint32(n)), ""
	case protoreflect.Uint64Kind:
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return value, "an index of the journal, such as 4711"
		}
		return protoreflect.ValueOfUint64(n), ""
	}
	name, of, found := strings.Cut(text, "=")
	if !found || name == "" { // the one kind of message that there is
		return value, "NAME=VALUE"
	}
	return protoreflect.ValueOfMessage((&starlingv1.Variable{Name: name, Value: of}).ProtoReflect()), ""
}
