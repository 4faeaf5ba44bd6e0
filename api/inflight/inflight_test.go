package inflight

import (
	"errors"
	"testing"
)

func TestARequestCountsUntilItEnds(t *testing.T) {
	var c Counter
	alice, all := Share{"user alice", 2, 2 << 20}, Share{"all users together", 3, 4 << 20}
	begin := func(s Share, want string) *Request {
		t.Helper()
		r, err := c.Begin(s, all)
		if got := textOf(t, err); got != want {
			t.Errorf("%s gets %q, want %q", s.Key, got, want)
		}
		return r
	}
	first, _ := begin(alice, ""), begin(alice, "")
	begin(alice, "too many requests of user alice are open at this peer: it answers 2 at a time; close some, or wait")
	bob := begin(Share{"user bob", 2, 4 << 20}, "")
	begin(Share{"user carol", 2, 1 << 20},
		"too many requests of all users together are open at this peer: it answers 3 at a time; close some, or wait")
	if got := textOf(t, first.Take(2<<20)); got != "" {
		t.Errorf("as many bytes as there may be get %q", got)
	}
	want := "too many requests of user alice are open at this peer: it takes 2 MiB at a time; send less, or wait"
	if got := textOf(t, first.Take(1)); got != want {
		t.Errorf("one more gets %q, want %q", got, want)
	}
	want = "too many requests of all users together are open at this peer: it takes 4 MiB at a time; send less, or wait"
	if got := textOf(t, bob.Take(3<<20)); got != want {
		t.Errorf("bytes of another get %q, want %q", got, want)
	}
	first.End()
	if got := textOf(t, bob.Take(3<<20)); got != "" {
		t.Errorf("after a request has ended, bytes of another get %q", got)
	}
	begin(alice, "").End()
	bob.End()
	if len(c.used) != 2 || c.used["user alice"] != (use{requests: 1}) || c.used[all.Key] != (use{requests: 1}) {
		t.Errorf("one request of alice is left, and counts as %v", c.used)
	}
}

func textOf(t *testing.T, err error) string {
	if err == nil {
		return ""
	}
	if !errors.Is(err, ErrFull) {
		t.Errorf("%v is not ErrFull", err)
	}
	return err.Error()
}

func TestNoRequestHasNoBounds(t *testing.T) {
	var none *Request
	if err := none.Take(1 << 30); err != nil {
		t.Error(err)
	}
}
