package conformance

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/cluster"
	"starling/terms"
	"starling/terms/pool"
)

// The differences from Peloton in what a pool may be. Each holds for every file.
var (
	noSlash = &difference{name: "no slash",
		reason: "every path begins at the root, and needs no slash to say so: analytics/etl"}
	noForce = &difference{name: "no force",
		reason: "nothing lets a tree break its rules: it would be refused by every fold"}
	onePolicy = &difference{name: "one policy",
		reason: "all pools have the same order of jobs, priority and then age, and no name for it"}
)

// poolCase is a request to change pools, or a bound that is computed.
type poolCase struct {
	told    `yaml:",inline"`
	Request *poolRequest
	Expect  struct {
		Result, Reason string
		// Bound is what a computed bound allows.
		Bound quantities `yaml:",inline"`
	}
	Reservation quantities
	Controllers *int `yaml:"controller_limit_percent"`
	Slack       *int `yaml:"slack_limit_percent"`
	// Tree are the paths of pools, among which Cases look.
	Tree  []string
	Cases []struct{ Path, Result string }
}

// poolRequest is one change of the standard tree. What it does not tell is such that nothing else is wrong.
type poolRequest struct {
	// Op is delete, or else a pool is written.
	Op string
	// Pool is a pool of the tree, or describes a new one; Name is the name of one below Parent.
	Pool, Name, Parent string
	// From and To are the parents of a pool that is to be moved.
	From string `yaml:"parent_from"`
	To   string `yaml:"parent_to"`
	// Exists tells that the pool is in the tree.
	Exists, Force bool
	quotaRequest  `yaml:",inline"`
	// Resources are quotas of several kinds.
	Resources []quotaEntry
	// ParentReservation and ParentLimit are of the parent, Existing is what others below it reserve, New the pool.
	ParentReservation *quantity    `yaml:"parent_reservation"`
	ParentLimit       *quantity    `yaml:"parent_limit"`
	Existing          *quantitySum `yaml:"existing_children"`
	New               *quantity    `yaml:"new_child"`
	// Total is what the pools below the parent reserve together.
	Total *quantity `yaml:"total_children"`
	// NewName is what the pool, beside others, is to be called: here it would be made anew.
	NewName string `yaml:"new_name"`
	// Kinds are those that the pool states.
	Kinds       []string
	Controllers *int `yaml:"controller_limit_percent"`
	Slack       *int `yaml:"slack_limit_percent"`
	// Path is only looked at; Policy null is none.
	Path, Policy yaml.Node
	// Allocation and Demand are numbers, or ">0".
	Allocation, Demand string
}

// quotaRequest is the quota of one kind, cpu if none is told.
type quotaRequest struct {
	Kind               string
	Reservation, Limit *quantity
	Share              *int64
	Type               string
}

// quotaEntry is a quota in a list, or the name of its kind alone.
type quotaEntry quotaRequest

// UnmarshalYAML reads either.
func (q *quotaEntry) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		return node.Load(&q.Kind)
	}
	return decode(node, (*quotaRequest)(q))
}

// quantitySum is an amount, or several that are added up.
type quantitySum quantity

// UnmarshalYAML reads either.
func (q *quantitySum) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		return node.Load((*quantity)(q))
	}
	var all []quantity
	err := node.Load(&all)
	for _, one := range all {
		*q += quantitySum(one)
	}
	return err
}

// poolRequests runs a file of pool requests.
func poolRequests(f *sheet) {
	f.runScenarios(func(t *trial, s *scenario, differences tally) {
		c := &poolCase{}
		s.read(t, c)
		if len(c.Cases) > 0 {
			c.checkPaths(t)
			return
		}
		if c.Request == nil {
			c.checkBound(t)
			return
		}
		if len(c.Expect.Bound) > 0 {
			t.Errorf("no rule for expectations %v", sortedKeys(c.Expect.Bound))
		}
		why, d := c.Request.refusal()
		got := map[bool]string{true: "accept", false: "reject"}[why == ""]
		switch {
		case got == c.Expect.Result:
			t.Log(got, why)
		case d == nil:
			t.Errorf("%s %s, want %s: %s", got, why, c.Expect.Result, c.Expect.Reason)
		default:
			differences.state(t, d)
		}
	})
}

