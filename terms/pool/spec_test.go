package pool

import (
	"strings"
	"testing"

	"starling/terms"
)

func TestSpecProblems(t *testing.T) {
	cases := []struct {
		name   string
		change func(s *terms.Pool)
		want   string
	}{
		{"the default", func(*terms.Pool) {}, ""},
		{"negative share", func(s *terms.Pool) { s.Quotas[terms.GPU].Share = -1 },
			"a/b.gpu.share: must be 0 to 1000000, is -1"},
		{"limit as the reservation", func(s *terms.Pool) { s.Quotas[terms.CPU] = terms.Quota{Reservation: 5, Limit: 5} }, ""},
		{"limit that is none", func(s *terms.Pool) { s.Quotas[terms.CPU].Limit = terms.BytesMax + 1 },
			"a/b.cpu.limit: must be at most 2^60, is 1152921504606846977: leave it out for no limit"},
		{"controllers", func(s *terms.Pool) { s.ControllerLimit = 101 }, "a/b.controller_limit: must be 0 to 100, is 101"},
		{"slack", func(s *terms.Pool) { s.SlackLimit = terms.NoPercent }, "a/b.slack_limit: must be 0 to 100, is 255"},
		{"owner", func(s *terms.Pool) { s.Owners = []string{""} },
			`a/b.owners: a user's name must be 1 to 256 bytes of UTF-8 without zero bytes, is ""`},
		{"owners", func(s *terms.Pool) { s.Owners = strings.Split(strings.Repeat("o", 65), "") },
			"a/b.owners: must have at most 64 names, has 65"},
		{"depth", func(s *terms.Pool) { s.Path = "1/2/3/4/5/6/7/8/9" },
			"1/2/3/4/5/6/7/8/9: must have at most 8 names, has 9"},
		{"name", func(s *terms.Pool) { s.Path = "a//b" }, `a//b: name "" must not be empty`},
	}
	for _, c := range cases {
		s := terms.NewPool("a/b")
		c.change(&s)
		var got []string
		alone := &problems{path: s.Path}
		alone.spec(&s)
		for _, p := range alone.found {
			got = append(got, p.Path+": "+p.Reason)
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%s: got %s, want %s", c.name, text, c.want)
		}
	}
}

func TestPathOrder(t *testing.T) {
	ordered := []terms.PoolPath{"a", "a/b", "a/b/c", "a/d", "a-b", "a-b/c", "b"}
	for i, a := range ordered {
		for k, b := range ordered {
			if got := a.Compare(b); got < 0 != (i < k) || got == 0 != (i == k) {
				t.Errorf("%s compared with %s is %d", a, b, got)
			}
		}
	}
	if parent, name := Split("a/b/c"); parent != "a/b" || name != "c" {
		t.Errorf("a/b/c splits into %q and %q", parent, name)
	}
}
