package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// reconciliation runs a file of the folder group.
func reconciliation(t *testing.T, data []byte) {
	wrong, choice, err := reconciles(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range wrong {
		t.Error(line)
	}
	if choice != "" {
		t.Logf("choice: the result of slots, because the peer's %s", choice)
	}
}

// reconciles returns what is wrong with our result for a file, or why the result of slots was chosen against the peer's.
func reconciles(data []byte) (wrong []string, choice string, err error) {
	f, err := readReconcile(data)
	if err != nil {
		return nil, "", err
	}
	if len(f.Other) > 0 {
		return nil, "", fmt.Errorf("keys that are not known: %v", slices.Collect(maps.Keys(f.Other)))
	}
	want, err := f.expected()
	if err != nil {
		return nil, "", err
	}
	got, err := f.answer()
	if err != nil {
		return nil, "", err
	}
	wrong = got.untold()
	differences := compareResults(want, &got.nomadExpected)
	if f.SlotNote == "" {
		return append(wrong, differences...), "", nil
	}
	for _, breach := range f.breaches(&got.nomadExpected) {
		wrong = append(wrong, "our result is not one of slots: it "+breach)
	}
	if reasons := f.breaches(want); len(differences) > 0 && len(reasons) > 0 {
		return wrong, strings.Join(reasons, "; "), nil
	}
	return append(wrong, differences...), "", nil
}

// expected returns what the file expects. Where the peer took an empty evaluation ID for a match, what it gives with a
// real one counts.
func (f *reconcileFile) expected() (*nomadExpected, error) {
	node := &f.Expected
	if f.WithEvaluation.Kind == yaml.MappingNode {
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
  allocs: [{id: a0, index: 0}, {id: a1, index: 1, node: n1, spec_change: none}, {id: a2, index: 2, spec_change: inplace}, {id: a5, index: 5}]
expected:
  counts: {place: 2, destructive: 0, inplace: 1, stop: 1, attribute: 0, disconnect: 1, reconnect: 0}
  place: [{group: api, index: 3}, {group: api, index: 4}]
  inplace: [a2]
  stop: [{alloc: a5, index: 5, why: not_needed}]
  disconnect_updates: [{alloc: a1, set_client: unknown, followup_eval: e1}]
  followup_evals: {api: [{id: e1, wait_until: +5m, triggered_by: max-disconnect-timeout}]}
  deployment_created: {status: running, job_version: 2, job_create_index: 7, description: Deployment is running, groups: {api: {desired_total: 4}}}
  desired_tg_updates: {api: {place: 2, inplace: 1, stop: 1, ignore: 2, disconnect: 1}}
`
	for _, c := range []struct{ from, to, want string }{
		{"name: sound", "name: sound", ""},
		{"place: 2, destructive: 0", "place: 3, destructive: 0", "counts: 2 place, want 3"},
		{"{group: api, index: 4}", "{group: api, index: 4, canary: true}", "place: missing"},
		{"inplace: [a2]", "inplace: []", "inplace: missing [], not expected [a2]"},
		{"why: not_needed", "why: lost", "stop: missing"},
		{"{alloc: a5, index: 5, why: not_needed}", "", "stop: not expected"},
		{"wait_until: +5m", "wait_until: +4m", "followup_evals: missing"},
		{"disconnect_updates: [{alloc: a1, set_client: unknown, followup_eval: e1}]", "reconnect_updates: [a1]", "reconnect_updates: missing [a1]"},
		{"desired_total: 4", "desired_total: 5", "deployment_created: missing"},
		{"ignore: 2", "ignore: 3", "desired_tg_updates: missing [api ignore=3]"},
		{"name: sound", "name: sound\nslot_note: x", ""},
		{"group: api, index: 3", "group: api, index: 3, spread: 1", "field spread not found"},
		{"client: running, spec", "client: asleep, spec", "the word \"asleep\" is not known"},
		{"status: disconnected", "status: offline", "the word \"offline\" is not known"},
		{"name: sound", "name: sound\nodd: 1", "not known: [odd]"},
	} {
		wrong, choice, err := reconciles([]byte(strings.Replace(sound, c.from, c.to, 1)))
		text := strings.Join(wrong, "\n")
		if err != nil {
			text += err.Error()
		}
		if !strings.Contains(text, c.want) || (c.want == "") != (text == "") || choice != "" {
			t.Errorf("%q instead of %q gives %q and the choice %q, want %q", c.to, c.from, text, choice, c.want)
		}
	}
	noted := strings.Replace(sound, "name: sound", "name: sound\nslot_note: x", 1)
	noted = strings.Replace(noted, "stop: [{alloc: a5, index: 5, why: not_needed}]", "stop: []", 1)
	if wrong, choice, err := reconciles([]byte(noted)); err != nil || len(wrong) > 0 || !strings.Contains(choice, "a5 alive at index 5") {
		t.Errorf("a surplus left alive gives %v, the choice %q and the error %v", wrong, choice, err)
	}
}
