package main

import (
	"testing"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{counted(1, "job"), "1 job"}, {counted(uint32(3), "job"), "3 jobs"}, {dash(""), "-"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