// refusal returns why the request is refused, "" if it is not, and the difference by which a file may say otherwise.
func (r *poolRequest) refusal() (string, *difference) {
	switch {
	case r.Path.Kind != 0:
		return r.pathRefusal()
	case fileProblem(r.kinds()) != "":
		return fileProblem(r.kinds()), nil
	case r.Policy.Kind != 0 && r.Policy.Tag != "!!null" && r.Policy.Value != "PriorityFIFO":
		return "", onePolicy
	}
	why := ""
	for _, p := range r.problems() {
		why += p.Path + ": " + p.Reason + "; "
	}
	if r.Force {
		return why, noForce
	}
	return why, nil
}

func (r *poolRequest) pathRefusal() (string, *difference) {
	path, rooted := strings.CutPrefix(r.Path.Value, "/")
	switch {
	case r.Path.Tag == "!!null":
		return terms.PoolPath("").Problem(), nil
	case rooted && path == "":
		return "", nil // the root's path, which is empty here
	case rooted:
		return terms.PoolPath(path).Problem(), nil
	}
	return terms.PoolPath(path).Problem(), noSlash
}

// problems makes the change that is asked for and returns what is wrong with it.
func (r *poolRequest) problems() []terms.Problem {
	tree := standardTree()
	known, isKnown := locate(tree, r.Pool)
	if r.Op == "delete" {
		var busy pool.Busy
		if !isKnown {
			known = "respool1/respool11"
		}
		if !slices.Contains([]string{"", "0"}, r.Allocation) || !slices.Contains([]string{"", "0"}, r.Demand) {
			busy = pool.Busy{known}
		}
		return tree.Change(nil, []terms.PoolPath{known}).Problems(busy)
	}
	if r.NewName != "" {
		beside, _ := pool.Split(known)
		return created(tree, standardPool(terms.PoolPath(strings.TrimPrefix(string(beside)+"/"+r.NewName, "/"))))
	}
	if r.Total != nil {
		r.Existing = (*quantitySum)(r.Total)
	}
	spec := standardPool(r.path(tree))
	r.fill(&spec)
	if r.ParentReservation != nil || r.ParentLimit != nil || r.Existing != nil {
		parent, child := &tree[1].Quotas[r.kind()], &tree[2].Quotas[r.kind()]
		set(&parent.Reservation, r.ParentReservation)
		parent.Limit = max(parent.Limit, parent.Reservation)
		set(&parent.Limit, r.ParentLimit)
		set(&child.Reservation, (*quantity)(r.Existing))
		child.Limit = max(child.Limit, child.Reservation)
	}
	if _, there := tree.Find(spec.Path); r.Exists && !there {
		tree = tree.Change([]terms.Pool{spec}, nil)
	}
	if _, there := tree.Find(spec.Path); isKnown && !there {
		return []terms.Problem{{Path: string(spec.Path), Reason: "a pool is not moved: made anew, and deleted where it was"}}
	} else if isKnown {
		return tree.Change([]terms.Pool{spec}, nil).Problems(nil)
	}
	return created(tree, spec)
}

// created returns what is wrong with a new pool. A change of the whole tree puts pools in, and may find them there.
func created(tree pool.Tree, spec terms.Pool) []terms.Problem {
	if _, found := tree.Find(spec.Path); found {
		return []terms.Problem{{Path: string(spec.Path), Reason: "exists already"}}
	}
	return tree.Change([]terms.Pool{spec}, nil).Problems(nil)
}

// path returns where the pool of the request is to stand.
func (r *poolRequest) path(tree pool.Tree) terms.PoolPath {
	name, above := r.Name, r.To
	if name == "" {
		name = r.Pool
	}
	if above == "" {
		above = r.Parent
	}
	known, isKnown := locate(tree, name)
	parent, _ := locate(tree, above)
	switch {
	case name == "root", above == "root":
		return terms.PoolPath(name)
	case above != "" && parent == "":
		return terms.PoolPath(above + "/" + name)
	case above != "":
		return parent + terms.PoolPath("/"+name)
	case isKnown:
		return known
	}
	return "respool1/new"
}

