package chronicle

import (
	"context"
	"maps"
	"slices"
	"strings"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/replica/report"
	"starling/terms"
)

// Row is what was held by all that has the same keys: from when nodes were given an instance, until it had ended.
type Row struct {
	Keys []string
	// Allocations is how many of them there were at some time.
	Allocations uint64
	// CPU are hours of cores, Memory of GiB, Devices of devices by kind.
	CPU, Memory float64
	Devices     map[string]float64
}

// Groupings are what usage is told by.
func Groupings() []string { return []string{"pool", "job", "task", "node"} }

// Period is what usage is told of: the entries from one index to another, from a time to a time.
type Period struct {
	From, To     terms.Index
	Since, Until terms.Time
}

// Usage tells what was held in a period by each combination of some groupings, in their order.
func Usage(ctx context.Context, archive Archive, by []string, p Period) ([]*Row, error) {
	first, err := archive.At(ctx, p.From)
	if err != nil {
		return nil, err
	}
	l := &ledger{by: by, period: p, open: map[terms.SlotName][]holding{}, rows: map[string]*Row{}}
	l.lookAtAll(first, p.Since)
	err = archive.Walk(ctx, p.From, p.To, func(s *cluster.State, f *report.Folded) error {
		l.visit(s, f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, all := range l.open {
		for i := range all {
			l.close(&all[i], p.Until)
		}
	}
	return slices.SortedFunc(maps.Values(l.rows), func(a, b *Row) int { return slices.Compare(a.Keys, b.Keys) }), nil
}

// ledger counts what is held.
type ledger struct {
	by     []string
	period Period
	open   map[terms.SlotName][]holding
	rows   map[string]*Row
}

// holding is an allocation that holds room.
type holding struct {
	order terms.Index
	since terms.Time
	task  *terms.Task
	row   *Row
}

// visit looks at the slots that an entry was about.
func (l *ledger) visit(s *cluster.State, f *report.Folded) {
	for i := range f.Outcome.Effects {
		e := &f.Outcome.Effects[i]
		switch {
		case e.Kind == report.More:
			l.lookAtAll(s, s.Time)
		case e.Slot.Task != "":
			l.look(s, e.Slot, s.Time)
		}
	}
}

// lookAtAll looks at all slots of a value, and at those that it does not have any more.
func (l *ledger) lookAtAll(s *cluster.State, at terms.Time) {
	for slot := range l.open {
		l.look(s, slot, at)
	}
	s.EachJob(func(j *workload.Job) bool {
		for task := range j.Tasks {
			s.EachSlot(j.ID, task, func(r facts.SlotRef, slot facts.Slot) bool {
				if slot.Phase.Holds() {
					l.look(s, s.NameOf(r), at)
				}
				return true
			})
		}
		return true
	})
}

// look opens and closes what a slot holds at a time.
func (l *ledger) look(s *cluster.State, name terms.SlotName, at terms.Time) {
	held := map[terms.Index]facts.SlotRef{}
	r, found := s.RefOf(name)
	for seat := facts.Seat(0); found && seat < facts.SeatCount; seat++ {
		r.Seat = seat
		if slot, ok := s.SlotAt(r); ok && slot.Phase.Holds() {
			held[slot.Order] = r
		}
	}
	kept := l.open[name][:0]
	for _, h := range l.open[name] {
		if _, still := held[h.order]; still {
			kept = append(kept, h)
			delete(held, h.order)
		} else {
			l.close(&h, at)
		}
	}
	for _, order := range slices.Sorted(maps.Keys(held)) {
		kept = append(kept, l.begin(s, name, held[order], at))
	}
	if len(kept) > 0 {
		l.open[name] = kept
	} else {
		delete(l.open, name)
	}
}

// begin returns what a seat holds from a time on.
func (l *ledger) begin(s *cluster.State, name terms.SlotName, r facts.SlotRef, at terms.Time) holding {
	slot, _ := s.SlotAt(r)
	var keys []string
	for _, by := range l.by {
		keys = append(keys, map[string]string{"pool": string(name.Job.Pool()), "job": string(name.Job),
			"task": string(name.Task), "node": string(s.Node(slot.Node).Name)}[by])
	}
	id := strings.Join(keys, "\x00")
	row := l.rows[id]
	if row == nil {
		row = &Row{Keys: keys, Devices: map[string]float64{}}
		l.rows[id] = row
	}
	row.Allocations++
	return holding{slot.Order, at, s.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version), row}
}

// close adds what was held until a time.
func (l *ledger) close(h *holding, at terms.Time) {
	const millisPerHour = 3_600_000
	millis := min(at, l.period.Until) - max(h.since, l.period.Since)
	if millis <= 0 || h.task == nil {
		return
	}
	hours := float64(millis) / millisPerHour
	h.row.CPU += hours * float64(h.task.Resources[terms.CPU]) / 1000
	h.row.Memory += hours * float64(h.task.Resources[terms.Memory]) / (1 << 30)
	for _, d := range h.task.Devices {
		h.row.Devices[d.Kind] += hours * float64(d.Amount) / float64(terms.WholeDevice)
	}
}

// Kinds returns the kinds of devices of a row, in their order.
func (r *Row) Kinds() []string { return slices.Sorted(maps.Keys(r.Devices)) }
