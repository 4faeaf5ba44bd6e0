package conformance

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"go.yaml.in/yaml/v4"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/jobspec"
	"starling/schedule"
	"starling/schedule/place"
	"starling/terms"
	"starling/terms/constraint"
)

// The differences from Peloton in how constraints are evaluated. None changes an answer; they say how one is found.
var (
	oneTree = &difference{name: "one tree",
		reason: "attributes of machines and labels of instances are asked about at once; what Peloton " +
			"finds of one kind alone is what the tree without the labels of the other kind says"}
	noCounts = &difference{name: "no counts of attributes",
		reason: "a machine has one value of an attribute: a requirement becomes = or !=, " +
			"and several values become attributes of their own that hold numbers"}
)

// labelCounts counts labels by key and value.
type labelCounts map[string]map[string]int

// constraintFile is a file of constraints and of the hosts against which they are held.
type constraintFile struct {
	Schema    int
	Suite     string
	Hosts     map[string]labelCounts
	Scenarios []yaml.Node
	Other     map[string]yaml.Node `yaml:",inline"`
}

// constraintCase has one of three forms: a tree held against hosts or labels, sentences about exclusive hosts, or a job
// with a limit per host.
type constraintCase struct {
	ID, Origin, What, Note string
	Ideal                  yaml.Node `yaml:"ideal_for_a_new_design"`

	Constraint  *pelotonConstraint
	Kind        string      `yaml:"evaluated_kind"`
	LabelCounts labelCounts `yaml:"label_counts"`
	Cases       []exclusiveCase
	// Hosts and Instances are numbers, of a job with a limit.
	Hosts, Instances int
	Expect           map[string]string `yaml:"-"`
	Told             yaml.Node         `yaml:"expect"`
}

// expect reads what the case expects; it returns false if that is only that something is an error.
func (c *constraintCase) expect() (bool, error) {
	if c.Told.Kind == yaml.ScalarNode {
		return false, nil
	}
	if c.Expect != nil || c.Told.Kind == 0 {
		return true, nil
	}
	return true, c.Told.Load(&c.Expect)
}

// pelotonConstraint is a constraint as Peloton writes it.
type pelotonConstraint struct {
	Type, Kind, Condition, Key, Value string
	Requirement                       int
	Of                                []pelotonConstraint
}

// exclusiveCase is whether a host, exclusive or not, takes a task with a constraint in words.
type exclusiveCase struct {
	Host       *string `yaml:"host_exclusive"`
	Constraint string
	Allowed    string
}

// constraints runs a file of constraints.
func constraints(s *sheet) {
	f, err := readConstraints(s.data)
	if err != nil {
		s.fail("%v", err)
		return
	}
	s.unknownKeys(f.Other)
	for i := range f.Scenarios {
		var head struct{ ID string }
		c := &constraintCase{}
		_ = f.Scenarios[i].Load(&head) // read tells what is wrong
		s.run(head.ID, func(t *trial) {
			read(t, &f.Scenarios[i], c)
			for _, wrong := range f.check(c) {
				t.Error(wrong)
			}
			t.Logf("said otherwise: %s (%s); %s (%s)", oneTree.name, oneTree.reason, noCounts.name, noCounts.reason)
		})
	}
}