// kinds returns the names of the kinds that the request states.
func (r *poolRequest) kinds() []string {
	all := slices.Clone(r.Kinds)
	for _, entry := range append(slices.Clone(r.Resources), quotaEntry(r.quotaRequest)) {
		if q := quotaRequest(entry); q != (quotaRequest{}) {
			all = append(all, orElse(q.Kind, "cpu"))
		}
	}
	return all
}

// fill gives the pool what the request tells of it.
func (r *poolRequest) fill(spec *terms.Pool) {
	for _, entry := range append(slices.Clone(r.Resources), quotaEntry(r.quotaRequest)) {
		q := quotaRequest(entry)
		if q == (quotaRequest{}) {
			continue
		}
		k := q.kind()
		set(&spec.Quotas[k].Reservation, q.Reservation)
		set(&spec.Quotas[k].Limit, q.Limit)
		if q.Share != nil {
			spec.Quotas[k].Share = *q.Share
		}
		spec.Quotas[k].Static = q.Type == "static"
	}
	if r.New != nil {
		q := &spec.Quotas[r.kind()]
		q.Reservation, q.Limit = r.New.units(), max(q.Limit, r.New.units())
	}
	spec.ControllerLimit, spec.SlackLimit = percentOf(r.Controllers, spec.ControllerLimit),
		percentOf(r.Slack, spec.SlackLimit)
}

// kind returns the kind that is told, or else cpu.
func (q *quotaRequest) kind() terms.Kind {
	k, _ := pool.Kind(q.Kind)
	return k
}

func set(to *int64, from *quantity) {
	if from != nil {
		*to = from.units()
	}
}

// percentOf translates a percent; what is none becomes one that is above 100.
func percentOf(percent *int, otherwise terms.Percent) terms.Percent {
	switch {
	case percent == nil:
		return otherwise
	case *percent < 0 || *percent > 100:
		return 101
	}
	return terms.Percent(*percent)
}

// checkBound compares what controllers or revocable work may have with what is expected.
func (c *poolCase) checkBound(t *trial) {
	spec := terms.NewPool("p")
	amounts, err := c.Reservation.amounts()
	if err != nil {
		t.Fatal(err)
	}
	for k := range amounts {
		spec.Quotas[k].Reservation = amounts[k]
	}
	spec.ControllerLimit, spec.SlackLimit = percentOf(c.Controllers, spec.ControllerLimit),
		percentOf(c.Slack, spec.SlackLimit)
	most := spec.SlackMost
	if c.Controllers != nil {
		most = spec.ControllerMost
	}
	if c.Expect.Result != "" || len(c.Expect.Bound) == 0 || (c.Controllers == nil) == (c.Slack == nil) {
		t.Fatal("a case without request has one bound and what it allows")
	}
	for name, want := range c.Expect.Bound {
		k, err := kindOf(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := quantityOf(most(k)); !near(float64(got), float64(want), 0) {
			t.Errorf("%s: got %.4f, want %.4f", name, got, want)
		}
	}
}

// standardTree is the tree of the files: two pools at the top with the standard quota, and three below them.
func standardTree() pool.Tree {
	tree := pool.Tree(cluster.NewState().Pools())
	for _, path := range []terms.PoolPath{"respool1", "respool1/respool11", "respool1/respool12", "respool2",
		"respool2/respool21"} {
		tree = append(tree, standardPool(path))
		if parent, _ := pool.Split(path); parent == "" {
			for k := range tree[len(tree)-1].Quotas {
				tree[len(tree)-1].Quotas[k].Reservation = tree[len(tree)-1].Quotas[k].Limit / 10
			}
		}
	}
	return tree
}

// standardPool has the standard limits and share, and no reservation: those of all below a pool must add up to its own.
func standardPool(path terms.PoolPath) terms.Pool {
	spec := terms.NewPool(path)
	for k := range spec.Quotas {
		spec.Quotas[k].Limit = quantity(1000).units()
	}
	spec.Quotas[terms.GPU].Limit = quantity(4).units()
	return spec
}

// locate returns the path of the pool with that name of its own.
func locate(tree pool.Tree, name string) (terms.PoolPath, bool) {
	for i := range tree {
		if _, own := pool.Split(tree[i].Path); own == name {
			return tree[i].Path, true
		}
	}
	return "", false
}
