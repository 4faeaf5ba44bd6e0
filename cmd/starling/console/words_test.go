package console

import (
	"testing"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Counted(1, "job"), "1 job"}, {Counted(uint32(3), "job"), "3 jobs"}, {Dash(""), "-"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
