package place

import (
	"cmp"
	"math/bits"
	"slices"

	"starling/cluster"
	"starling/cluster/division"
	"starling/terms"
	"starling/terms/constraint"
)

// domainsMax bounds in how many domains the members of a gang are placed to see whether all of them find a node there.
// They are counted in all domains before, so that the first is nearly always enough.
const domainsMax = 64

// roomMax bounds how much room is counted on a node.
const roomMax = 1000

// domain are the nodes that have one value of an attribute, such as a rack.
type domain struct {
	attribute, value string
	// any tells that the value does not matter, as long as the node has one.
	any bool
	// nodes are those of the domain, pages the numbers of their pages; nil where any value will do.
	nodes []division.Page
	pages []int
}

// has tells whether a node is in the domain.
func (d *domain) has(node *cluster.Node) bool {
	value, exists := node.Offer.Attribute(d.attribute)
	return exists && d.any || !d.any && value == d.value
}

// in bounds the search to a domain, which was chosen for it; nil does not.
func (q *search) in(d *domain) *search {
	q.domain, q.chosen = d, true
	if d != nil {
		q.simple = false
	}
	return q
}

// locate bounds the search to the domain where instances of the job are, or as long as none is, to the nodes that are
// in one.
func (q *search) locate() {
	id, _ := q.key.Split()
	j := q.s.Job(id)
	if j.Spec.Within == "" || q.chosen {
		return
	}
	q.domain, q.simple = &domain{attribute: j.Spec.Within}, false
	value, found := homeOf(q.s, j)
	q.domain.value, q.domain.any = value, !found
}

