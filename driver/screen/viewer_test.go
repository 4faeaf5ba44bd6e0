package screen

import (
	"bytes"
	"encoding/gob"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

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

// TestWhoHasGoneSeesNothing has somebody type more than a program reads, and vanish.
func TestWhoHasGoneSeesNothing(t *testing.T) {
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	unread, input := io.Pipe()
	defer unread.Close()
	k := &Keeper{first: make(chan driver.Size, 1), resized: make(chan driver.Size), over: make(chan struct{}),
		typed: make(chan []byte), input: input}
	defer k.close()
	go k.writeInput()
	here, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	to := gob.NewEncoder(here)
	if err := to.Encode(message{}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := to.Encode(message{Data: []byte("typed")}); err != nil {
			t.Fatal(err)
		}
	}
	at, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		k.serve(at)
		close(served)
	}()
	<-k.first
	here.Close()
	select {
	case <-served:
	case <-time.After(10 * time.Second):
		t.Fatal("it counts as attached still")
	}
	if k.viewer != nil || k.left.IsZero() {
		t.Error("it is not known when it went")
	}
}
