package screen

import (
	"bytes"
	"encoding/gob"
	"io"
	"net"
	"testing"

	"starling/driver"
)

// Who is being shown something is told, too, that another takes its place.
func TestViewerIsToldThatItIsReplaced(t *testing.T) {
	k := &Keeper{first: make(chan driver.Size, 1), resized: make(chan driver.Size), over: make(chan struct{})}
	k.close() // nothing is to be resized
	at, here := net.Pipe()
	shown := &viewer{conn: at, to: gob.NewEncoder(at)}
	k.viewer, k.began = shown, true
	go func() { _, _ = k.Write([]byte("half of it")) }()
	first := make([]byte, 1)
	if _, err := io.ReadFull(here, first); err != nil {
		t.Fatal(err)
	}
	next, _ := net.Pipe()
	next.Close()
	k.show(&viewer{conn: next, to: gob.NewEncoder(next)}, driver.Size{})
	from := gob.NewDecoder(io.MultiReader(bytes.NewReader(first), here))
	var m, taken message
	if err := from.Decode(&m); err != nil || string(m.Data) != "half of it" {
		t.Fatalf("got %q, %v of what was being shown", m.Data, err)
	}
	if err := from.Decode(&taken); err != nil || !taken.Taken {
		t.Fatalf("got %+v, %v, want that another has attached", taken, err)
	}
}
