package place

import (
	"starling/cluster"
	"starling/terms"
	"starling/terms/constraint"
)

// search is the placing of one task.
type search struct {
	s     *cluster.State
	key   cluster.TaskKey
	spec  *terms.Task
	visit Visit
	// simple tells that only resources decide, exclusive that nodes kept for such work may be taken.
	simple, exclusive bool
	// minds tells that rules ask about what the task itself runs, helps that an instance may let another one in.
	minds, helps bool

	// perClass are the rules of the present phase that hold alike on all nodes of a class, perNode the others.
	perClass, perNode []*constraint.Constraint
	// verdicts remembers whether perClass holds: 0 not asked, 1 yes, 2 no.
	verdicts []uint8
	gaps     *gaps
	// own, unless nil, is how many instances of the task each node runs, and one more; 0 has not been counted yet.
	own []uint32
	// admit, unless nil, takes the room of one instance of a version in its pool, or only tells that there is room if the
	// instance comes later; refused tells that it refused some.
	admit   func(spec *terms.Task, later bool) bool
	refused bool
	// members tells that only main seats are placed: those of the gang.
	members bool
	// spot bounds how many instances go where; nil does not.
	spot *spot
	// domain bounds where instances may go; nil does not. chosen tells that it was chosen for the search, and does not
	// follow from where instances of the job are.
	domain *domain
	chosen bool
	// asked is the node that a rule is asked about.
	asked *cluster.Node
	// avoids tells that the node avoided is not to be taken.
	avoided cluster.NodeIndex
	avoids  bool
}

func newSearch(s *cluster.State, key cluster.TaskKey, visit Visit) *search {
	id, task := key.Split()
	j := s.Job(id)
	return searchFor(s, key, j.TaskSpecOf(task, j.Version), visit)
}

// searchFor looks for nodes for a task as it is in some version.
func searchFor(s *cluster.State, key cluster.TaskKey, spec *terms.Task, visit Visit) *search {
	q := &search{s: s, key: key, spec: spec, visit: visit}
	if spec == nil {
		return q // the version has no such task
	}
	q.simple = len(q.spec.Constraints)+len(q.spec.Devices)+len(q.spec.Ports) == 0 && q.spec.PerNodeMax == 0
	for i := range q.spec.Constraints {
		q.exclusive = q.exclusive || q.spec.Constraints[i].Mentions(terms.ExclusiveAttribute)
		q.spec.Constraints[i].EachLeaf(q.mind)
	}
	q.locate()
	return q
}

// within bounds the search by what the spots leave the task.
func (q *search) within(s spots) *search {
	q.spot = s.of(q.key)
	return q
}

// assign gives a node to the next instances of the task.
func (q *search) assign(n cluster.NodeIndex, count uint32) {
	q.s.Assign(q.key, n, count, q.visit)
	q.addOwn(n, count)
	q.spot.take(n, count)
}

// mind notes whether the task's own instances count in a part of its rules.
func (q *search) mind(leaf *constraint.Constraint) {
	for _, l := range q.spec.Labels {
		if leaf.Label == l.Name && leaf.Values[0] == l.Value {
			q.minds, q.helps = true, q.helps || leaf.GainsByMore()
		}
	}
}

func (q *search) task() *cluster.Task { return taskOf(q.s, q.key) }

// phases returns how often nodes are tried: first those where all rules hold, and then, if soft ones have ended, those
// where the others do.
func (q *search) phases() int {
	for i := range q.spec.Constraints {
		if c := &q.spec.Constraints[i]; c.Soft && q.s.SoftEnds(q.key, c) <= q.s.Time {
			return 2
		}
	}
	return 1
}

// enter begins a phase.
func (q *search) enter(phase int) {
	if len(q.spec.Constraints) == 0 {
		return
	}
	q.perClass, q.perNode, q.verdicts = q.perClass[:0], q.perNode[:0], nil
	for i := range q.spec.Constraints {
		c := &q.spec.Constraints[i]
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
func (q *search) atOnce(want uint32) uint32 {
	if q.helps {
		return min(want, 1)
	}
	return want
}

// allowed tells whether the rules hold on the node. Those about its class are asked once per class.
func (q *search) allowed(node *cluster.Node) bool {
	q.asked = node
	if q.domain != nil && !q.domain.has(node) {
		return false
	}
	if len(q.perClass) > 0 {
		if q.verdicts == nil {
			q.verdicts = make([]uint8, q.s.Classes())
		}
		verdict := &q.verdicts[node.Class]
		if *verdict == 0 {
			*verdict = 2
			if q.hold(q.perClass) {
				*verdict = 1
			}
		}
		if *verdict == 2 {
			return false
		}
	}
	return q.hold(q.perNode)
}

func (q *search) hold(rules []*constraint.Constraint) bool {
	for _, c := range rules {
		if !c.Holds(q) {
			return false
		}
	}
	return true
}

// Attribute returns the value of an attribute of the node that a rule is asked about.
func (q *search) Attribute(name string) (value string, exists bool) {
	return q.asked.Offer.Attribute(name)
}

// Instances returns how many instances a rule counts for the node that it is asked about.
func (q *search) Instances(c *constraint.Constraint) uint32 {
	return q.s.Instances(q.spec, c, q.asked)
}
