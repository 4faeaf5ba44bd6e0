package explain

import (
	"fmt"
	"strings"

	"starling/cluster"
	"starling/schedule/entitle"
	"starling/schedule/entitle/reckoning"
	"starling/terms"
	"starling/terms/pool"
)

// help says what would let an instance run.
func (c *survey) help(p *prospect) (all []string) {
	switch {
	case c.offers == 0:
		return []string{"a node that takes work: starling agent on a machine makes it one"}
	case c.possible == 0:
		return []string{"a node that has all it needs, or a task that needs less"}
	case c.e.crowded():
		return []string{fmt.Sprintf("a max_running above %d", c.e.spec.MaxRunning)}
	case p.served() || c.leaving(p) > 0:
		return nil
	}
	if p != nil {
		all = append(p.admission(), p.advantage()...)
	}
	if c.able > 0 || p.reason() != "" {
		return all
	}
	nearest := &c.misses[0]
	room := fmt.Sprintf("room on %s (%s)", nearest.node.Name, strings.Join(nearest.words, ", "))
	if j := c.e.ender(&nearest.short, c.e.onNode(nearest.node.Index)); j != nil && nearest.resources() {
		room += fmt.Sprintf(", such as by the end of %s", j.Name())
	}
	return append(all, room+", or another node that has all it needs")
}

// resources tells whether only processor, memory or disk are short, and come free when others end.
func (m *miss) resources() bool {
	kinds := 0
	for _, short := range m.short {
		if short > 0 {
			kinds++
		}
	}
	return m.hard == 0 && kinds == m.all
}

// served tells whether others give way to the work already, or will.
func (p *prospect) served() bool { return p != nil && len(p.yielding.told)+len(p.yielding.next) > 0 }

// advantage says what the job could say of itself to have room sooner.
func (p *prospect) advantage() (all []string) {
	if level := p.yielding.priority; level > 0 {
		all = append(all, fmt.Sprintf("a priority above %d: less important work of its pool would give way", level-1))
	} else if len(p.queue.First) > 0 && len(p.bounds) == 0 && !p.queue.Room {
		first := p.e.s.Job(p.queue.First[0])
		all = append(all, fmt.Sprintf("a priority above %d, that of %s", first.Spec.Priority, first.Name()))
	}
	most := p.gang.Fit
	for i := range p.bounds {
		b := &p.bounds[i]
		most = min(most, uint32(max(b.most-b.held, 0)*int64(p.gang.Members)/b.need))
	}
	if most > 0 && most < p.gang.Members && p.gang.Uniform {
		all = append(all, fmt.Sprintf("a gang of at most %d", most))
	}
	return all
}

// admission says what would let the pool admit the work.
func (p *prospect) admission() (all []string) {
	book := reckoning.Of(p.e.s)
	for i := range p.bounds {
		b := &p.bounds[i]
		more := amount(b.kind, b.missing())
		switch b.by {
		case byEntitlement:
			all = append(all, p.entitle(book, b)...)
		case bySlack:
			all = append(all, more+" that others leave idle or give up")
		case byReservation:
			if p.spec.Quotas[b.kind].Reservation == 0 {
				all = append(all, fmt.Sprintf("%s reserved for pool %s, or preemptible: true", amount(b.kind, b.held+b.need), p.path))
				continue
			}
			all = append(all, p.reserve(book, p.Number, b)+", or preemptible: true")
		case byCeiling:
			all = append(all, more+" that another pool below "+string(b.above)+" gives back")
		case byControllers:
			all = append(all, fmt.Sprintf("a higher controller_limit of pool %s, or %s more reserved for it", p.path, more))
		}
	}
	if j := p.occupant(); j != nil {
		return append(all, fmt.Sprintf("the end of %s", j.Name()))
	}
	if len(p.queue.First) > 0 && len(p.bounds) == 0 && !p.queue.Room {
		all = append(all, fmt.Sprintf("the end of %s", p.name(p.queue.First[0])))
	}
	return all
}

