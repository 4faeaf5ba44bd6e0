package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/schedule"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/rules"
	"starling/validate"
)

// goesOn is a difference from Volcano in how a job is kept together.
var goesOn = &difference{name: "goes on",
	reason: "a job that is scattered already goes on in the domain of its first instance, so that it comes together; " +
		"there it starts nothing more"}

// topologyCase is a tree of machines with a job, of whose waiting instances one cycle starts some. Every machine has
// room for one instance.
type topologyCase struct {
	ID, Kind, Title, Source, Basis, Note string
	Given                                struct {
		Domains map[string]domain `yaml:"hyperNodes"`
		Job     struct {
			MinMember int `yaml:"minMember"`
			// Topology is hard, soft, or absent.
			Topology struct {
				Mode    string
				Highest *int `yaml:"highestTier"`
				// Name is a tier's name, which no machine has.
				Name string `yaml:"tierName"`
			}
			Running map[string]string
			Pending []string
		}
	}
	When struct{ Actions []string }
	Then struct {
		Bind  *map[string]string
		Count *int `yaml:"bindCount"`
	}
}

// domain is a part of the tree: machines, or domains of lower tiers.
type domain struct {
	Tier            int
	Nodes, Children []string
}

// topologies runs a file of cases of jobs that are kept together.
func topologies(f *sheet) {
	f.runScenarios(func(t *trial, s *scenario, differences tally) {
		c := &topologyCase{}
		s.read(t, c)
		switch {
		case c.Kind != "topology-allocate" || !slices.Contains(c.When.Actions, "allocate"):
			t.Fatalf("no rule for kind %s with %v", c.Kind, c.When.Actions)
		case c.hard() && c.Given.Job.Topology.Highest == nil && c.Given.Job.Topology.Name == "":
			t.leaveOut("no tier")
		}
		c.run(t, differences)
	})
}

// check refuses what is no case.
func (c *topologyCase) check() error {
	if len(c.Given.Domains) == 0 || c.Then.Count == nil && c.Then.Bind == nil {
		return errors.New("the case has no machines, or expects nothing")
	}
	for name, d := range c.Given.Domains {
		for _, child := range d.Children {
			if inner, known := c.Given.Domains[child]; !known || inner.Tier >= d.Tier {
				return fmt.Errorf("%s, a part of %s, is no domain of a lower tier", child, name)
			}
		}
	}
	return nil
}

// run compares where instances start. Those of a hard topology may be in one domain alone, unless they are not already.
func (c *topologyCase) run(t *trial, differences tally) {
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	rules, tier, err := c.rules()
	if err != nil {
		t.Fatal(err)
	}
	s, nodes := c.machines()
	got := c.place(t, s, nodes, rules)
	if c.hard() && len(got) > 0 && len(c.crowds(nil, tier)) < 2 && len(c.crowds(got, tier)) != 1 {
		t.Errorf("the job is torn apart: it starts on %v beside %v", got, c.Given.Job.Running)
	}
	wrong := c.compare(got)
	if len(wrong) > 0 && c.hard() && len(c.crowds(nil, tier)) > 1 && len(got) > c.wanted() {
		differences.state(t, goesOn)
		return
	}
	for _, line := range wrong {
		t.Error(line)
	}
}

func (c *topologyCase) hard() bool { return c.Given.Job.Topology.Mode == "hard" }

// wanted is how many are to start.
func (c *topologyCase) wanted() int {
	if c.Then.Count != nil {
		return *c.Then.Count
	}
	return len(*c.Then.Bind)
}

// compare returns what is wrong with where instances start. Machines are alike, and so are domains: where machines are
// told, how many of the job are in each domain of the lowest tier matters.
func (c *topologyCase) compare(got []string) (wrong []string) {
	if want := c.wanted(); len(got) != want {
		wrong = append(wrong, fmt.Sprintf("%d start, on %v, want %d", len(got), got, want))
	}
	if c.Then.Bind == nil {
		return wrong
	}
	var told []string
	for _, task := range sortedKeys(*c.Then.Bind) {
		told = append(told, (*c.Then.Bind)[task])
	}
	lowest, _ := c.tiers()
	if g, w := c.crowds(got, lowest), c.crowds(told, lowest); !slices.Equal(g, w) {
		wrong = append(wrong, fmt.Sprintf("on %v they are %v by domain, want %v as on %v", got, g, w, told))
	}
	return wrong
}