// homeOf returns in which domain the first instance of a job is that has a node and was not told to stop; ok is false
// if there is none. The others belong there, too.
func homeOf(s *cluster.State, j *cluster.Job) (value string, ok bool) {
	for task := 0; task < len(j.Tasks) && !ok; task++ {
		if j.Tasks[task].Live() == 0 {
			continue
		}
		s.EachSlot(j.ID, task, func(_ cluster.SlotRef, slot cluster.Slot) bool {
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

// togetherBy returns an attribute by whose values the members of a gang are to be together: the one that their job
// names, or else of the first rule by which they ask to be near their own kind; "" for none.
func togetherBy(j *cluster.Job) (attribute string) {
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

// domains returns where the members of a gang are tried, one after the other; nil is everywhere. Those come first that
// have room for all that the job asks for, and of them the tightest; then the others that have room for its members,
// and of those the roomiest. If the gang was tried before, only those are that have grown.
func (p *turns) domains(j *cluster.Job, tried bool) (all []*domain) {
	if togetherBy(j) == "" {
		return []*domain{nil}
	}
	rooms := slices.DeleteFunc(p.rooms(j, tried), func(r room) bool { return !r.fits })
	slices.SortStableFunc(rooms, func(a, b room) int {
		switch {
		case a.whole && b.whole:
			return cmp.Compare(a.sum, b.sum)
		case a.whole:
			return -1
		case b.whole:
			return 1
		}
		return cmp.Compare(b.sum, a.sum)
	})
	for _, r := range rooms[:min(len(rooms), domainsMax)] {
		all = append(all, r.domain)
	}
	if j.Spec.Within == "" {
		all = append(all, nil) // the rule may be met in another way
	}
	return all
}

// rooms counts in the domains in which the members of a gang may be together.
func (p *turns) rooms(j *cluster.Job, tried bool) (all []room) {
	attribute, home, found := togetherBy(j), "", false
	if j.Spec.Within != "" {
		home, found = homeOf(p.s, j)
	}
	m, division := newMeasure(p, j), p.s.EnsureDivision(attribute)
	for _, at := range p.valuesOf(attribute, division, tried) {
		d := &domain{attribute: attribute, value: division.Values[at], nodes: division.Pages[at]}
		if j.Spec.Within != "" && d.value == "" || found && d.value != home {
			continue
		}
		for _, page := range d.nodes {
			d.pages = append(d.pages, page.Page)
		}
		all = append(all, m.of(d))
	}
	return all
}

// valuesOf returns the numbers of the values of an attribute in its division: all, or those of nodes on pages that have
// grown.
func (p *turns) valuesOf(attribute string, division *cluster.Division, grown bool) (all []int) {
	if !grown {
		for at := range division.Values {
			all = append(all, at)
		}
		return all
	}
	for _, page := range p.grown {
		first := cluster.NodeIndex(page * cluster.NodesPerPage)
		for n := first; n < min(first+cluster.NodesPerPage, cluster.NodeIndex(p.s.Nodes())); n++ {
			if offer := p.s.Node(n).Offer; offer != nil {
				value, _ := offer.Attribute(attribute)
				if at, found := slices.BinarySearch(division.Values, value); found {
					all = append(all, at)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// room is what a domain has room for.
type room struct {
	*domain
	// fits tells that there is room for the members of the gang, each task by itself, whole that there is for all that
	// asks.
	fits, whole bool
	// sum is how many instances there is room for, of each task by itself.
	sum uint64
	// counts are they by task.
	counts []uint32
}

// members returns for how many members of a gang there is room.
func (r *room) members(j *cluster.Job) (sum int64) {
	spare := int64(0)
	for task, count := range r.counts {
		missing := min(count, j.Missing(task))
		sum += int64(missing)
		spare += int64(min(count, j.Tasks[task].Asks()) - min(missing, j.Tasks[task].Asks()))
	}
	return sum + min(spare, int64(j.MissingAny()))
}

// measure counts for how many members of a gang domains have room.
type measure struct {
	j        *cluster.Job
	searches []*search
	// asks is how many instances of each task ask for room; any members may be of any task.
	asks []uint32
	any  uint32
}

func newMeasure(p *turns, j *cluster.Job) *measure {
	m := &measure{j: j, any: j.MissingAny()}
	for task, t := range j.Tasks {
		q := newSearch(p.s, cluster.KeyOf(j.ID, task), nil).within(p.spots).in(nil)
		m.searches, m.asks = append(m.searches, q), append(m.asks, t.Asks())
	}
	return m
}

// of counts in one domain, in time in proportion to its nodes.
func (m *measure) of(d *domain) room {
	r := room{domain: d, fits: true, whole: true, counts: make([]uint32, len(m.searches))}
	beyond := uint32(0)
	for task, q := range m.searches {
		missing := m.j.Missing(task)
		if q.spec == nil || m.asks[task] == 0 {
			r.fits = r.fits && missing == 0
			continue
		}
		count := q.room(d)
		r.counts[task] = count
		r.sum += uint64(count)
		r.fits, r.whole = r.fits && count >= missing, r.whole && count >= m.asks[task]
		beyond += min(count, m.asks[task]) - min(missing, count, m.asks[task])
	}
	r.fits = r.fits && beyond >= m.any
	return r
}

// room returns for how many instances of the task the nodes of a domain have room, by all rules but those about what
// runs around and those that are soft.
func (q *search) room(d *domain) (count uint32) {
	for _, kept := range q.purposes() {
		for _, page := range d.nodes {
			q.s.EachRoomOf(page, kept, &q.spec.Resources, func(n cluster.NodeIndex) {
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
func (d *domain) each(s *cluster.State, visit func(n cluster.NodeIndex) bool) {
	if d == nil || d.nodes == nil {
		for n := range cluster.NodeIndex(s.Nodes()) {
			if s.Visit(1); !visit(n) {
				return
			}
		}
		return
	}
	for _, page := range d.nodes {
		for nodes := page.Nodes; nodes != 0; nodes &= nodes - 1 {
			if s.Visit(1); !visit(cluster.NodeIndex(page.Page*cluster.NodesPerPage + bits.TrailingZeros64(nodes))) {
				return
			}
		}
	}
}
