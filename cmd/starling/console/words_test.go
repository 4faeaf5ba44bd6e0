package console

import (
	"testing"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Counted(1, "job"), "1 job"}, {Counted(uint32(3), "job"), "3 jobs"}, {Dash(""), "-"},
		{Bytes(0), "0B"}, {Bytes(1023), "1023B"}, {Bytes(1536), "1.5KiB"}, {Bytes(1 << 40), "1TiB"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
