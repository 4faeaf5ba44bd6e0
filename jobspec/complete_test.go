package jobspec

import (
	"bytes"
	"reflect"
	"testing"

	"starling/terms"
)

// TestEveryFieldHasItsKey changes every value of drawn jobs, one at a time: of each field of a job, a task and what
// they hold some change must be seen in the file. What is written is read back as it was, and schema and reference come
// from the same tables.
func TestEveryFieldHasItsKey(t *testing.T) {
	missing := map[string]bool{}
	eachField(reflect.TypeFor[terms.Job](), func(field string) { missing[field] = true })
	generator := jobs()
	for seed := 1; seed < 4000 && len(missing) > 0; seed++ {
		spec := generator.Example(seed)
		written := Format(&spec)
		eachValue(reflect.ValueOf(&spec).Elem(), "", func(field string, v reflect.Value) {
			if !missing[field] {
				return
			}
			old := reflect.ValueOf(v.Interface())
			switch v.Kind() {
			case reflect.Bool:
				v.SetBool(!v.Bool())
			case reflect.String:
				v.SetString(v.String() + "x")
			case reflect.Int64:
				v.SetInt(v.Int() ^ 1024)
			default:
				v.SetUint(max(v.Uint(), 2) - 1)
			}
			if !bytes.Equal(Format(&spec), written) {
				delete(missing, field)
			}
			v.Set(old)
		})
	}
	for field := range missing {
		t.Errorf("field %s is missing in jobspec: no file says what it holds", field)
	}
}

// eachField visits the fields of a type, and of what it holds, that hold no others: "Task.User".
func eachField(of reflect.Type, visit func(field string)) {
	seen := map[reflect.Type]bool{}
	var each func(of reflect.Type, field string)
	each = func(of reflect.Type, field string) {
		for of.Kind() == reflect.Slice || of.Kind() == reflect.Array {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct {
			visit(field)
			return
		}
		if seen[of] {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			each(of.Field(i).Type, of.Name()+"."+of.Field(i).Name)
		}
	}
	each(of, "")
}

// eachValue visits what such fields hold in a value.
func eachValue(v reflect.Value, field string, visit func(field string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachValue(v.Index(i), field, visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			eachValue(v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name, visit)
		}
	default:
		visit(field, v)
	}
}
