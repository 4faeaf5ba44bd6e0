package handover

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"starling/driver"
	"starling/driver/fake"
	"starling/driver/volume"
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
		want  string
		later bool
	}{
		{reaction.Input{Node: "b"}, "not there any more", true},
		{reaction.Input{Node: "a"}, "not in the cluster now", true},
		{reaction.Input{Node: "a", Address: "a"}, "its digest is", true},
	} {
		_, err := o.obtain(t.Context(), &c.in, func() {})
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

// TestUsersDiffer has instances read what belongs to others.
func TestUsersDiffer(t *testing.T) {
	m := fake.NewMachine(nil)
	m.Volumes = t.TempDir()
	o := New(Config{Node: "a", Driver: fake.Open(m)})
	own := driver.OwnUser("words")
	for _, c := range []struct {
		in        reaction.Input
		user      string
		container *driver.Container
		want      string
	}{
		{reaction.Input{User: "x"}, "y", nil, `belongs to the user "x", and this instance runs as the user "y"`},
		{reaction.Input{User: own}, "", &driver.Container{}, "to the job's own user, and this instance runs as the user of its image"},
		{reaction.Input{Image: true}, own, nil, "to the user of its image, and this instance runs as the job's own user"},
		{reaction.Input{}, "x", nil, `to the agent's own user, and this instance runs as the user "x"`},
	} {
		task := driver.Task{Container: c.container}
		h := reaction.Handover{User: c.user, Inputs: []reaction.Input{c.in}}
		err := o.Prepare(t.Context(), &task, &h, func(string) {})
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrLater) {
			t.Errorf("%+v: got %v, want %q", c.in, err, c.want)
		}
	}
}

// kept is a fake driver that keeps its volumes as drivers do that run tasks.
type kept struct {
	driver.Driver
	volumes *volume.Keeper
}

func (k kept) MakeVolume(v driver.Volume) (string, error) { return k.volumes.MakeVolume(v) }

// TestOutputStaysItsInstances measures and seals an output, and passes it on, where its instance has a user of its own.
func TestOutputStaysItsInstances(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	o := New(Config{Node: "a", Driver: kept{fake.Open(fake.NewMachine(nil)), &volume.Keeper{Dir: dir}}})
	slot := terms.SlotName{Job: "words", Task: "count"}
	made := terms.OutputSet{Allocation: terms.AllocationID{Slot: slot, Order: 7}, Job: 3}
	task, user := driver.Task{}, "1234:1234" // as an image has it, and no account of this machine
	if err := o.Prepare(t.Context(), &task, &reaction.Handover{Output: made, User: user}, nil); err != nil {
		t.Fatal(err)
	}
	path, err := volume.Make(dir, task.Volumes[0], &syscall.Credential{Uid: 1234, Gid: 1234}) // as a start does
	if err = errors.Join(err, o.Grown(t.Context(), made), o.Seal(t.Context(), made)); err != nil {
		t.Fatal(err)
	}
	next := reaction.Handover{Output: terms.OutputSet{Allocation: made.Allocation, Job: 4}, User: user,
		Inputs: []reaction.Input{{Output: made, User: user, Node: "a"}}}
	if err := o.Prepare(t.Context(), &task, &next, nil); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Sys().(*syscall.Stat_t).Uid; got != 1234 {
		t.Errorf("the output belongs to the user %d, want 1234 still", got)
	}
}
