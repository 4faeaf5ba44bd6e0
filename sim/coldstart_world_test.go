package sim

import (
	"fmt"

	"starling/terms"
)

// ColdStartReport tells what it took until machines that start at once were one ring.
type ColdStartReport struct {
	Machines int
	// Entries are those that were about joining; offers are not counted.
	Entries int
	// Took is the time until the last had joined.
	Took terms.Time
}

// PerJoiner returns the entries about joining for each machine that joined.
func (r *ColdStartReport) PerJoiner() float64 { return float64(r.Entries) / float64(r.Machines) }

// String tells the report in a line.
func (r *ColdStartReport) String() string {
	return fmt.Sprintf("%d machines: %d entries about joining, %.2f for each, in %.1f s", r.Machines, r.Entries,
		r.PerJoiner(), float64(r.Took)/1000)
}

// ColdStart starts machines within a tenth of a second, with nothing that goes wrong, and waits until all are members.
// The journal takes 1 to 5 ms for an entry, and up to 3 ms to deliver it.
func ColdStart(machines int) (ColdStartReport, error) {
	w := newWorld(uint64(machines), Options{limits: usualLimits()})
	w.unchecked = true
	for i := range machines {
		w.after(w.between(0, 100), w.addMachine(i).boot)
	}
	for w.joined < machines && w.failure == nil && w.now < epoch+10*60*1000 {
		w.run(w.now + 10)
	}
	if w.failure == nil && w.joined < machines {
		w.fail("%d of %d machines have joined", w.joined, machines)
	}
	return ColdStartReport{machines, w.joinEntries, w.ringChanged - epoch}, w.failure
}

// usualLimits returns the limits of every real cluster.
func usualLimits() *terms.Limits {
	l := terms.DefaultLimits()
	return &l
}
