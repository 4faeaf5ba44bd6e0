package place

import (
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/terms"
	"starling/terms/constraint"
)

// Search is the placing of one task.
type Search struct {
	s     *cluster.State
	key   facts.TaskKey
	Spec  *terms.Task
	visit Visit
	// simple tells that only resources decide, exclusive that nodes kept for such work may be taken.
	simple, exclusive bool
	// minds tells that rules ask about what the task itself runs, helps that an instance may let another one in.
	minds, helps bool

	// perClass are the rules of the present phase that hold alike on all nodes of a class, perNode the others.
	perClass, perNode []*constraint.Constraint
	// perClassHolds remembers whether perClass holds: 0 not asked, 1 yes, 2 no.
	perClassHolds []uint8
	Gaps          *Gaps
	// own, unless nil, is how many instances of the task each node runs, and one more; 0 has not been counted yet.
	own []uint32
	// admit, unless nil, takes the room of one instance of a version in its pool, or only tells that there is room if the
	// instance comes later.
	Admit func(spec *terms.Task, later bool) bool
	// members tells that only main seats are placed: those of the gang.
	members bool
	// spot bounds how many instances go where; nil does not.
	spot *Spot
	// domain bounds where instances may go; nil does not. chosen tells that it was chosen for the search, and does not
	// follow from where instances of the job are.
	domain *Domain
	chosen bool
	// asked is the node that a rule is asked about.
	asked *cluster.Node
	// avoids tells that the node avoided is not to be taken.
	avoided facts.NodeIndex
	avoids  bool
}

// NewSearch looks for nodes for a task as it is in its newest version.
func NewSearch(s *cluster.State, key facts.TaskKey, visit Visit) *Search {
	return new(Search).Again(s, key, visit)
}

// Again is NewSearch in the memory of a search that is over.
func (q *Search) Again(s *cluster.State, key facts.TaskKey, visit Visit) *Search {
	id, task := key.Split()
	j := s.Job(id)
	*q = Search{s: s, key: key, Spec: j.TaskSpecOf(task, j.Version), visit: visit}
	q.begin()
	return q
}

// SearchFor looks for nodes for a task as it is in some version.
func SearchFor(s *cluster.State, key facts.TaskKey, spec *terms.Task, visit Visit) *Search {
	q := &Search{s: s, key: key, Spec: spec, visit: visit}
	q.begin()
	return q
}

// begin looks at what the task asks for.
func (q *Search) begin() {
	if q.Spec == nil {
		return // the version has no such task
	}
	q.simple = len(q.Spec.Constraints)+len(q.Spec.Devices)+len(q.Spec.Ports) == 0 && q.Spec.PerNodeMax == 0
	for i := range q.Spec.Constraints {
		q.exclusive = q.exclusive || q.Spec.Constraints[i].Mentions(terms.ExclusiveAttribute)
		q.Spec.Constraints[i].EachLeaf(q.mind)
	}
	q.locate()
}

// Within bounds the search by what the spots leave the task.
func (q *Search) Within(s Spots) *Search {
	q.spot = s.of(q.key)
	return q
}

// assign gives a node to the next instances of the task.
func (q *Search) assign(n facts.NodeIndex, count uint32) {
	q.s.Assign(q.key, n, count, q.visit)
	q.addOwn(n, count)
	q.spot.take(n, count)
}

// mind notes whether the task's own instances count in a part of its rules.
func (q *Search) mind(leaf *constraint.Constraint) {
	for _, l := range q.Spec.Labels {
		if leaf.Label == l.Name && leaf.Values[0] == l.Value {
			q.minds, q.helps = true, q.helps || leaf.GainsByMore()
		}
	}
}

// task returns the task as it stands.
func (q *Search) task() *workload.Task {
	id, task := q.key.Split()
	return q.s.Job(id).Tasks[task]
}

// Task is the number of the task in its job.
func (q *Search) Task() int {
	_, task := q.key.Split()
	return task
}

// phases returns how often nodes are tried: first those where all rules hold, and then, if soft ones have ended, those
// where the others do.
func (q *Search) phases() int {
	for i := range q.Spec.Constraints {
		if c := &q.Spec.Constraints[i]; c.Soft && q.s.SoftEnds(q.key, c) <= q.s.Time {
			return 2
		}
	}
	return 1
}

// enter begins a phase.
func (q *Search) enter(phase int) {
	if len(q.Spec.Constraints) == 0 {
		return
	}
	q.perClass, q.perNode, q.perClassHolds = q.perClass[:0], q.perNode[:0], nil
	for i := range q.Spec.Constraints {
		c := &q.Spec.Constraints[i]
		switch {
		case phase == 1 && c.Soft && q.s.SoftEnds(q.key, c) <= q.s.Time:
		case c.Social() || c.Mentions(terms.NodeAttribute):
			q.perNode = append(q.perNode, c)
		default:
			q.perClass = append(q.perClass, c)
		}
	}
}

// atOnce returns how many of so many instances may be placed before all is looked at again.
func (q *Search) atOnce(want uint32) uint32 {
	if q.helps {
		return min(want, 1)
	}
	return want
}

// allowed tells whether the rules hold on the node. Those about its class are asked once per class.
func (q *Search) allowed(node *cluster.Node) bool {
	q.asked = node
	if q.domain != nil && !q.domain.Has(node) {
		return false
	}
	if len(q.perClass) > 0 {
		if q.perClassHolds == nil {
			q.perClassHolds = make([]uint8, q.s.Classes())
		}
		holds := &q.perClassHolds[node.Class]
		if *holds == 0 {
			*holds = 2
			if q.hold(q.perClass) {
				*holds = 1
			}
		}
		if *holds == 2 {
			return false
		}
	}
	return q.hold(q.perNode)
}

func (q *Search) hold(rules []*constraint.Constraint) bool {
	for _, c := range rules {
		if !c.Holds(q) {
			return false
		}
	}
	return true
}

// Attribute returns the value of an attribute of the node that a rule is asked about.
func (q *Search) Attribute(name string) (value string, exists bool) {
	return q.asked.Offer.Attribute(name)
}

// Instances returns how many instances a rule counts for the node that it is asked about.
func (q *Search) Instances(c *constraint.Constraint) uint32 {
	return q.s.Instances(q.Spec, c, q.asked)
}
