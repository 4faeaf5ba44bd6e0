package journaltest

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"starling/journal"
)

// TestFits has answers that one order of calls explains, and such that none does.
func TestFits(t *testing.T) {
	order := map[string]journal.Index{"a": 1, "b": 2}
	call := func(began, ended int64, call, answer any) porcupine.Operation {
		return porcupine.Operation{Input: call, Call: began, Output: answer, Return: ended}
	}
	one, two := journal.Index(1), journal.Index(2)
	cases := []struct {
		name  string
		want  bool
		calls []porcupine.Operation
	}{
		{"one after the other", true, []porcupine.Operation{call(0, 1, appended{"a"}, true),
			call(2, 3, headAsked{}, one), call(4, 5, appended{"b"}, true), call(6, 7, headAsked{}, two)}},
		{"at once", true, []porcupine.Operation{call(0, 9, appended{"b"}, true), call(1, 8, appended{"a"}, true)}},
		{"a resend", true, []porcupine.Operation{call(0, 99, appended{"a"}, nil), call(2, 3, appended{"a"}, true),
			call(4, 5, headAsked{}, one), call(6, 7, appended{"b"}, true)}},
		{"read", true, []porcupine.Operation{call(0, 9, appended{"a"}, true), call(5, 5, delivered{"a"}, one)}},
		{"a head that is behind", false, []porcupine.Operation{call(0, 1, appended{"a"}, true),
			call(2, 3, appended{"b"}, true), call(4, 5, headAsked{}, one)}},
		{"a head that is ahead", false, []porcupine.Operation{call(0, 1, headAsked{}, one),
			call(2, 3, appended{"a"}, true)}},
		{"the order turned round", false, []porcupine.Operation{call(0, 1, appended{"b"}, true),
			call(2, 3, appended{"a"}, true)}},
		{"lost", false, []porcupine.Operation{call(0, 1, appended{"c"}, true)}},
		{"read before it was appended", false, []porcupine.Operation{call(1, 1, delivered{"a"}, one),
			call(2, 3, appended{"a"}, true)}},
		{"read elsewhere", false, []porcupine.Operation{call(0, 1, appended{"a"}, true),
			call(2, 3, appended{"b"}, true), call(4, 4, delivered{"a"}, two)}},
	}
	for _, c := range cases {
		if got := fits(c.calls, order) == porcupine.Ok; got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
