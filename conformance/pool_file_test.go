package conformance

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/terms"
	"starling/terms/pool"
)

// quantity is an amount of one kind in a file: cores, megabytes, devices.
type quantity float64

// perUnit is how many of our units stand for one of a file's: what a file says to the fourth digit, we say to the unit.
const perUnit = 1_000_000

func (q quantity) units() int64 { return int64(math.Round(float64(q) * perUnit)) }

func quantityOf(units int64) quantity { return quantity(units) / perUnit }

// quantities are amounts by the name of the kind.
type quantities map[string]quantity

// amounts translates to units, in our order of kinds.
func (q quantities) amounts() (a terms.Amounts, err error) {
	for name, amount := range q {
		k, err := kindOf(name)
		if err != nil {
			return a, err
		}
		a[k] = amount.units()
	}
	return a, nil
}

// kindOf returns the kind that a file calls so.
func kindOf(name string) (terms.Kind, error) {
	if name == "mem" {
		name = "memory"
	}
	k, found := pool.Kind(name)
	if !found {
		return 0, fmt.Errorf("there is no kind %q", name)
	}
	return k, nil
}

// near tells whether two amounts are the same for a file.
func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= max(tolerance, 0.001) }

// different lists where got is not what is wanted; what is not wanted is not compared.
func different(what string, got, want map[string]quantities, tolerance float64) []string {
	var wrong []string
	for _, name := range sortedKeys(want) {
		for _, kind := range sortedKeys(want[name]) {
			g, known := got[name][kind]
			if w := want[name][kind]; !known || !near(float64(g), float64(w), tolerance) {
				wrong = append(wrong, fmt.Sprintf("%s of %s: %s is %.4f, want %.4f", what, name, kind, g, w))
			}
		}
	}
	return wrong
}

// scenario is what each case of a file of pools has.
type scenario struct {
	ID   string
	node *yaml.Node
	// file are all cases of the file: one may refer to another.
	file []yaml.Node
}

// other returns a case of the same file by its ID, or by how that begins.
func (s *scenario) other(t *trial, id string) *yaml.Node {
	for i := range s.file {
		var head struct{ ID string }
		if s.file[i].Load(&head) == nil && (head.ID == id || strings.HasPrefix(head.ID, id+"-")) {
			return &s.file[i]
		}
	}
	t.Fatalf("there is no case %s", id)
	return nil
}

// read decodes the case into one of its forms. A key that the form does not know is an error.
func (s *scenario) read(t *trial, into any) {
	read(t, s.node, into)
}

// read decodes a case, or fails it.
func read(t *trial, node *yaml.Node, into any) {
	if err := decode(node, into); err != nil {
		t.Fatalf("read the case: %v", err)
	}
}

func decode(node *yaml.Node, into any) error { return node.Load(into, yaml.WithKnownFields()) }

// has tells whether the case has a key that begins so.
func (s *scenario) has(key string) bool {
	for i := 0; i+1 < len(s.node.Content); i += 2 {
		if strings.HasPrefix(s.node.Content[i].Value, key) {
			return true
		}
	}
	return false
}

// runScenarios runs each case of a file by itself.
func (s *sheet) runScenarios(run func(t *trial, one *scenario, differences tally)) {
	var told struct {
		Schema    int
		Suite     string
		Scenarios []yaml.Node
		Other     map[string]yaml.Node `yaml:",inline"`
	}
	if err := yaml.Load(s.data, &told, yaml.WithKnownFields()); err != nil {
		s.fail("read the file: %v", err)
		return
	}
	if len(told.Scenarios) == 0 {
		s.fail("the file has no scenarios")
	}
	s.unknownKeys(told.Other)
	for i := range told.Scenarios {
		one := &scenario{node: &told.Scenarios[i], file: told.Scenarios}
		if err := one.node.Load(one); err != nil || one.ID == "" {
			one.ID = fmt.Sprintf("number %d", i+1)
			s.run(one.ID, func(t *trial) { t.Errorf("the case has no id: %v", err) })
			continue
		}
		s.run(one.ID, func(t *trial) { run(t, one, s.differences) })
	}
}

// state notes a difference and says why it is one.
func (t tally) state(test *trial, d *difference) {
	t.note(d)
	test.Logf("%s: %s", d.name, d.reason)
}

func sortedKeys[V any](m map[string]V) []string {
	var all []string
	for key := range m {
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}
