package peers

import (
	"testing"
)

func TestAmounts(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{cores(2000), "2"}, {cores(1500), "1.5"}, {cores(25), "0.025"}, {cores(0), "0"}, {cores(10000), "10"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
