package conformance

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/schedule/entitle"
	"starling/terms"
)

// told are the keys of a case that only people read.
type told struct {
	ID, Origin, What, Note string
	// Asserted are the whole numbers that upstream's own tests compare with; expect has them exactly.
	Asserted any `yaml:"asserted_by_peloton_test"`
}

// entitlementCase is a tree with its load, and what each pool is entitled to.
type entitlementCase struct {
	told    `yaml:",inline"`
	Cluster struct {
		Capacity quantities
		SlackCPU quantity `yaml:"slack_cpu"`
	}
	Pools     []poolPicture
	Load      map[string]loadPicture
	Expect    entitlementPicture
	Tolerance float64
	// Ideal goes before Expect where it is data: it stands where upstream is worth changing.
	Ideal yaml.Node `yaml:"ideal_for_a_new_design"`
}

// poolPicture is a pool; a kind that it does not tell of has no reservation, limit 0 and share 1.
type poolPicture struct {
	ID, Parent string
	SlackLimit int `yaml:"slack_limit_percent"`
	Resources  map[string]quotaPicture
}

// quotaPicture is a quota; the type is elastic or static.
type quotaPicture struct {
	Reservation, Limit quantity
	Share              int64
	Type               string
}

// loadPicture is what a leaf's jobs hold and ask for.
type loadPicture struct {
	Demand      quantities
	SlackDemand quantities `yaml:"slack_demand"`
	NonSlack    quantities `yaml:"nonslack_alloc"`
	Slack       quantities `yaml:"slack_alloc"`
	Total       quantities `yaml:"total_alloc"`
}

// entitlementPicture is what pools are entitled to; what is not told is not compared.
type entitlementPicture struct {
	Entitlement map[string]quantities
	Slack       map[string]quantities `yaml:"slack_entitlement"`
	NonSlack    map[string]quantities `yaml:"non_slack_entitlement"`
}

// entitlements runs a file of entitlement cases.
func entitlements(f *sheet) { f.runScenarios(entitlement) }

func entitlement(t *trial, s *scenario, differences tally) {
	switch {
	case s.has("pools"):
		c := &entitlementCase{}
		s.read(t, c)
		c.run(t, differences)
	case s.has(leavesPrefix):
		c := &sumCase{}
		s.read(t, c)
		c.run(t)
	case s.has("before"):
		c := &capacityCase{}
		s.read(t, c)
		c.run(t)
	case s.has("capacity") || s.has("cases"):
		s.read(t, &struct {
			told                    `yaml:",inline"`
			Capacity, Expect, Cases any
		}{})
		differences.state(t, capacityKnown)
	default:
		t.Error("the case has no pools, no leaf_ and no capacity: no rule for it")
	}
}

// run compares what the case expects with ours, and ours with a plain model of the same rules.
func (c *entitlementCase) run(t *trial, differences tally) {
	in, numbers, err := c.input()
	if err != nil {
		t.Fatal(err)
	}
	want := c.Expect
	if c.Ideal.Kind == yaml.MappingNode {
		if want, err = idealOf(&c.Ideal); err != nil {
			t.Fatal(err)
		}
	}
	ours := oursOf(in, numbers)
	for _, line := range c.compare(ours, newPoolModel(in, nil).picture(numbers)) {
		t.Errorf("ours and the model: %s", line)
	}
	wrong := c.compare(ours, want)
	if len(wrong) == 0 {
		return
	}
	because := c.explained(in, numbers, want)
	if because == nil {
		t.Errorf("%s\nand no set of known differences explains the file", strings.Join(wrong, "\n"))
	}
	for _, d := range because {
		differences.state(t, d)
	}
	if because != nil {
		t.Log(strings.Join(wrong, "\n"))
	}
}

// idealOf reads what a new design should answer: all pictures, or the entitlements alone.
func idealOf(node *yaml.Node) (p entitlementPicture, err error) {
	if node.Load(&p, yaml.WithKnownFields()) == nil {
		return p, nil
	}
	if err = node.Load(&p.Entitlement); err != nil {
		return p, fmt.Errorf("read ideal_for_a_new_design: %w", err)
	}
	return p, nil
}

// explained returns the smallest set of differences with which the model says what the file says, nil if there is
// none. So a file that differs for any other reason fails.
func (c *entitlementCase) explained(in *entitle.Input, numbers map[string]int, want entitlementPicture) []*difference {
	all := upstreamDefects()
	var smallest []*difference
	for set := range 1 << len(all) {
		var chosen []*difference
		for i, d := range all {
			if set>>i&1 == 1 {
				chosen = append(chosen, d)
			}
		}
		if smallest != nil && len(chosen) >= len(smallest) {
			continue
		}
		if len(c.compare(newPoolModel(in, chosen).picture(numbers), want)) == 0 {
			smallest = chosen
		}
	}
	return smallest
}