// rules returns what the job says to be kept together, and in domains of which tier: where one of it runs, or anywhere
// as long as none does.
func (c *topologyCase) rules() (rules []constraint.Constraint, tier int, err error) {
	own := constraint.Constraint{Label: "job", Values: []string{string(stageJob)}}
	near, none := own, own
	lowest, _ := c.tiers()
	switch asked := c.Given.Job.Topology; {
	case asked.Mode == "soft":
		tier = lowest
	case c.hard() && asked.Name != "":
		tier = lowest
		rules = []constraint.Constraint{{Attribute: "tier-" + strings.Map(letters, asked.Name), Operator: constraint.Exists}}
	case c.hard():
		return nil, *asked.Highest, nil // the job itself says so
	case asked.Mode == "" && asked.Highest == nil:
		return nil, lowest, nil
	default:
		return nil, 0, fmt.Errorf("no rule for mode %q", asked.Mode)
	}
	near.Within, near.Operator, near.Count = attributeOfTier(tier), constraint.GreaterOrEqual, 1
	none.Within, none.Operator = "cluster", constraint.Equal // all machines are alike in having no such attribute
	together := constraint.Constraint{Any: []constraint.Constraint{near, none}, Soft: !c.hard()}
	return append(rules, together), tier, nil
}

// letters keeps the letters of a name, which may stand in the name of an attribute.
func letters(r rune) rune {
	if r < 'a' || r > 'z' {
		return -1
	}
	return r
}

func attributeOfTier(tier int) string { return fmt.Sprintf("tier%d", tier) }

// tiers returns the lowest and the highest tier that the case speaks of.
func (c *topologyCase) tiers() (lowest, highest int) {
	var all []int
	for _, d := range c.Given.Domains {
		all = append(all, d.Tier)
	}
	lowest = slices.Min(all)
	if asked := c.Given.Job.Topology.Highest; asked != nil {
		all = append(all, *asked)
	}
	return lowest, slices.Max(all)
}

// domainOf returns the largest domain up to a tier in which a machine is, "" if there is none.
func (c *topologyCase) domainOf(node string, tier int) (found string) {
	for at := node; ; {
		up := ""
		for _, name := range sortedKeys(c.Given.Domains) {
			if d := c.Given.Domains[name]; d.Tier <= tier && (slices.Contains(d.Nodes, at) || slices.Contains(d.Children, at)) {
				up = name
			}
		}
		if up == "" {
			return found
		}
		at, found = up, up
	}
}

// crowds returns how many of the job each domain of a tier has, in order, with those on further machines.
func (c *topologyCase) crowds(further []string, tier int) (all []int) {
	counts := map[string]int{}
	for _, node := range c.Given.Job.Running {
		counts[c.domainOf(node, tier)]++
	}
	for _, node := range further {
		counts[c.domainOf(node, tier)]++
	}
	for _, count := range counts {
		all = append(all, count)
	}
	slices.Sort(all)
	return all
}

// machines returns a value with the machines, which tell for each tier in which domain they are.
func (c *topologyCase) machines() (s *cluster.State, nodes map[string]facts.NodeIndex) {
	s, nodes = cluster.NewState(), map[string]facts.NodeIndex{}
	lowest, highest := c.tiers()
	for _, name := range sortedKeys(c.Given.Domains) {
		for _, node := range c.Given.Domains[name].Nodes {
			offer := &terms.Offer{Capacity: stageTask("main", 1).Resources}
			for tier := lowest; tier <= highest; tier++ {
				if d := c.domainOf(node, tier); d != "" {
					offer.Attributes = append(offer.Attributes, terms.EnvVar{Name: attributeOfTier(tier), Value: d})
				}
			}
			nodes[node] = s.EnsureNode(terms.NodeName(node)).Index
			s.SetOffer(nodes[node], offer)
		}
	}
	return s, nodes
}

// place returns on which machines instances start beside those that run.
func (c *topologyCase) place(t *trial, s *cluster.State, nodes map[string]facts.NodeIndex,
	constraints []constraint.Constraint) (names []string) {
	given := &c.Given.Job
	all := len(given.Running) + len(given.Pending)
	if given.MinMember > all {
		return nil // such a job is refused
	}
	spec := service(uint32(all), "run", terms.UpdatePolicy{})
	spec.MinAvailable = uint32(given.MinMember)
	spec.Tasks[0].Labels = []terms.EnvVar{{Name: "job", Value: string(stageJob)}}
	spec.Tasks[0].Constraints = constraints
	if c.hard() && given.Topology.Highest != nil {
		spec.Within = attributeOfTier(*given.Topology.Highest)
	}
	if problems := validate.Job(spec, rules.Released); len(problems) > 0 {
		t.Fatalf("the job is refused: %v", problems)
	}
	key := facts.KeyOf(s.AddJob(spec).ID, 0)
	for _, task := range sortedKeys(given.Running) {
		n, known := nodes[given.Running[task]]
		if !known {
			t.Fatalf("%s runs on %s, which is in no domain", task, given.Running[task])
		}
		s.Assign(key, n, 1, nil)
	}
	schedule.Run(s, nil, func(r facts.SlotRef) {
		slot, _ := s.SlotAt(r)
		names = append(names, string(s.Node(slot.Node).Name))
	}, nil)
	for _, line := range s.Audit() {
		t.Error(line)
	}
	return names
}