func readConstraints(data []byte) (*constraintFile, error) {
	f := &constraintFile{}
	if err := yaml.Load(data, f, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	if len(f.Scenarios) == 0 {
		return nil, errors.New("the file has no scenarios")
	}
	return f, nil
}

// check returns what is not as the case expects.
func (f *constraintFile) check(c *constraintCase) []string {
	answers, err := c.expect()
	switch {
	case err != nil:
		return []string{err.Error()}
	case c.ID == "":
		return []string{"the case has no id"}
	case !answers:
		return c.checkErrors()
	case len(c.Cases) > 0:
		return c.checkExclusive()
	case c.Instances > 0:
		return c.checkLimit()
	case c.Constraint == nil || len(c.Expect) == 0:
		return []string{"the case has no constraint, or expects nothing"}
	}
	hosts := f.Hosts
	if c.Kind == "TASK" {
		hosts = map[string]labelCounts{"labels": nil}
	}
	var wrong []string
	for _, host := range sortedKeys(c.Expect) {
		labels, known := hosts[host]
		if !known {
			wrong = append(wrong, "there is no host "+host)
			continue
		}
		got, err := c.Constraint.answer(c.Kind, labels, c.LabelCounts)
		if err != nil {
			return []string{err.Error()}
		}
		if got != c.Expect[host] {
			wrong = append(wrong, fmt.Sprintf("%s: got %s, want %s", host, got, c.Expect[host]))
		}
	}
	return wrong
}

// checkErrors writes job files with constraints of a form that is not known, each of which must be refused.
func (c *constraintCase) checkErrors() (wrong []string) {
	if c.Told.Value != "error" || c.What != "unknown type or condition" {
		return []string{fmt.Sprintf("no rule for %q, %q", c.What, c.Told.Value)}
	}
	for _, text := range []string{
		`{attribute: a, operator: "~", value: b}`, `{label: a, value: b, operator: "~", count: 1}`,
		`{sort: a, operator: "=", value: b}`, `{}`,
	} {
		if _, err := jobspec.Parse("job.yaml",
			[]byte("{job: j, tasks: [{command: run, constraints: ["+text+"]}]}")); err == nil {
			wrong = append(wrong, "the constraint is accepted: "+text)
		}
	}
	return wrong
}

// answer holds the constraint, as far as it is of a kind, against a machine with labels on which so many instances run.
func (p *pelotonConstraint) answer(kind string, labels, running labelCounts) (string, error) {
	node := newNode(labels, p)
	rule, applies, err := p.rule(kind, node.plain)
	if err != nil {
		return "", err
	}
	var rules []constraint.Constraint
	if applies {
		rules = append(rules, rule)
	}
	s := cluster.NewState()
	s.SetOffer(s.EnsureNode("n").Index, node.offer())
	for _, key := range sortedKeys(running) {
		for _, value := range sortedKeys(running[key]) {
			submit(s, running[key][value], []terms.EnvVar{{Name: key, Value: value}}, nil)
		}
	}
	schedule.Run(s, nil, nil, nil)
	fits := place.Fits(s, submit(s, 1, nil, rules), 0)
	switch {
	case !applies && fits:
		return "not_applicable", nil
	case fits:
		return "match", nil
	}
	return "mismatch", nil
}

// submit brings a job of equal instances that need nothing.
func submit(s *cluster.State, instances int, labels []terms.EnvVar, rules []constraint.Constraint) facts.TaskKey {
	j := s.AddJob(&terms.Job{Name: terms.JobName(fmt.Sprint("j", s.LastJob)), Type: terms.Stateless, Tasks: []terms.Task{{
		Name: "main", Instances: uint32(instances), Placement: terms.Pack, Labels: labels, Constraints: rules,
	}}})
	return facts.KeyOf(j.ID, 0)
}

// labelledNode is a machine of which a file says how often it has which labels.
type labelledNode struct {
	labels labelCounts
	// plain tells that every label has one value, once.
	plain bool
}

// newNode returns a machine that has, with number 0, also the labels that a constraint asks about and it has not.
func newNode(labels labelCounts, p *pelotonConstraint) labelledNode {
	n := labelledNode{labels: labelCounts{}, plain: true}
	for key, values := range labels {
		n.labels[key] = map[string]int{}
		for value, count := range values {
			n.labels[key][value] = count
			n.plain = n.plain && len(values) == 1 && count == 1
		}
	}
	if !n.plain {
		n.ask(p)
	}
	return n
}

func (n labelledNode) ask(p *pelotonConstraint) {
	if n.labels[p.Key] == nil {
		n.labels[p.Key] = map[string]int{}
	}
	n.labels[p.Key][p.Value] += 0
	for i := range p.Of {
		n.ask(&p.Of[i])
	}
}

func (n labelledNode) offer() *terms.Offer {
	o := &terms.Offer{}
	for _, key := range sortedKeys(n.labels) {
		for _, value := range sortedKeys(n.labels[key]) {
			one := terms.EnvVar{Name: attributeOf(key), Value: value}
			if !n.plain {
				one = terms.EnvVar{Name: key + "=" + value, Value: strconv.Itoa(n.labels[key][value])}
			}
			o.Attributes = append(o.Attributes, one)
		}
	}
	return o
}

// attributeOf returns what we call a label of a machine.
func attributeOf(key string) string {
	if key == "peloton/exclusive" {
		return terms.ExclusiveAttribute
	}
	return key
}

// rule returns the constraint as ours, without what is of another kind; applies is false if nothing is left.
func (p *pelotonConstraint) rule(kind string, plain bool) (rule constraint.Constraint, applies bool, err error) {
	switch p.Type {
	case "AND", "OR":
		var parts []constraint.Constraint
		for i := range p.Of {
			part, applies, err := p.Of[i].rule(kind, plain)
			if err != nil {
				return rule, false, err
			}
			if applies {
				parts = append(parts, part)
			}
		}
		if p.Type == "AND" {
			return constraint.Constraint{All: parts}, len(parts) > 0, nil
		}
		return constraint.Constraint{Any: parts}, len(parts) > 0, nil
	case "LABEL":
		operator, known := map[string]constraint.Operator{"LESS_THAN": constraint.Less, "EQUAL": constraint.Equal,
			"GREATER_THAN": constraint.Greater}[p.Condition]
		switch {
		case !known || kind != "HOST" && kind != "TASK" || p.Kind != "HOST" && p.Kind != "TASK":
			return rule, false, fmt.Errorf("there is no condition %q, or no kind %q or %q", p.Condition, p.Kind, kind)
		case p.Kind != kind:
			return rule, false, nil
		case kind == "TASK":
			return constraint.Constraint{Label: p.Key, Values: []string{p.Value}, Operator: operator,
				Count: uint32(p.Requirement)}, true, nil
		case plain:
			return p.plainRule(), true, nil
		}
		return constraint.Constraint{Attribute: p.Key + "=" + p.Value, Operator: operator,
			Values: []string{strconv.Itoa(p.Requirement)}}, true, nil
	}
	return rule, false, fmt.Errorf("there is no type %q", p.Type)
}

// plainRule asks about an attribute that has one value: by whether the requirement is met when that is the value, and
// when it is not.
func (p *pelotonConstraint) plainRule() constraint.Constraint {
	met := func(count int) bool {
		return map[string]bool{"LESS_THAN": count < p.Requirement, "EQUAL": count == p.Requirement,
			"GREATER_THAN": count > p.Requirement}[p.Condition]
	}
	is := constraint.Constraint{Attribute: attributeOf(p.Key), Operator: constraint.Equal, Values: []string{p.Value}}
	isNot := constraint.Constraint{Attribute: attributeOf(p.Key), Operator: constraint.NotEqual, Values: []string{p.Value}}
	switch {
	case met(0) && met(1):
		return constraint.Constraint{Any: []constraint.Constraint{is, isNot}}
	case met(1):
		return is
	case met(0):
		return isNot
	}
	return constraint.Constraint{All: []constraint.Constraint{is, isNot}}
}

// checkExclusive holds sentences about exclusive hosts against one that is, or is not.
func (c *constraintCase) checkExclusive() []string {
	var wrong []string
	words := regexp.MustCompile(`^(HOST|TASK) label (\S+)=(\S+)$`)
	for i, one := range c.Cases {
		p := &pelotonConstraint{Type: "AND"}
		parts := words.FindStringSubmatch(one.Constraint)
		switch {
		case parts != nil && parts[1] == "HOST":
			p.Of = []pelotonConstraint{{Type: "LABEL", Kind: "HOST", Condition: "EQUAL", Key: parts[2], Value: parts[3],
				Requirement: 1}}
		case parts != nil:
			p.Of = []pelotonConstraint{{Type: "LABEL", Kind: "TASK", Condition: "EQUAL", Key: parts[2], Value: parts[3]}}
		case one.Constraint != "none":
			wrong = append(wrong, fmt.Sprintf("case %d: no rule for constraint %q", i+1, one.Constraint))
			continue
		}
		takes := func(exclusive string) string {
			labels := labelCounts{}
			if exclusive != "" {
				labels["peloton/exclusive"] = map[string]int{exclusive: 1}
			}
			kind := "HOST"
			if len(p.Of) > 0 {
				kind = p.Of[0].Kind
			}
			answer, err := p.answer(kind, labels, nil)
			if err != nil {
				return err.Error()
			}
			return strconv.FormatBool(answer != "mismatch")
		}
		host := ""
		if one.Host != nil {
			host = *one.Host
		}
		got := takes(host)
		if parts != nil && host == "" && got == "false" && takes(parts[3]) == "true" {
			got = "only exclusive hosts match"
		}
		if got != one.Allowed {
			wrong = append(wrong, fmt.Sprintf("case %d: allowed is %q, want %q", i+1, got, one.Allowed))
		}
	}
	return wrong
}

// checkLimit runs a job whose instances bound their own number on a host.
func (c *constraintCase) checkLimit() []string {
	parts := regexp.MustCompile(`(?:host limit|LESS_THAN) (\d+)`).FindStringSubmatch(c.What)
	if c.Constraint == nil && parts == nil {
		return []string{"the case names no limit"}
	}
	p := c.Constraint
	if p == nil {
		limit, _ := strconv.Atoi(parts[1])
		p = &pelotonConstraint{Type: "LABEL", Kind: "TASK", Condition: "LESS_THAN", Key: "job", Value: "own",
			Requirement: limit}
	}
	rule, _, err := p.rule("TASK", true)
	if err != nil {
		return []string{err.Error()}
	}
	var labels []terms.EnvVar
	rule.EachLeaf(func(leaf *constraint.Constraint) {
		labels = append(labels, terms.EnvVar{Name: leaf.Label, Value: leaf.Values[0]})
	})
	s := cluster.NewState()
	for i := range c.Hosts {
		s.SetOffer(s.EnsureNode(terms.NodeName(fmt.Sprint("n", i))).Index, &terms.Offer{})
	}
	id, _ := submit(s, c.Instances, slices.Compact(labels), []constraint.Constraint{rule}).Split()
	schedule.Run(s, nil, nil, nil)
	waits := int(s.Job(id).Tasks[0].Waits())
	got := map[string]string{"running": strconv.Itoa(c.Instances - waits), "pending": strconv.Itoa(waits)}
	var wrong []string
	for _, what := range sortedKeys(c.Expect) {
		if got[what] != c.Expect[what] {
			wrong = append(wrong, fmt.Sprintf("%s: got %s, want %s", what, got[what], c.Expect[what]))
		}
	}
	return wrong
}

// TestConstraintFaults turns every expectation of our own file round: each is found.
func TestConstraintFaults(t *testing.T) {
	data, err := os.ReadFile("testdata/own/peloton/constraints.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := readConstraints(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Scenarios {
		c := &constraintCase{}
		if err := decode(&f.Scenarios[i], c); err != nil {
			t.Fatal(err)
		}
		if _, err := c.expect(); err != nil {
			t.Fatal(err)
		}
		for k := range c.Expect {
			kept := c.Expect[k]
			c.Expect[k] = "turned round"
			if len(f.check(c)) != 1 {
				t.Errorf("%s: %s is wrong and nobody sees it", c.ID, k)
			}
			c.Expect[k] = kept
		}
		for k := range c.Cases {
			kept := c.Cases[k].Allowed
			c.Cases[k].Allowed = "turned round"
			if len(f.check(c)) != 1 {
				t.Errorf("%s: case %d is wrong and nobody sees it", c.ID, k+1)
			}
			c.Cases[k].Allowed = kept
		}
	}
}
