package conformance

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// reconciliation runs a file of the folder group.
func reconciliation(s *sheet) {
	s.run(wholeFile, func(t *trial) {
		f, err := readGroup(s.data, s.kept())
		if err != nil {
			t.Fatal(err)
		}
		if form := f.form(); form != "" {
			t.leaveOut(form)
		}
		got, err := f.answer()
		if err != nil {
			t.Fatal(err)
		}
		wrong, err := f.wrong(got)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range wrong {
			t.Error(line)
		}
		s.differences.state(t, recordCopied)
	})
}

// What of a result is not compared. Each holds for every file.
var (
	recordCopied = &difference{name: "record copied", column: true,
		reason: "an update begins with the entry that brings " +
			"a version, whatever is outdated, and ends with the next: of a deployment is compared whether it is successful, and " +
			"of counts, what is done"}
)

// kept returns the file of this name in the tree, nil if there is none: it holds what slots must give, which the
// given file does not.
func (s *sheet) kept() []byte {
	data, err := os.ReadFile("testdata/given/" + s.file + ".yaml")
	if err != nil {
		return nil
	}
	return data
}

// readGroup reads a file of the folder group. What slots must give is taken from the file kept in the tree if the file
// itself does not tell.
func readGroup(data, kept []byte) (*reconcileFile, error) {
	f, err := readReconcile(data)
	if err != nil || f.SlotExpected.Kind != 0 || kept == nil {
		return f, err
	}
	own, err := readReconcile(kept)
	if err != nil {
		return nil, err
	}
	f.SlotExpected = own.SlotExpected
	return f, nil
}

// wrong returns what is wrong with a result for a file.
func (f *reconcileFile) wrong(got *answer) ([]string, error) {
	if len(f.Other) > 0 {
		return nil, fmt.Errorf("keys that are not known: %v", sortedKeys(f.Other))
	}
	want, err := f.expected()
	if err != nil {
		return nil, err
	}
	wrong := got.untold()
	for _, breach := range f.breaches(&got.nomadExpected) {
		if f.SlotNote != "" {
			wrong = append(wrong, "our result is not one of slots: it "+breach)
		}
	}
	return append(wrong, compareResults(want, got)...), nil
}

// expected returns what the file expects. What slots must give goes before what the peer gives; where the peer took an
// empty evaluation ID for a match, what it gives with a real one counts.
func (f *reconcileFile) expected() (*nomadExpected, error) {
	node := &f.Expected
	switch {
	case f.SlotExpected.Kind == yaml.MappingNode:
		node = &f.SlotExpected
	case f.WithEvaluation.Kind == yaml.MappingNode:
		node = under(&f.Expected, &f.WithEvaluation)
	}
	want := &nomadExpected{}
	if err := node.Load(want, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("read what is expected: %w", err)
	}
	return want, nil
}

// TestReconcilesFindsFaults spoils one line of a sound file at a time.
func TestReconcilesFindsFaults(t *testing.T) {
	const sound = `
name: sound
input:
  now: 0
  job: {type: service, version: 2, create_index: 7, stop: false, groups: [{name: api, count: 5, update: {max_parallel: 2}, disconnect: {lost_after: 5m}}]}
  batch: false
  eval_id: e-current
  deployment: null
  tainted_nodes: {n1: {status: disconnected}}
  alloc_defaults: {group: api, version: 1, desired: run, client: running, spec_change: destructive}
  allocs: [{id: a0, index: 0}, {id: a1, index: 1, node: n1, spec_change: none}, {id: a2, index: 2, spec_change: none}, {id: a5, index: 5}]
expected:
  counts: {place: 2, destructive: 0, inplace: 0, stop: 1, attribute: 0, disconnect: 1, reconnect: 0}
  place: [{group: api, index: 3}, {group: api, index: 4}]
  stop: [{alloc: a5, index: 5, why: not_needed}]
  disconnect_updates: [{alloc: a1, set_client: unknown, followup_eval: e1}]
  followup_evals: {api: [{id: e1, wait_until: +5m, triggered_by: max-disconnect-timeout}]}
  desired_tg_updates: {api: {place: 2, stop: 1, ignore: 3, disconnect: 1}}
`
	for _, c := range []struct{ from, to, want string }{
		{"name: sound", "name: sound", ""},
		{"place: 2, destructive: 0", "place: 3, destructive: 0", "counts: 2 place, want 3"},
		{"{group: api, index: 4}", "{group: api, index: 4, canary: true}", "place: missing"},
		{"why: not_needed", "why: lost", "stop: missing"},
		{"{alloc: a5, index: 5, why: not_needed}", "", "stop: not expected"},
		{"wait_until: +5m", "wait_until: +4m", "a1 does not wait until 240000"},
		{"disconnect_updates: [{alloc: a1, set_client: unknown, followup_eval: e1}]", "reconnect_updates: [a1]",
			"reconnect_updates: missing [a1]"},
		{"name: sound", "name: sound\nslot_note: x", ""},
		{"group: api, index: 3", "group: api, index: 3, spread: 1", "field spread not found"},
		{"client: running, spec", "client: asleep, spec", "the word \"asleep\" is not known"},
		{"status: disconnected", "status: offline", "the word \"offline\" is not known"},
		{"name: sound", "name: sound\nodd: 1", "not known: [odd]"},
	} {
		wrong, err := wrongWith(strings.Replace(sound, c.from, c.to, 1))
		text := strings.Join(wrong, "\n")
		if err != nil {
			text += err.Error()
		}
		if !strings.Contains(text, c.want) || (c.want == "") != (text == "") {
			t.Errorf("%q instead of %q gives %q, want %q", c.to, c.from, text, c.want)
		}
	}
	noted := strings.Replace(sound, "name: sound", "name: sound\nslot_note: x", 1)
	noted = strings.Replace(noted, "stop: [{alloc: a5, index: 5, why: not_needed}]", "stop: []", 1)
	if wrong, err := wrongWith(noted); err != nil || len(wrong) == 0 {
		t.Errorf("a surplus left alive is not seen in a file with a note: %v", err)
	}
	noted += strings.Replace(sound[strings.Index(sound, "expected:"):], "expected:", "slot_expected:", 1)
	if wrong, err := wrongWith(noted); err != nil || len(wrong) > 0 {
		t.Errorf("what slots must give does not go before what the peer gives: %v, %v", wrong, err)
	}
}

// wrongWith returns what is wrong with our result for a file.
func wrongWith(text string) ([]string, error) {
	f, err := readGroup([]byte(text), nil)
	if err != nil {
		return nil, err
	}
	got, err := f.answer()
	if err != nil {
		return nil, err
	}
	return f.wrong(got)
}

// TestBlankResults takes our result of each file away: none stays green.
func TestBlankResults(t *testing.T) {
	for _, root := range []string{"testdata/given", "testdata/own"} {
		for _, file := range dataFiles(t, root) {
			if !strings.HasPrefix(file, "nomad/group/") {
				continue
			}
			data, err := os.ReadFile(root + "/" + file)
			if err != nil {
				t.Fatal(err)
			}
			f, err := readGroup(data, nil)
			if err != nil {
				t.Fatal(err)
			}
			if f.form() != "" || strings.HasSuffix(f.Name, "terminalallocs-nil-job") {
				continue // it is left out, or nothing runs and nothing is wanted
			}
			if wrong, err := f.wrong(&answer{}); err != nil || len(wrong) == 0 {
				t.Errorf("%s: no result at all is right: %v", file, err)
			}
		}
	}
}
