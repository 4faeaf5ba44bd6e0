// Package codec writes values as bytes and reads them back: one function for each type says both, so that they cannot
// differ. Numbers are varints in their shortest form, texts are a length and UTF-8, lists are a length and their
// elements. Equal values have equal bytes, and only they.
package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"

	"starling/terms/rules"
)

// Coder writes values to Data, or reads them from it.
type Coder struct {
	Writing bool
	// In is the number of the rules by which is read: what a field may hold is a question to them.
	In rules.Number
	// Version is that of what is coded: what a field was added by.
	Version uint16
	Data    []byte
	// measures tells that nothing is written: what is coded takes size bytes, and some tells that any of them is not zero.
	measures, some bool
	size           int
	// Failure is the first thing wrong with what is read.
	Failure string
}

// Newest is a version in which every field is coded.
const Newest = math.MaxUint16

// Fail notes what is wrong with what is read. Nothing is read after it.
func (c *Coder) Fail(format string, args ...any) {
	if c.Failure == "" {
		c.Failure = fmt.Sprintf(format, args...)
	}
	c.Data = nil
}

// Number codes a number of at most most.
func (c *Coder) Number(v *uint64, most uint64) {
	switch {
	case c.measures:
		c.size += (bits.Len64(*v|1) + 6) / 7 // a byte for 7 bits
		c.some = c.some || *v != 0
		return
	case c.Writing:
		c.Data = binary.AppendUvarint(c.Data, *v)
		return
	}
	value, n := binary.Uvarint(c.Data)
	switch {
	case n <= 0:
		c.Fail("ends within a number")
	case n > 1 && c.Data[n-1] == 0:
		c.Fail("holds a number that is not in its shortest form")
	case value > most:
		c.Fail("holds %d where at most %d is allowed", value, most)
	default:
		*v = value
		c.Data = c.Data[n:]
	}
}

// Signed codes a 32-bit integer that may be negative.
func (c *Coder) Signed(v *int32) {
	zigzag := uint64(uint32(*v<<1) ^ uint32(*v>>31))
	c.Number(&zigzag, math.MaxUint32)
	if !c.Writing {
		*v = int32(uint32(zigzag)>>1) ^ -int32(zigzag&1)
	}
}

// Integer codes a field of any unsigned type, or of a signed one that is never negative.
func Integer[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int64](c *Coder, v *T, most uint64) {
	wide := uint64(*v)
	c.Number(&wide, most)
	if !c.Writing {
		*v = T(wide)
	}
}

// Uint32s codes numbers of 32 bits, one after the other.
func Uint32s(c *Coder, all ...*uint32) {
	for _, v := range all {
		Integer(c, v, math.MaxUint32)
	}
}

// Flags codes truths, one after the other.
func Flags(c *Coder, all ...*bool) {
	for _, v := range all {
		number := uint64(0)
		if *v {
			number = 1
		}
		c.Number(&number, 1)
		if !c.Writing {
			*v = number == 1
		}
	}
}

// Text codes a text of at most most bytes.
func Text[T ~string](c *Coder, v *T, most int) {
	size := uint64(len(*v))
	c.Number(&size, uint64(most))
	switch {
	case c.measures:
		c.size += len(*v)
	case c.Writing:
		c.Data = append(c.Data, *v...)
	case c.Failure != "":
	case size > uint64(len(c.Data)):
		c.Fail("ends within a text")
	case !utf8.Valid(c.Data[:size]):
		c.Fail("holds a text that is not UTF-8")
	default:
		*v = T(c.Data[:size])
		c.Data = c.Data[size:]
	}
}

// Texts codes a list of at most count texts, each of at most most bytes.
func Texts[T ~string](c *Coder, v *[]T, count, most int) {
	List(c, v, count, func(c *Coder, one *T) { Text(c, one, most) })
}

// List codes a list of at most most elements, each at least one byte long.
func List[T any](c *Coder, v *[]T, most int, element func(*Coder, *T)) {
	size := uint64(len(*v))
	c.Number(&size, uint64(most))
	if !c.Writing {
		if size > uint64(len(c.Data)) {
			c.Fail("ends within a list")
		}
		if c.Failure != "" || size == 0 {
			return
		}
		*v = make([]T, size)
	}
	for i := range *v {
		element(c, &(*v)[i])
		if c.Failure != "" {
			return
		}
	}
}

// Equal tells whether two values are the same in all that is coded of them.
func Equal[T any](a, b *T, code func(*Coder, *T)) bool { return Same(Writer(), a, b, code) }

// Writer returns what writes every field.
func Writer() *Coder { return &Coder{Writing: true, Version: Newest, Data: make([]byte, 0, 256)} }

// Measure returns what writes nothing and counts the bytes, of every field.
func Measure() *Coder { return &Coder{Writing: true, measures: true, Version: Newest} }

// Size returns how many bytes were counted.
func (c *Coder) Size() int { return c.size }

// Zero tells whether all that is coded of a value is zero, by what counts. Only zeros are written as nothing but zeros.
func Zero[T any](c *Coder, v *T, code func(*Coder, *T)) bool {
	c.some = false
	code(c, v)
	return !c.some
}

// Same tells what Equal does, by a writer whose data may be lost: who compares much needs only one.
func Same[T any](c *Coder, a, b *T, code func(*Coder, *T)) bool {
	c.Data = c.Data[:0]
	code(c, a)
	size := len(c.Data)
	code(c, b)
	return bytes.Equal(c.Data[:size], c.Data[size:])
}