// entitle says what would raise the entitlement of the pool, up its branch of the tree.
func (p *prospect) entitle(book *reckoning.Book, b *bound) (all []string) {
	tree, k := p.e.s.Pools(), b.kind
	parents := pool.Tree(tree).Parents()
	for at := p.Number; at >= 0; at = parents[at] {
		over := book.Use(at, k).Held + b.need - tree[at].Quotas[k].Limit
		if over > 0 {
			all = append(all, fmt.Sprintf("a limit of pool %s that is %s higher", tree[at].Path, amount(k, over)))
		}
		switch book.Trace(at).Cut[k] {
		case entitle.ByShare:
			return append(all, "a share for it, or "+p.reserve(book, at, b))
		case entitle.ByParent:
			all = append(all, p.reserve(book, at, b))
		default:
			return all
		}
	}
	return append(all, fmt.Sprintf("nodes with %s more", amount(k, b.missing())))
}

// reserve says how much more would have to be reserved for a pool, and whether that is there.
func (p *prospect) reserve(book *reckoning.Book, at int, b *bound) string {
	tree := p.e.s.Pools()
	left := p.e.s.Capacity()[b.kind]
	if parent := pool.Tree(tree).Parents()[at]; parent >= 0 {
		left = tree[parent].Quotas[b.kind].Reservation
	}
	for _, i := range book.Siblings(at) {
		left -= tree[i].Quotas[b.kind].Reservation
	}
	text := fmt.Sprintf("%s more reserved for pool %s", amount(b.kind, b.missing()), tree[at].Path)
	if left < b.missing() {
		text += ", with less for the pools beside it"
	}
	return text
}

// occupant returns the job of the pool whose end would make the room within all its bounds, nil if there is none. What is
// bound by less leaves room in fewer bounds.
func (p *prospect) occupant() *cluster.Job {
	if len(p.bounds) == 0 {
		return nil
	}
	short := terms.Amounts{}
	for i := range p.bounds {
		short[p.bounds[i].kind] = max(short[p.bounds[i].kind], p.bounds[i].missing())
	}
	return p.e.ender(&short, func(j *cluster.Job) terms.Amounts {
		alike := j.Spec.Revocable == p.Unit.Revocable && (!p.fixed() || j.Spec.Class() == p.e.job.Spec.Class())
		if p.e.s.PoolOf(j) != p.Number || !alike {
			return terms.Amounts{}
		}
		return p.e.holds(j, func(cluster.Slot) bool { return true })
	})
}

// onNode returns what a job holds on a node.
func (e *explainer) onNode(n cluster.NodeIndex) func(*cluster.Job) terms.Amounts {
	return func(j *cluster.Job) terms.Amounts {
		return e.holds(j, func(slot cluster.Slot) bool { return slot.Node == n })
	}
}

// holds returns what those instances of a job hold that count and were not told to end.
func (e *explainer) holds(j *cluster.Job, counts func(cluster.Slot) bool) (sum terms.Amounts) {
	for task, t := range j.Tasks {
		if t.Live() == 0 {
			continue
		}
		e.s.EachSlot(j.ID, task, func(_ cluster.SlotRef, slot cluster.Slot) bool {
			if slot.Phase.Holds() && slot.Phase != cluster.Stopping && counts(slot) {
				for k, amount := range j.TaskSpecOf(task, slot.Version).Amounts() {
					sum[k] += amount
				}
			}
			return true
		})
	}
	return sum
}

// ender returns the job whose end would give so much back, nil if there is none: of those that are enough the least
// important, and of equal ones the youngest.
func (e *explainer) ender(short *terms.Amounts, holds func(*cluster.Job) terms.Amounts) (best *cluster.Job) {
	e.s.EachJob(func(j *cluster.Job) bool {
		if j.Finished != 0 || j.ID == e.job.ID || j.Spec.Type == terms.Daemon || best != nil && j.Spec.Priority > best.Spec.Priority {
			return true
		}
		held := holds(j)
		for k := range short {
			if short[k] > held[k] {
				return true
			}
		}
		best = j
		return true
	})
	return best
}
