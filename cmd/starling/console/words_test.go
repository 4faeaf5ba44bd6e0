package console

import "testing"

func TestDash(t *testing.T) {
	for _, c := range []struct{ got, want string }{{Dash(""), "-"}, {Dash("a"), "a"}} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
