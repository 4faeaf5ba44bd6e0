package handover

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"starling/driver"
	"starling/driver/fake"
	"starling/replica/reaction"
	"starling/terms"
)

// TestObtain looks for outputs that cannot be had.
func TestObtain(t *testing.T) {
	m := fake.NewMachine(nil)
	m.Volumes = t.TempDir()
	lost := 0
	o := New(Config{Node: "b", Driver: fake.Open(m), Lost: func(terms.AllocationID) { lost++ },
		Fetch: func(context.Context, string, terms.OutputSet) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(`{"files":[{"path":"text","bytes":3,"sha256":"00"}]}` + "\nabc")), nil
		}})
	for _, c := range []struct {
		in    reaction.Input
		user  string
		want  string
		later bool
	}{
		{reaction.Input{Node: "b"}, "", "not there any more", true},
		{reaction.Input{Node: "a"}, "", "not in the cluster now", true},
		{reaction.Input{Node: "a", Address: "a"}, "", "its digest is", true},
		{reaction.Input{Node: "a", User: "x"}, "y", `belongs to the user "x"`, false},
	} {
		_, err := o.obtain(t.Context(), &c.in, c.user, func() {})
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrLater) != c.later {
			t.Errorf("%+v: got %v, want %q", c.in, err, c.want)
		}
	}
	if lost != 1 {
		t.Errorf("got %d lost outputs, want that of this node", lost)
	}
	task := driver.Task{}
	if err := o.Prepare(t.Context(), &task, &reaction.Handover{Problem: "x has not succeeded"}, nil); !errors.Is(err,
		ErrLater) {
		t.Errorf("got %v", err)
	}
}

// TestGive passes files on to another account, as a machine does whose tasks do not run as root.
func TestGive(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	dir, like := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "deep", "file")
	err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600), os.Chown(like, 65534, 65534),
		give(dir, like))
	info, missing := os.Lstat(file)
	if err = errors.Join(err, missing); err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 65534 || owner.Gid != 65534 {
		t.Errorf("the file belongs to %d:%d, want 65534", owner.Uid, owner.Gid)
	}
}
