package conformance

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// reconciliation runs a file of the folder group.
func reconciliation(t *testing.T, data []byte) {
	f, err := readReconcile(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Other) > 0 {
		t.Fatalf("keys that are not known: %v", keysOf(f.Other))
	}
	want, err := f.expected()
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.answer()
	if err != nil {
		t.Fatal(err)
	}
	differences := compareResults(want, &got.nomadExpected)
	for _, breach := range f.breaches(&got.nomadExpected) {
		if f.SlotNote != "" {
			t.Errorf("our result is not one of slots: %s", breach)
		}
	}
	checkTold(t, got)
	if len(differences) == 0 {
		return
	}
	if reasons := f.breaches(want); f.SlotNote != "" && len(reasons) > 0 {
		t.Logf("choice: the result of slots, because the peer's %s", strings.Join(reasons, "; "))
		return
	}
	t.Errorf("differs:\n%s", strings.Join(differences, "\n"))
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

func keysOf(m map[string]yaml.Node) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}
