package difference

import (
	"fmt"
	"reflect"

	starlingv1 "starling/api/v1"
	"starling/cluster"
)

// factsMax bounds the facts that are told.
const factsMax = 20

// Between tells how a value differs from another of the same index, in what people see of it.
func Between(a, b *cluster.State) []*starlingv1.Changed {
	d := &moments{before: a, after: b, answer: &starlingv1.DiffResponse{}}
	d.nodes()
	d.pools()
	d.jobs()
	return d.answer.GetChanges()
}

// Facts names the facts in which a value differs from another as the code names them, such as "Jobs[3].Version: 2, not
// 1". They are at most factsMax, with a last line that says so if there are more.
func Facts(a, b *cluster.State) []string {
	f := &found{}
	f.compare("", reflect.ValueOf(*a.Facts()), reflect.ValueOf(*b.Facts()))
	if f.more > 0 {
		f.lines = append(f.lines, fmt.Sprintf("and %d more", f.more))
	}
	return f.lines
}

// found are the facts that differ.
type found struct {
	lines []string
	more  int
}

func (f *found) add(path string, a, b any) {
	if len(f.lines) == factsMax {
		f.more++
		return
	}
	f.lines = append(f.lines, fmt.Sprintf("%s: %v, not %v", path, a, b))
}

// compare goes down to what has no parts. Lists of other lengths are not compared further.
func (f *found) compare(path string, a, b reflect.Value) {
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			if a.IsNil() != b.IsNil() {
				f.add(path, presence(a), presence(b))
			}
			return
		}
		f.compare(path, a.Elem(), b.Elem())
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			f.add(path, fmt.Sprint(a.Len(), " of them"), b.Len())
			return
		}
		for i := range a.Len() {
			f.compare(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i))
		}
	case reflect.Struct:
		for i := range a.NumField() {
			name := a.Type().Field(i).Name
			if path != "" {
				name = path + "." + name
			}
			f.compare(name, a.Field(i), b.Field(i))
		}
	default:
		if x, y := fmt.Sprint(a), fmt.Sprint(b); x != y {
			f.add(path, x, y)
		}
	}
}

// presence says whether there is something.
func presence(v reflect.Value) string {
	if v.IsNil() {
		return "none"
	}
	return "one"
}
