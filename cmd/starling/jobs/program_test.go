package jobs

import (
	"strings"
	"testing"

	"starling/terms"
)

func TestJobNames(t *testing.T) {
	for program, want := range map[string]string{
		"echo": "echo-", "/usr/bin/python3.11": "python3-11-", "...": "run-", "../@": "run-", "é": "run-",
		strings.Repeat("x", 80): strings.Repeat("x", 50) + "-",
	} {
		got := jobNameFor(program, "once")
		if !strings.HasPrefix(got, want) || terms.NameProblem(got, false) != "" {
			t.Errorf("%q: got %q, want a valid name that begins with %q", program, got, want)
		}
		if again, other := jobNameFor(program, "once"), jobNameFor(program, "twice"); again != got || other == got {
			t.Errorf("%q: got %q and then %q, and %q for another request", program, got, again, other)
		}
	}
}
