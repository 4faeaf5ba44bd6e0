// Package sim runs many peers in one goroutine under one seed: the real cores, with a journal, pulses, drivers, clocks
// and clients that fail as the seed draws. What it finds is replayed by the seed alone.
//
// After every entry it checks that replicas are equal at equal indexes, and that the books of the value are right; when
// the faults have stopped, that there is one ring, that nothing is left half done, and that all work that can run runs.
package sim

import (
	"container/heap"
	"fmt"
	"io"
	"math/rand/v2"

	"starling/journal"

	"starling/replica/bound"
	"starling/sim/model"
	"starling/sim/promises"
	"starling/terms"
)

// Limits of one run.
const (
	// eventsMax bounds a run; one that needs more does not come to rest.
	eventsMax = 400_000
	epoch     = terms.Time(1_700_000_000_000)
	// pulseMillis is how long a pulse outlives its owner.
	pulseMillis = 3000
)

// World is one run: everything that happens follows from its seed.
type World struct {
	seed   uint64
	rng    *rand.Rand
	limits terms.Limits
	now    terms.Time
	queue  queue
	posted uint64
	events int

	records []journal.Record
	landed  map[recordName]bool
	// digests are those of the value after each entry, as the first peer found them.
	digests []uint64
	// size is that of the value after the last entry.
	size     bound.Size
	machines []*machine
	pulses   map[terms.PeerID]*pulse
	// forged has the last number used by each stranger, slanders counts those who spoke once.
	forged   map[terms.PeerID]uint64
	slanders uint32
	// outageUntil is when the engine answers again.
	outageUntil terms.Time
	clients     *clients
	rates       rates
	fired       [faultCount]int
	// calm tells that no fault happens any more, since calmAt.
	calm   bool
	calmAt terms.Time
	// ringChanged and landedAt are when an entry about membership was folded last, and when any was written; workedAt is
	// when a task ended last.
	ringChanged, landedAt, workedAt terms.Time
	// movedAt is when a life was given up last because its pulse had been interrupted, however long before.
	movedAt            terms.Time
	joins, joinEntries int
	// explain lets the last fold list effects, as those of machines do for the model: that must change nothing else.
	explain bool
	// unchecked leaves the model and the audits out, for measurements; joined is then the number of members.
	unchecked bool
	joined    int
	startsMax int // of each machine at a time
	promises  *promises.Watch
	versions  versions
	disks     *promises.Disks
	snapshots snapshots
	registrar registrar
	// model is the slow twin of the fold.
	model   *model.Model
	failure error
	// trace takes the story, if it is told.
	trace io.Writer
}

type event struct {
	at    terms.Time
	order uint64
	act   func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds an event, for container/heap.
func (q *queue) Push(x any) { *q = append(*q, x.(event)) }

// Pop removes the last event, for container/heap.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// after lets something happen in so many milliseconds.
func (w *World) after(millis int, act func()) {
	w.posted++
	heap.Push(&w.queue, event{w.now + terms.Time(max(millis, 0)), w.posted, act})
}

// between draws a number of low to high.
func (w *World) between(low, high int) int { return low + w.rng.IntN(high-low+1) }

// chance is true in so many of a thousand cases, and never when calm.
func (w *World) chance(f fault) bool {
	if w.calm || w.rng.IntN(1000) >= w.rates[f] {
		return false
	}
	w.fired[f]++
	return true
}

// fail ends the run; the first failure is the one that is told.
func (w *World) fail(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf("at entry %d, %d ms: %s", len(w.records), w.now-epoch, fmt.Sprintf(format, args...))
	}
}

// run lets events happen until the time is over, or all have happened.
func (w *World) run(until terms.Time) {
	for len(w.queue) > 0 && w.failure == nil && w.queue[0].at <= until {
		if w.events++; w.events > eventsMax && !w.unchecked {
			w.fail("it does not come to rest: %d events", w.events)
			return
		}
		next := heap.Pop(&w.queue).(event)
		w.now = next.at
		next.act()
	}
	if len(w.queue) == 0 || w.failure != nil {
		return
	}
	w.now = until
}

// land puts a record at the end of the journal and lets everybody see it.
func (w *World) land(r journal.Record) {
	r.Index = journal.Index(len(w.records) + 1)
	w.records = append(w.records, r)
	w.landed[recordName{r.Writer, r.Seq}] = true
	w.landedAt = w.now
	for _, m := range w.machines {
		m.deliverSoon()
	}
}

// recordName tells records apart, as the engine does.
type recordName struct {
	writer string
	seq    uint64
}

// landOnce puts a record into the journal unless it is there.
func (w *World) landOnce(r journal.Record) {
	if !w.landed[recordName{r.Writer, r.Seq}] {
		w.land(r)
	}
}
