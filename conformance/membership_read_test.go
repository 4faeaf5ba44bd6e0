package conformance

import (
	"strings"
	"testing"
)

// TestReadMembership reads a file of the form that records a defect: desired goes before what upstream holds.
func TestReadMembership(t *testing.T) {
	f, unread, err := readMembership([]byte(`
id: x
title: t
initial: {replica: {members: [p0], pairs: {}, prepared: {}, accepted: {}}}
log:
- id: 0
  fn: prepare-join
  args: {joiner: p1}
  submitted_by: p1
  candidates: []
  replica_in_0.6.0: {members: [], accepted: {<nil>: p1}}
  known_defect: true
  expect: {replica: {members: [p9]}, reactions: {p9: [{fn: leave, args: {id: p0}}]}}
  desired: {replica: {members: [p0, p1], pairs: {p0: p1, p1: p0}}, wish: 1}
- id: 1
  fn: leave
  args: {id: p1}
  submitted_by: p0
  expect: {replica: {members: [p9]}, reactions: {}, required_watches: {}}
  desired: {members: [p0]}
- id: 2
  fn: leave
  args: {id: p1}
  submitted_by: p0
  odd: key
  expect: {replica: {members: [p0]}}
  desired: no reaction at all
final: {members: [p9]}
desired: {members: []}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(unread, " "), "odd wish"; got != want {
		t.Errorf("unread keys are %q, want %q", got, want)
	}
	if f.Log[0].Candidates == nil || len(*f.Log[0].Candidates) != 0 || f.Log[1].Candidates != nil {
		t.Error("an empty list of candidates is taken for none, or the other way round")
	}
	for i, want := range []string{"members [p0 p1], pairs [p0→p1 p1→p0]", "members [p0], pairs []",
		"members [p0], pairs []"} {
		if got := f.Log[i].Expect.Replica.String(); !strings.HasPrefix(got, want) {
			t.Errorf("entry %d expects %s, want %s", i, got, want)
		}
	}
	if f.Log[0].Expect.Reactions == nil || f.Log[1].Expect.Reactions == nil || f.Log[2].Expect.Reactions != nil {
		t.Error("reactions that are told to be none are taken for not told, or the other way round")
	}
	if len(f.Final.Members) != 0 {
		t.Errorf("the end is %s, want what is desired", f.Final)
	}
}

// TestReplayFindsFaults spoils one expectation of a sound file at a time.
func TestReplayFindsFaults(t *testing.T) {
	const sound = `
initial: {replica: {members: [a], pairs: {}, prepared: {}, accepted: {}}}
log:
- id: 0
  fn: prepare-join
  args: {joiner: b}
  submitted_by: b
  candidates: [a]
  expect:
    replica: {members: [a], pairs: {}, prepared: {a: b}, accepted: {}}
    reactions: {a: [{fn: notify-join, args: {observer: b}}]}
    required_watches: {a: [b], b: [a]}
final: {members: [a], pairs: {}, prepared: {a: b}, accepted: {}}
`
	for _, c := range []struct{ from, to, want string }{
		{"", "", ""},
		{"candidates: [a]", "candidates: [b]", "candidates are [a], want [b]"},
		{"prepared: {a: b}, accepted: {}}\n    reac", "prepared: {}, accepted: {a: b}}\n    reac", "the value is"},
		{"{a: [{fn: notify-join, args: {observer: b}}]}", "{}", "a reacts with [notify-join(b)#1], want []"},
		{"{a: [{fn: notify-join, args: {observer: b}}]}", "{b: [{fn: abort-join, args: {id: b}}]}",
			"b reacts with [], want [abort-join(b)#1]"},
		{"b: [a]}", "b: []}", "required watches are [a→b b→a], want [a→b]"},
		{"fn: notify-join", "fn: notify", "no rule for entry notify"},
		{"args: {joiner: b}", "args: {}", "joiner is missing"},
		{"prepared: {a: b}, accepted: {}}\n", "prepared: {}, accepted: {}}\n", "the value is"},
	} {
		text := sound
		if at := strings.LastIndex(text, c.from); c.from != "" {
			text = text[:at] + c.to + text[at+len(c.from):]
		}
		f, _, err := readMembership([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		results, _ := replay(f)
		wrong := ""
		for _, r := range results {
			wrong += strings.Join(r.wrong, "\n")
		}
		if !strings.Contains(wrong, c.want) || (c.want == "") != (wrong == "") {
			t.Errorf("%q instead of %q gives %q, want %q", c.to, c.from, wrong, c.want)
		}
	}
}