// compare lists where got is not what is wanted.
func (c *entitlementCase) compare(got, want entitlementPicture) []string {
	return slices.Concat(
		different("entitlement", got.Entitlement, want.Entitlement, c.Tolerance),
		different("slack entitlement", got.Slack, want.Slack, c.Tolerance),
		different("non-slack entitlement", got.NonSlack, want.NonSlack, c.Tolerance))
}

// input translates the case. It also returns the number of each pool; the root's is -1.
func (c *entitlementCase) input() (*entitle.Input, map[string]int, error) {
	in, numbers := &entitle.Input{}, map[string]int{"root": -1}
	var err error
	if in.Capacity, err = c.Cluster.Capacity.amounts(); err != nil {
		return nil, nil, err
	}
	in.Slack[terms.CPU] = c.Cluster.SlackCPU.units()
	for waiting := c.Pools; len(waiting) > 0; {
		at := slices.IndexFunc(waiting, func(p poolPicture) bool { _, known := numbers[p.Parent]; return known })
		if at < 0 {
			return nil, nil, fmt.Errorf("pool %s has no parent %s", waiting[0].ID, waiting[0].Parent)
		}
		p := waiting[at]
		waiting = slices.Delete(slices.Clone(waiting), at, at+1)
		spec, err := p.spec()
		if err != nil {
			return nil, nil, fmt.Errorf("pool %s: %w", p.ID, err)
		}
		numbers[p.ID] = len(in.Pools)
		in.Pools = append(in.Pools, entitle.Pool{Parent: numbers[p.Parent], Spec: spec})
	}
	for name, load := range c.Load {
		number, known := numbers[name]
		if !known || number < 0 {
			return nil, nil, fmt.Errorf("load of %s, which is no pool", name)
		}
		if err := load.into(&in.Pools[number]); err != nil {
			return nil, nil, fmt.Errorf("load of %s: %w", name, err)
		}
	}
	return in, numbers, nil
}

func (p *poolPicture) spec() (*terms.Pool, error) {
	spec := terms.NewPool(terms.PoolPath(p.ID))
	for k := range spec.Quotas {
		spec.Quotas[k].Limit = 0
	}
	spec.SlackLimit = terms.Percent(p.SlackLimit)
	for name, r := range p.Resources {
		k, err := kindOf(name)
		if err != nil {
			return nil, err
		}
		if r.Type != "" && r.Type != "elastic" && r.Type != "static" {
			return nil, fmt.Errorf("%s: there is no type %q", name, r.Type)
		}
		spec.Quotas[k] = terms.Quota{Reservation: r.Reservation.units(), Limit: r.Limit.units(), Share: r.Share,
			Static: r.Type == "static"}
	}
	return &spec, nil
}

func (l *loadPicture) into(p *entitle.Pool) (err error) {
	total, err := l.Total.amounts()
	for _, part := range []struct {
		from quantities
		to   *terms.Amounts
	}{
		{l.Demand, &p.Demand.NonSlack}, {l.SlackDemand, &p.Demand.Slack},
		{l.NonSlack, &p.Allocated.NonSlack}, {l.Slack, &p.Allocated.Slack},
	} {
		amounts, wrong := part.from.amounts()
		if wrong != nil {
			err = wrong
		}
		*part.to = amounts
	}
	if l.NonSlack == nil && l.Total != nil {
		for k := range total {
			p.Allocated.NonSlack[k] = total[k] - p.Allocated.Slack[k]
		}
	}
	return err
}

// oursOf returns our entitlements as the files show them. The root has what the cluster has.
func oursOf(in *entitle.Input, numbers map[string]int) entitlementPicture {
	all := entitle.Entitlements(in)
	picture := entitlementPicture{map[string]quantities{}, map[string]quantities{}, map[string]quantities{}}
	for name, number := range numbers {
		e := entitle.Entitlement{Total: in.Capacity, NonSlack: in.Capacity, Slack: in.Slack}
		if number >= 0 {
			e = all[number]
		}
		picture.set(name, e)
	}
	return picture
}

func (p *entitlementPicture) set(name string, e entitle.Entitlement) {
	p.Entitlement[name], p.Slack[name], p.NonSlack[name] = quantities{}, quantities{}, quantities{}
	for k := range e.Total {
		kind := terms.Kind(k).String()
		p.Entitlement[name][kind] = quantityOf(e.Total[k])
		p.Slack[name][kind] = quantityOf(e.Slack[k])
		p.NonSlack[name][kind] = quantityOf(e.NonSlack[k])
	}
}
