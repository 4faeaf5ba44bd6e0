package output_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"starling/driver/output"
)

var small = output.Bounds{SegmentBytes: 10, Segments: 3}

func read(t *testing.T, folder string, o output.Options) string {
	t.Helper()
	r, err := output.Open(context.Background(), folder, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSegments(t *testing.T) {
	for _, test := range []struct {
		write []string
		kept  string
		files int
	}{
		{nil, "", 0},
		{[]string{"abc"}, "abc", 1},
		{[]string{"0123456789"}, "0123456789", 1},
		{[]string{"0123456789", "a"}, "0123456789a", 2},
		{[]string{"01234567", "89abcdefghijklmnopqrst"}, "0123456789abcdefghijklmnopqrst", 3},
		{[]string{"01234567", "89abcdefghijklmnopqrstu"}, "abcdefghijklmnopqrstu", 3},
		{[]string{"0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz"}, "efghijklmnopqrstuvwxyz", 3},
	} {
		folder := t.TempDir()
		w := output.NewWriter(folder, "stdout", small)
		for _, text := range test.write {
			if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
				t.Fatalf("Write(%q): %d, %v", text, n, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := read(t, folder, output.Options{Stream: "stdout", TailBytes: -1}); got != test.kept {
			t.Errorf("%q: got %q, want %q", test.write, got, test.kept)
		}
		for tail := range len(test.kept) + 2 {
			want := test.kept[max(0, len(test.kept)-tail):]
			if got := read(t, folder, output.Options{Stream: "stdout", TailBytes: int64(tail)}); got != want {
				t.Errorf("%q, tail %d: got %q, want %q", test.write, tail, got, want)
			}
		}
		if files, _ := os.ReadDir(folder); len(files) != test.files {
			t.Errorf("%q: got the files %v, want %d", test.write, files, test.files)
		}
	}
}

// TestFollow reads in step with a writer that rotates all the time: not a byte may be lost or repeated.
func TestFollow(t *testing.T) {
	growth, err := output.WatchGrowth()
	if err != nil {
		t.Fatal(err)
	}
	defer growth.Close()
	folder, ended := t.TempDir(), make(chan struct{})
	r, err := output.Open(context.Background(), folder,
		output.Options{Stream: "stdout", TailBytes: -1, Ended: ended, Growth: growth})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()

	// Two segments are what the writer may be ahead: so much that no segment is deleted before it was read.
	var want bytes.Buffer
	ahead := make(chan struct{}, 2)
	var writing sync.WaitGroup
	writing.Go(func() {
		defer close(ended)
		w := output.NewWriter(folder, "stdout", small)
		defer w.Close()
		for i := range 2000 {
			ahead <- struct{}{}
			text := fmt.Sprintf("%07d\n", i)
			want.WriteString(text)
			w.Write([]byte(text))
		}
	})
	var got bytes.Buffer
	part := make([]byte, 8)
	for {
		n, err := io.ReadFull(r, part)
		got.Write(part[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		<-ahead
	}
	writing.Wait()
	if got.String() != want.String() {
		t.Errorf("read %d bytes that are not the %d written", got.Len(), want.Len())
	}
}

// TestFollowSkips has a reader fall behind by more than is kept.
func TestFollowSkips(t *testing.T) {
	growth, err := output.WatchGrowth()
	if err != nil {
		t.Fatal(err)
	}
	defer growth.Close()
	folder, ended := t.TempDir(), make(chan struct{})
	w := output.NewWriter(folder, "stdout", small)
	w.Write([]byte("abc"))
	r, err := output.Open(context.Background(), folder,
		output.Options{Stream: "stdout", TailBytes: -1, Ended: ended, Growth: growth})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	first := make([]byte, 1)
	if _, err := r.Read(first); err != nil || first[0] != 'a' {
		t.Fatalf("got %q, %v", first, err)
	}
	w.Write([]byte("defghij0123456789ABCDEFGHIJabcdefghij!"))
	w.Close()
	close(ended)
	rest, err := io.ReadAll(r)
	if want := "bcdefghij" + "ABCDEFGHIJabcdefghij!"; err != nil || string(rest) != want {
		t.Errorf("got %q, %v; want %q: the open segment, then the oldest kept", rest, err, want)
	}
}

// TestNoRoom has writing fail for a while.
func TestNoRoom(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "later")
	w := output.NewWriter(folder, "stderr", output.DefaultBounds())
	for _, text := range []string{"lost", " too"} {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatalf("Write: %d, %v; want no failure", n, err)
		}
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	w.Write([]byte("kept"))
	w.Close()
	want := "\n[8 bytes of output could not be written and were dropped]\nkept"
	if got := read(t, folder, output.Options{Stream: "stderr", TailBytes: -1}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
