package conformance

import (
	"fmt"
	"slices"
	"strings"

	"starling/schedule/entitle"
	"starling/terms"
)

// The differences from Volcano's queues. Each holds for every file.
var (
	guaranteeFloor = &difference{name: "guarantee is a floor", reason: "a guarantee is a floor under the share there; " +
		"a reservation comes before the share here, and what is left is divided by share alone"}
	kindsApart = &difference{name: "kinds apart", reason: "each kind is divided by itself here; " +
		"there a queue's dominant share holds back its other kinds, which matters to work that needs several"}
)

// queueKindsExcluded are the kinds of case that are left out.
var queueKindsExcluded = []string{"share", "capacity-deserved"}

// queueCase is a set of queues, or a tree of them, and what they deserve.
type queueCase struct {
	ID, Kind, Title, Source, Basis, Note string
	Given                                struct {
		Total  quantities
		Queues []queuePicture
		// Weights are by path from the root: root/eng/dev. Jobs are in the leaves.
		Weights map[string]int64
		Jobs    []queueJob
	}
	When struct{ Algorithm, Mode string }
	Then struct {
		Deserved, Allocated map[string]quantities
		Remaining           quantities
	}
}

// queuePicture is one queue with what its jobs request, running or not.
type queuePicture struct {
	Name                           string
	Weight                         int64
	Request, Guarantee, Capability quantities
	// Jobs is 0 for a queue without any.
	Jobs *int
}

// queueJob is a number of equal tasks.
type queueJob struct {
	Name, Path string
	Task       quantities
	Count      int64
}

// fitting returns what those of the tasks use that fit into an entitlement.
func (j *queueJob) fitting(into terms.Amounts) quantities {
	fits, used := j.Count, quantities{}
	task, _ := j.Task.amounts()
	for k, need := range task {
		if need > 0 {
			fits = min(fits, into[k]/need)
		}
	}
	for kind, need := range j.Task {
		used[kind] = need * quantity(fits)
	}
	return used
}

// queues runs a file of queue cases.
func queues(f *sheet) {
	f.runScenarios(func(t *trial, s *scenario, differences tally) {
		var kind struct{ Kind string }
		if err := s.node.Load(&kind); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(queueKindsExcluded, kind.Kind) {
			t.leaveOut(kind.Kind)
		}
		c := &queueCase{}
		s.read(t, c)
		switch algorithm := c.When.Algorithm; {
		case c.Kind == "deserved" && algorithm == "proportion":
			c.deserved(t, differences)
		case c.Kind == "hdrf" && algorithm == "hdrf" && c.When.Mode == "allocateUntilFull":
			c.hierarchy(t, differences)
		default:
			t.Errorf("no rule for kind %s with algorithm %s %s", c.Kind, algorithm, c.When.Mode)
		}
	})
}

// deserved compares what queues deserve with entitlements. A queue is a leaf whose guarantee is a static reservation.
// What a pool gets beyond what it asks for is no part of the comparison: there it stays with nobody.
func (c *queueCase) deserved(t *trial, differences tally) {
	in, claims := &entitle.Input{}, []terms.Amounts{}
	var err error
	if in.Capacity, err = c.Given.Total.amounts(); err != nil {
		t.Fatal(err)
	}
	for _, q := range c.Given.Queues {
		p, claim, err := q.pool()
		if err != nil {
			t.Fatalf("queue %s: %v", q.Name, err)
		}
		in.Pools, claims = append(in.Pools, p), append(claims, claim)
	}
	got := map[string]quantities{}
	for i, e := range entitle.Entitlements(in) {
		shown := quantities{}
		for k := range e.Total {
			shown[fileKind(terms.Kind(k))] = quantityOf(min(e.Total[k], claims[i][k]))
		}
		got[c.Given.Queues[i].Name] = shown
	}
	wrong := different("deserved", got, c.Then.Deserved, 0)
	if d := c.difference(); len(wrong) > 0 && d != nil &&
		len(different("model", c.proportion(), c.Then.Deserved, 0)) == 0 {
		t.Log(strings.Join(wrong, "\n"))
		differences.state(t, d)
		return
	}
	for _, line := range wrong {
		t.Error(line)
	}
	c.checkRemaining(t, got)
}

// difference returns the rule by which the case may differ, if upstream's own rule says what it says.
func (c *queueCase) difference() *difference {
	guaranteed := quantities{}
	for _, q := range c.Given.Queues {
		for kind, amount := range q.Guarantee {
			guaranteed[kind] += amount
		}
	}
	for kind, amount := range guaranteed {
		if amount > c.Given.Total[kind] {
			return grantedTwice
		}
	}
	if len(guaranteed) > 0 {
		return guaranteeFloor
	}
	return nil
}

func (c *queueCase) checkRemaining(t *trial, got map[string]quantities) {
	for kind, want := range c.Then.Remaining {
		left := c.Given.Total[kind]
		for _, q := range c.Given.Queues {
			left -= got[q.Name][kind]
		}
		if !near(float64(left), float64(want), 0) {
			t.Errorf("%s remaining is %.4f, want %.4f", kind, left, want)
		}
	}
}

