package command

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"starling/terms/rules"
)

// coder writes values to data, or reads them from it: one function per type says both, so that they cannot differ.
// Numbers are varints in their shortest form, texts are a length and UTF-8, lists are a length and their elements.
type coder struct {
	writing bool
	// in is the number of the rules by which is read: what a field may hold is a question to them.
	in rules.Number
	// version is that of the command that is coded: what a field was added by.
	version uint16
	data    []byte
	// failure is the first thing wrong with what is read.
	failure string
}

func (c *coder) fail(format string, args ...any) {
	if c.failure == "" {
		c.failure = fmt.Sprintf(format, args...)
	}
	c.data = nil
}

func (c *coder) number(v *uint64, most uint64) {
	if c.writing {
		c.data = binary.AppendUvarint(c.data, *v)
		return
	}
	value, n := binary.Uvarint(c.data)
	switch {
	case n <= 0:
		c.fail("ends within a number")
	case n > 1 && c.data[n-1] == 0:
		c.fail("holds a number that is not in its shortest form")
	case value > most:
		c.fail("holds %d where at most %d is allowed", value, most)
	default:
		*v = value
		c.data = c.data[n:]
	}
}

// integer codes a field of any unsigned type, or of a signed one that is never negative.
func integer[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int64](c *coder, v *T, most uint64) {
	wide := uint64(*v)
	c.number(&wide, most)
	if !c.writing {
		*v = T(wide)
	}
}

// signed codes a 32-bit integer that may be negative.
func (c *coder) signed(v *int32) {
	zigzag := uint64(uint32(*v<<1) ^ uint32(*v>>31))
	c.number(&zigzag, 1<<32-1)
	if !c.writing {
		*v = int32(uint32(zigzag)>>1) ^ -int32(zigzag&1)
	}
}

func text[T ~string](c *coder, v *T, most int) {
	size := uint64(len(*v))
	c.number(&size, uint64(most))
	switch {
	case c.writing:
		c.data = append(c.data, *v...)
	case c.failure != "":
	case size > uint64(len(c.data)):
		c.fail("ends within a text")
	case !utf8.Valid(c.data[:size]):
		c.fail("holds a text that is no UTF-8")
	default:
		*v = T(c.data[:size])
		c.data = c.data[size:]
	}
}

// list codes a list of at most most elements, each at least one byte long.
func list[T any](c *coder, v *[]T, most int, element func(*coder, *T)) {
	size := uint64(len(*v))
	c.number(&size, uint64(most))
	if !c.writing {
		if size > uint64(len(c.data)) {
			c.fail("ends within a list")
		}
		if c.failure != "" || size == 0 {
			return
		}
		*v = make([]T, size)
	}
	for i := range *v {
		element(c, &(*v)[i])
		if c.failure != "" {
			return
		}
	}
}
