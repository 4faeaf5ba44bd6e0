package plain_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"starling/driver/plain"
)

// TestRead reads files of all sizes around those of its pieces, and one of the kernel whose size is not known before.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, size := range []int{0, 1, 511, 512, 513, 8192, 100_000} {
		want := bytes.Repeat([]byte("x"), size)
		file, err := plain.Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(plain.Write(int(file.Fd()), want), file.Close()); err != nil {
			t.Fatal(err)
		}
		if got, err := plain.Read(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %d bytes and %v, want %d", len(got), err, size)
		}
	}
	if _, err := plain.Read(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v for a file that is not there", err)
	}
	const unsized = "/proc/self/mountinfo"
	want, err := os.ReadFile(unsized)
	if errors.Is(err, os.ErrNotExist) {
		return // this is not Linux
	}
	if got, err := plain.Read(unsized); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %q and %v, want %q", got, err, want)
	}
}

// TestRestCloses reads what is open to its end.
func TestRestCloses(t *testing.T) {
	file, err := plain.Number(os.DevNull, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Rest(file); err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Rest(file); err == nil {
		t.Error("it is open although it was read to its end")
	}
}
