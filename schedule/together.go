package schedule

import (
	"cmp"
	"slices"

	"starling/cluster"
	"starling/cluster/division"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/schedule/place"
)

// domainsMax bounds in how many domains the members of a gang are placed to see whether all of them find a node there.
// They are counted in all domains before, so that the first is nearly always enough.
const domainsMax = 64

// domains returns where the members of a gang are tried, one after the other; nil is everywhere. Those come first that
// have room for all that the job asks for, and of them the tightest; then the others that have room for its members,
// and of those the roomiest. If the gang was tried before, only those are that have grown.
func (p *queuePass) domains(j *workload.Job, tried bool) (all []*place.Domain) {
	if place.TogetherBy(j) == "" {
		return []*place.Domain{nil}
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
		all = append(all, r.Domain)
	}
	if j.Spec.Within == "" {
		all = append(all, nil) // the rule may be met in another way
	}
	return all
}

// rooms counts in the domains in which the members of a gang may be together.
func (p *queuePass) rooms(j *workload.Job, tried bool) (all []room) {
	attribute, home, found := place.TogetherBy(j), "", false
	if j.Spec.Within != "" {
		home, found = place.HomeOf(p.s, j)
	}
	m, division := newMeasure(p, j), p.s.EnsureDivision(attribute)
	for _, at := range p.valuesOf(attribute, division, tried) {
		d := place.NewDomain(division, at)
		if j.Spec.Within != "" && d.Value == "" || found && d.Value != home {
			continue
		}
		all = append(all, m.of(d))
	}
	return all
}

// valuesOf returns the numbers of the values of an attribute in its division: all, or those of nodes on pages that have
// grown.
func (p *queuePass) valuesOf(attribute string, division *division.Division, grown bool) (all []int) {
	if !grown {
		for at := range division.Values {
			all = append(all, at)
		}
		return all
	}
	for _, page := range p.grown {
		first := facts.NodeIndex(page * cluster.NodesPerPage)
		for n := first; n < min(first+cluster.NodesPerPage, facts.NodeIndex(p.s.Nodes())); n++ {
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
	*place.Domain
	// fits tells that there is room for the members of the gang, each task by itself, whole that there is for all that
	// asks.
	fits, whole bool
	// sum is how many instances there is room for, of each task by itself.
	sum uint64
	// counts are they by task.
	counts []uint32
}

// members returns for how many members of a gang there is room.
func (r *room) members(j *workload.Job) (sum int64) {
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
	j        *workload.Job
	searches []*place.Search
	// asks is how many instances of each task ask for room; any members may be of any task.
	asks []uint32
	any  uint32
}

func newMeasure(p *queuePass, j *workload.Job) *measure {
	m := &measure{j: j, any: j.MissingAny()}
	for task, t := range j.Tasks {
		q := place.NewSearch(p.s, facts.KeyOf(j.ID, task), nil).Within(p.spots).In(nil)
		m.searches, m.asks = append(m.searches, q), append(m.asks, t.Asks())
	}
	return m
}

// of counts in one domain, in time in proportion to its nodes.
func (m *measure) of(d *place.Domain) room {
	r := room{Domain: d, fits: true, whole: true, counts: make([]uint32, len(m.searches))}
	beyond := uint32(0)
	for task, q := range m.searches {
		missing := m.j.Missing(task)
		if q.Spec == nil || m.asks[task] == 0 {
			r.fits = r.fits && missing == 0
			continue
		}
		count := q.Room(d)
		r.counts[task] = count
		r.sum += uint64(count)
		r.fits, r.whole = r.fits && count >= missing, r.whole && count >= m.asks[task]
		beyond += min(count, m.asks[task]) - min(missing, count, m.asks[task])
	}
	r.fits = r.fits && beyond >= m.any
	return r
}
