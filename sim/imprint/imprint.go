// Package imprint hashes everything that can be reached from a value, down to where it lies in memory: facts, what is
// kept lazily beside them, and the room behind the end of slices, which a careless append writes to. Tests take it
// before and after what must not write.
package imprint

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Of returns the imprint of what a pointer leads to. It is only good for comparing with another one of the same pointer
// in the same process, and what is hashed must not change meanwhile.
func Of(pointer any) uint64 {
	p := &press{sum: 14695981039346656037, seen: map[place]bool{}}
	p.press(reflect.ValueOf(pointer))
	return p.sum
}

// press takes the imprint.
type press struct {
	sum uint64
	// seen are the places that were hashed, so that cycles end.
	seen map[place]bool
}

type place struct {
	at   unsafe.Pointer
	kind reflect.Type
	many int
}

func (p *press) word(w uint64) {
	p.sum = (p.sum ^ w) * 1099511628211
	p.sum ^= p.sum >> 29
}

// enters notes that the walk is at a place; false if it was there before.
func (p *press) enters(v reflect.Value, many int) bool {
	p.word(uint64(v.Pointer()))
	at := place{v.UnsafePointer(), v.Type(), many}
	old := p.seen[at]
	p.seen[at] = true
	return !old
}

func (p *press) press(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if p.enters(v, 1) && !v.IsNil() {
			p.press(v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() {
			p.press(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			p.press(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			p.press(v.Index(i))
		}
	case reflect.Slice:
		p.word(uint64(v.Len()))
		if p.enters(v, v.Cap()) {
			all := v.Slice(0, v.Cap())
			for i := range all.Len() {
				p.press(all.Index(i))
			}
		}
	default:
		p.leaf(v)
	}
}

// leaf hashes what leads nowhere.
func (p *press) leaf(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Bool && v.Bool():
		p.word(1)
	case v.Kind() == reflect.Bool:
		p.word(2)
	case v.CanInt():
		p.word(uint64(v.Int()))
	case v.CanUint():
		p.word(v.Uint())
	case v.Kind() == reflect.Map && v.IsNil():
		p.word(3)
	case v.Kind() == reflect.Func:
		p.word(uint64(v.Pointer()))
	case v.Kind() == reflect.String:
		p.word(uint64(v.Len()))
		for _, b := range []byte(v.String()) {
			p.word(uint64(b))
		}
	default:
		panic(fmt.Sprintf("imprint: a %s is not hashed yet", v.Type()))
	}
}
