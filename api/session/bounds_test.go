package session

import (
	"strings"
	"testing"

	starlingv1 "starling/api/v1"
)

// TestArgumentsAreBounded asks for sessions with more than the system takes.
func TestArgumentsAreBounded(t *testing.T) {
	long := strings.Repeat("x", argumentBytesMax-1)
	for _, test := range []struct {
		command, env []string
		want         string
	}{
		{[]string{"cat", long}, nil, ""},
		{[]string{"cat", long + "x"}, nil, "must have less than 131072 bytes, has 131072"},
		{[]string{"cat"}, []string{"A=" + long}, "must have less than 131072 bytes, has 131073"},
		{[]string{long, long, long, long, long}, []string{long, long, long, long}, "at most 1048576 bytes, have 1179639"},
	} {
		got := problemOf(&starlingv1.ExecRequest{Command: test.command, Env: test.env})
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestTheLogKeepsTheBeginningOfACommand(t *testing.T) {
	if got, want := logged([]string{"sh", "-c", "echo \"a\""}), `"sh" "-c" "echo \"a\""`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, long := range [][]string{{"cat", strings.Repeat("ä", 4<<20)}, {strings.Repeat("\x00", 299)},
		strings.Split(strings.Repeat("x", 5000), "")} {
		if got := logged(long); len(got) > loggedBytesMax || !strings.HasSuffix(got, "…") || len(got) < 200 {
			t.Errorf("got %d bytes: %s", len(got), got)
		}
	}
}