// pool returns the queue as a pool, and what it may claim at most.
func (q *queuePicture) pool() (p entitle.Pool, claim terms.Amounts, err error) {
	spec := terms.NewPool(terms.PoolPath(q.Name))
	p.Spec, p.Parent = &spec, -1
	request, err := q.Request.amounts()
	if err != nil {
		return p, claim, err
	}
	guarantee, err := q.Guarantee.amounts()
	if err != nil {
		return p, claim, err
	}
	p.Demand.NonSlack = request
	for k := range spec.Quotas {
		spec.Quotas[k] = terms.Quota{Reservation: guarantee[k], Limit: terms.Unlimited, Share: q.Weight, Static: true}
		claim[k] = max(request[k], guarantee[k])
	}
	for name, most := range q.Capability {
		k, err := kindOf(name)
		if err != nil {
			return p, claim, err
		}
		spec.Quotas[k].Limit = max(most.units(), guarantee[k])
	}
	return p, claim, nil
}

// proportion is upstream's own rule, after section 4 of the reference. It shows that a file which differs differs by
// that rule and nothing else.
func (c *queueCase) proportion() map[string]quantities {
	all := map[string]quantities{}
	for _, q := range c.Given.Queues {
		all[q.Name] = quantities{}
	}
	for kind, total := range c.Given.Total {
		guaranteed := quantity(0)
		for _, q := range c.Given.Queues {
			guaranteed += q.Guarantee[kind]
		}
		remaining, met := total, map[string]bool{}
		for range 1000 {
			unmet := slices.DeleteFunc(slices.Clone(c.Given.Queues),
				func(q queuePicture) bool { return met[q.Name] || q.idle() })
			weights := quantity(0)
			for _, q := range unmet {
				weights += quantity(q.Weight)
			}
			if weights == 0 || remaining < 1e-9 {
				break
			}
			left := remaining
			for _, q := range unmet {
				before := all[q.Name][kind]
				now := q.clip(kind, before+remaining*quantity(q.Weight)/weights, max(0, total-guaranteed))
				met[q.Name] = q.Request[kind] <= now || now == before
				left += before - now
				all[q.Name][kind] = now
			}
			remaining = max(0, left)
		}
	}
	return all
}

// clip bounds what a queue deserves of a kind; free is what no guarantee fences off.
func (q *queuePicture) clip(kind string, deserved, free quantity) quantity {
	deserved = min(deserved, free+q.Guarantee[kind], q.Request[kind])
	if most, stated := q.Capability[kind]; stated {
		deserved = min(deserved, most)
	}
	return max(deserved, q.Guarantee[kind])
}

func (q *queuePicture) idle() bool { return q.Jobs != nil && *q.Jobs == 0 }

// hierarchy compares what the jobs of a tree get with how many of their tasks fit into the entitlements.
func (c *queueCase) hierarchy(t *trial, differences tally) {
	in, numbers, err := c.tree()
	if err != nil {
		t.Fatal(err)
	}
	several := false
	for _, job := range c.Given.Jobs {
		number, known := numbers[job.Path]
		task, err := job.Task.amounts()
		if !known || err != nil || number < 0 || in.Pools[number].Demand != (terms.Work{}) {
			t.Fatalf("job %s must be alone in its queue %s: %v", job.Name, job.Path, err)
		}
		kinds := 0
		for k := range task {
			in.Pools[number].Demand.NonSlack[k] = task[k] * job.Count
			kinds += int(min(task[k], 1))
		}
		several = several || kinds > 1
	}
	got := map[string]quantities{}
	all := entitle.Entitlements(in)
	for _, job := range c.Given.Jobs {
		got[job.Name] = job.fitting(all[numbers[job.Path]].Total)
	}
	wrong := different("allocated", got, c.Then.Allocated, 0)
	if len(wrong) > 0 && several {
		t.Log(strings.Join(wrong, "\n"))
		differences.state(t, kindsApart)
		return
	}
	for _, line := range wrong {
		t.Error(line)
	}
}

// tree returns the queues as pools without bounds, and the number of each path.
func (c *queueCase) tree() (*entitle.Input, map[string]int, error) {
	in, numbers := &entitle.Input{}, map[string]int{"root": -1}
	var err error
	if in.Capacity, err = c.Given.Total.amounts(); err != nil {
		return nil, nil, err
	}
	for _, path := range sortedKeys(c.Given.Weights) {
		if path == "root" {
			continue
		}
		parent, known := numbers[path[:max(strings.LastIndexByte(path, '/'), 0)]]
		if !known {
			return nil, nil, fmt.Errorf("queue %s has no parent", path)
		}
		spec := terms.NewPool(terms.PoolPath(path))
		for k := range spec.Quotas {
			spec.Quotas[k].Share = c.Given.Weights[path]
		}
		numbers[path] = len(in.Pools)
		in.Pools = append(in.Pools, entitle.Pool{Parent: parent, Spec: &spec})
	}
	return in, numbers, nil
}

// fileKind returns the name of a kind in Volcano's files.
func fileKind(k terms.Kind) string {
	if k == terms.Memory {
		return "mem"
	}
	return k.String()
}
