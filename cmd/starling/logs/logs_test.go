package logs

import (
	"bytes"
	"slices"
	"testing"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
)

// TestWithOutput leaves out who was never placed, unless nobody was, or they are waited for.
func TestWithOutput(t *testing.T) {
	placed, waiting := target.Target{Job: "web", Task: "a", Number: 0}, target.Target{Job: "web", Task: "a", Number: 1}
	answer := &starlingv1.JobStatusResponse{Job: &starlingv1.Job{Name: "web"}, Slots: []*starlingv1.Slot{
		{Task: "a", Number: 0, Allocation: "web.a[0]#3"}, {Task: "a", Number: 1, Phase: "waiting"},
	}}
	for _, c := range []struct {
		name         string
		follow       bool
		chosen, want []target.Target
		said         string
	}{
		{"one of two", false, []target.Target{placed, waiting}, []target.Target{placed},
			"without 1 instance never placed; the reasons: starling why web\n"},
		{"all", false, []target.Target{placed}, []target.Target{placed}, ""},
		{"none", false, []target.Target{waiting}, []target.Target{waiting}, ""},
		{"who follows", true, []target.Target{placed, waiting}, []target.Target{placed, waiting}, ""},
	} {
		var said bytes.Buffer
		l := &reader{remote: &remote.Remote{Console: &console.Console{Err: &said}}, follow: c.follow}
		if got := l.withOutput(c.chosen, answer); !slices.Equal(got, c.want) || said.String() != c.said {
			t.Errorf("%s: got %v and %q, want %v and %q", c.name, got, said.String(), c.want, c.said)
		}
	}
}
