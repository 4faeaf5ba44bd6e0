package tree

import (
	"testing"

	"starling/terms"
	"starling/terms/codec"
)

// TestWritingChangesNothing: a tree belongs to many values, and is written while others read it.
func TestWritingChangesNothing(t *testing.T) {
	p := &Pools{Version: 1, Specs: []terms.Pool{{Path: "a"}, {Path: "b"}}, IDs: []ID{1, 0},
		Positions: []int32{1, 0}, Hash: 7}
	p.Code(codec.Writer())
	if p.Hash != 7 {
		t.Error("its hash was made anew, and for a moment it was that of half a tree")
	}
}
