package conformance

import (
	"os"
	"testing"

	"go.yaml.in/yaml/v4"
)

// nodes returns the cases of one of our own files.
func nodes(t *testing.T, file string) []yaml.Node {
	data, err := os.ReadFile("testdata/own/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var f struct{ Scenarios []yaml.Node }
	if err := yaml.Load(data, &f); err != nil {
		t.Fatal(err)
	}
	return f.Scenarios
}

// TestEntitlementFaults spoils every expected number by itself: each is found, and nothing explains it.
func TestEntitlementFaults(t *testing.T) {
	spoilt := 0
	for _, node := range nodes(t, "peloton/entitlement.yaml") {
		c := &entitlementCase{}
		if decode(&node, c) != nil {
			continue // of another form
		}
		in, numbers, err := c.input()
		if err != nil {
			t.Fatal(err)
		}
		for name, amounts := range c.Expect.Entitlement {
			for kind := range amounts {
				amounts[kind] += 0.5
				if len(c.compare(oursOf(in, numbers), c.Expect)) == 0 || c.explained(in, numbers, c.Expect) != nil {
					t.Errorf("%s: %s of %s is half more than it should be, and nobody sees it", c.ID, kind, name)
				}
				amounts[kind] -= 0.5
				spoilt++
			}
		}
	}
	if spoilt < 10 {
		t.Errorf("%d numbers were spoilt, want at least 10", spoilt)
	}
}

// TestUnknownKeys plants a key that no form knows into every case of our files.
func TestUnknownKeys(t *testing.T) {
	for file, form := range map[string]func() any{
		"peloton/entitlement.yaml":    func() any { return &entitlementCase{} },
		"peloton/respool_config.yaml": func() any { return &poolCase{} },
		"peloton/admission.yaml":      func() any { return &admissionCase{} },
		"volcano/queue-deserved.yaml": func() any { return &queueCase{} },
		"volcano/queue-admit.yaml":    func() any { return &cycleCase{} },
		"volcano/gang.yaml":           func() any { return &cycleCase{} },
		"volcano/plugins.yaml":        func() any { return &pluginCase{} },
		"volcano/min-resources.yaml":  func() any { return &minimumCase{} },
		"volcano/policy.yaml":         func() any { return &policyCase{} },
		"volcano/state.yaml":          func() any { return &standCase{} },
		"volcano/admission.yaml":      func() any { return &admittanceCase{} },
		"volcano/scale.yaml":          func() any { return &scaleCase{} },
	} {
		for _, node := range nodes(t, file) {
			if decode(&node, form()) != nil {
				continue // of another form
			}
			for _, inner := range []string{"", "request", "cluster", "pool", "given", "expect", "then"} {
				at := &node
				for i := 0; inner != "" && i+1 < len(node.Content); i += 2 {
					if node.Content[i].Value == inner && node.Content[i+1].Kind == yaml.MappingNode {
						at = node.Content[i+1]
					}
				}
				before := at.Content
				at.Content = append(before[:len(before):len(before)], &yaml.Node{Kind: yaml.ScalarNode, Value: "odd"},
					&yaml.Node{Kind: yaml.ScalarNode, Value: "key"})
				if decode(&node, form()) == nil {
					t.Errorf("%s: nobody sees an unknown key in %q", file, inner)
				}
				at.Content = before
			}
		}
	}
}
