package place

import (
	"math/bits"
	"slices"

	"starling/cluster"
	"starling/cluster/division"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/terms"
	"starling/terms/constraint"
)

// roomMax bounds how much room is counted on a node.
const roomMax = 1000

// Domain are the nodes that have one value of an attribute, such as a rack.
type Domain struct {
	attribute, Value string
	// any tells that the value does not matter, as long as the node has one.
	any bool
	// nodes are those of the domain, pages the numbers of their pages; nil where any value will do.
	nodes []division.Page
	Pages []int
}

// NewDomain returns the nodes with one value of an attribute, by its number in their division.
func NewDomain(division *division.Division, at int) *Domain {
	d := &Domain{attribute: division.Attribute, Value: division.Values[at], nodes: division.Pages[at]}
	for _, page := range d.nodes {
		d.Pages = append(d.Pages, page.Page)
	}
	return d
}

// Has tells whether a node is in the domain.
func (d *Domain) Has(node *cluster.Node) bool {
	value, exists := node.Offer.Attribute(d.attribute)
	return exists && d.any || !d.any && value == d.Value
}

// In bounds the search to a domain, which was chosen for it; nil does not.
func (q *Search) In(d *Domain) *Search {
	q.domain, q.chosen = d, true
	if d != nil {
		q.simple = false
	}
	return q
}

// locate bounds the search to the domain where instances of the job are, or as long as none is, to the nodes that are
// in one.
func (q *Search) locate() {
	id, _ := q.key.Split()
	j := q.s.Job(id)
	if j.Spec.Within == "" || q.chosen {
		return
	}
	q.domain, q.simple = &Domain{attribute: j.Spec.Within}, false
	value, found := HomeOf(q.s, j)
	q.domain.Value, q.domain.any = value, !found
}

// HomeOf returns in which domain the first instance of a job is that has a node and was not told to stop; ok is false
// if there is none. The others belong there, too.
func HomeOf(s *cluster.State, j *workload.Job) (value string, ok bool) {
	for task := 0; task < len(j.Tasks) && !ok; task++ {
		if j.Tasks[task].Live() == 0 {
			continue
		}
		s.EachSlot(j.ID, task, func(_ facts.SlotRef, slot facts.Slot) bool {
			if s.Visit(1); slot.Phase.Stays() {
				if offer := s.Node(slot.Node).Offer; offer != nil {
					value, ok = offer.Attribute(j.Spec.Within)
				}
			}
			return !ok
		})
	}
	return value, ok
}

// TogetherBy returns an attribute by whose values the members of a gang are to be together: the one that their job
// names, or else of the first rule by which they ask to be near their own kind; "" for none.
func TogetherBy(j *workload.Job) (attribute string) {
	attribute = j.Spec.Within
	for task := 0; task < len(j.Tasks) && attribute == ""; task++ {
		spec := j.TaskSpecOf(task, j.Version)
		for i := 0; spec != nil && i < len(spec.Constraints); i++ {
			spec.Constraints[i].EachLeaf(func(leaf *constraint.Constraint) {
				own := slices.ContainsFunc(j.Spec.Tasks, func(t terms.Task) bool {
					return leaf.Label != "" && slices.Contains(t.Labels, terms.EnvVar{Name: leaf.Label, Value: leaf.Values[0]})
				})
				if own && attribute == "" && leaf.Begins() {
					attribute = leaf.Within
				}
			})
		}
	}
	return attribute
}

// Room returns for how many instances of the task the nodes of a domain have room, by all rules but those about what
// runs around and those that are soft.
func (q *Search) Room(d *Domain) (count uint32) {
	for _, kept := range q.purposes() {
		for _, page := range d.nodes {
			q.s.EachRoomOf(page, kept, &q.Spec.Resources, func(n facts.NodeIndex) {
				q.s.Visit(1)
				if q.ever(n) {
					count += q.times(n, roomMax)
				}
			})
		}
	}
	return count
}

// each visits the nodes of the domain until visit returns false; of nil all nodes.
func (d *Domain) each(s *cluster.State, visit func(n facts.NodeIndex) bool) {
	if d == nil || d.nodes == nil {
		for n := range facts.NodeIndex(s.Nodes()) {
			if s.Visit(1); !visit(n) {
				return
			}
		}
		return
	}
	for _, page := range d.nodes {
		for nodes := page.Nodes; nodes != 0; nodes &= nodes - 1 {
			if s.Visit(1); !visit(facts.NodeIndex(page.Page*cluster.NodesPerPage + bits.TrailingZeros64(nodes))) {
				return
			}
		}
	}
}
