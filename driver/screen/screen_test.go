package screen

import (
	"strings"
	"testing"

	"starling/driver"
)

func TestScreenful(t *testing.T) {
	long := strings.Repeat("x", 2*keptBytes)
	for _, c := range []struct {
		kept string
		rows uint16
		want string
	}{
		{"", 3, ""},
		{"one\ntwo", 3, "one\ntwo"},
		{"one\ntwo\nthree\n$ ", 2, "three\n$ "},
		{"one\ntwo\nthree\n$ ", 0, "one\ntwo\nthree\n$ "},
		{long, 3, long[keptBytes:]},
	} {
		if got := screenful([]byte(c.kept), driver.Size{Rows: c.rows}); string(got) != c.want {
			t.Errorf("of %.20q, %d rows: got %.20q, want %.20q", c.kept, c.rows, got, c.want)
		}
	}
}
