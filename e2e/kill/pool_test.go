package kill

import (
	"testing"
	"time"
)

// TestNonPreemptibleWorkWaitsForItsReservation has a pool with work that never gives way, which gets no more than what is
// promised to its pool although machines are idle.
func TestNonPreemptibleWorkWaitsForItsReservation(t *testing.T) {
	t.Parallel()
	tr := begin(t, 3*time.Second)
	tr.makePools(poolFor("research", 4))
	first, openFirst := tr.workers("research/first", 4)
	second, openSecond := tr.workers("research/second", 2)
	lent, openLent := tr.workers("research/lent", 6)
	first.NonPreemptible, second.NonPreemptible = true, true
	tr.submit(first)
	tr.submit(second)
	tr.awaitRunning(tr.Agents[0], "research/first")
	tr.submit(lent)
	tr.awaitBegun("research/lent", 6) // although it is newer, and there is room for the second
	tr.awaitShare("research/second", 0)
	tr.wantProofs("research/second", begunSuffix, 0)

	openFirst()
	tr.awaitRunning(tr.Agents[0], "research/second")
	tr.finish([]func(){openSecond, openLent}, "research/first", "research/second", "research/lent")
}
