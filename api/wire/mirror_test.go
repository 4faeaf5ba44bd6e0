package wire

import (
	"reflect"
	"testing"

	starlingv1 "starling/api/v1"
	"starling/terms"
)

// TestEveryFieldHasItsCounterpart wants each field of jobs, tasks and what they hold in messages, and no other there.
func TestEveryFieldHasItsCounterpart(t *testing.T) {
	missing := missingFields(reflect.TypeFor[terms.Job](), reflect.TypeFor[starlingv1.JobSpec](), map[reflect.Type]bool{})
	for _, words := range append(missing, missingFields(reflect.TypeFor[terms.DeviceOffer](),
		reflect.TypeFor[starlingv1.Device](), map[reflect.Type]bool{})...) {
		t.Error(words)
	}
}

// TestMissingFields compares structures that lack something, each in another way.
func TestMissingFields(t *testing.T) {
	type part struct{ Kept, Only uint32 }
	type message struct{ Kept, Other uint32 }
	got := missingFields(reflect.TypeFor[struct{ Parts []part }](), reflect.TypeFor[struct{ Parts []*message }](),
		map[reflect.Type]bool{})
	want := []string{"field Only of part is missing in message message (api/v1/starling.proto)",
		"field Other of message message has no counterpart in part (package terms)"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func missingFields(v, m reflect.Type, seen map[reflect.Type]bool) (missing []string) {
	for v.Kind() == reflect.Slice {
		v, m = v.Elem(), m.Elem()
	}
	if m.Kind() == reflect.Pointer {
		m = m.Elem()
	}
	if v.Kind() != reflect.Struct || m.Kind() != reflect.Struct || seen[v] { // a volume is a name there
		return nil
	}
	seen[v] = true
	counterparts := map[string]bool{}
	for i := range v.NumField() {
		name := counterpart(v.Field(i).Name)
		counterparts[name] = true
		field, ok := m.FieldByName(name)
		if !ok {
			missing = append(missing, "field "+v.Field(i).Name+" of "+v.Name()+" is missing in message "+m.Name()+
				" (api/v1/starling.proto)")
			continue
		}
		missing = append(missing, missingFields(v.Field(i).Type, field.Type, seen)...)
	}
	for i := range m.NumField() {
		if field := m.Field(i); field.IsExported() && !counterparts[field.Name] {
			missing = append(missing, "field "+field.Name+" of message "+m.Name()+" has no counterpart in "+v.Name()+
				" (package terms)")
		}
	}
	return missing
}
