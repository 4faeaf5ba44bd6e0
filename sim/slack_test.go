package sim

import (
	"slices"
	"testing"

	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
)

// TestSlack lets a machine offer less slack than revocable instances have there: as many end as have what is not there
// any more, and go on where there is some.
func TestSlack(t *testing.T) {
	s := newScript(t, 2)
	offer := func(machine int, cores uint32) {
		m := s.machines[machine]
		m.offer.Devices = []terms.DeviceOffer{{Kind: terms.Slack, Count: cores}}
		m.wake()
		s.wait(10_000)
	}
	runs := func() (on [2]int) {
		s.value().EachSlot(s.value().JobOf("spare").ID, 0, func(_ facts.SlotRef, slot facts.Slot) bool {
			if slot.Phase == facts.Running {
				on[slices.IndexFunc(s.machines,
					func(m *machine) bool { return m.name == s.value().Node(slot.Node).Name })]++
			}
			return true
		})
		return on
	}
	pool := terms.NewPool(terms.DefaultPool)
	pool.Quotas[terms.Memory].Reservation, pool.SlackLimit = 1<<30, 100
	s.must(&command.ChangePools{Pools: []terms.Pool{pool}})
	offer(0, 3)
	s.submit("spare", func(j *terms.Job) {
		j.Revocable, j.Preemption = true, terms.Preemptible
		j.Tasks[0].Devices = []terms.DeviceRequest{{Kind: terms.Slack, Amount: terms.WholeDevice}}
	}, 3)
	s.wait(10_000)
	for _, step := range []struct {
		machine int
		cores   uint32
		want    [2]int
	}{{0, 3, [2]int{3, 0}}, {0, 1, [2]int{1, 0}}, {1, 2, [2]int{1, 2}}, {0, 0, [2]int{0, 2}}} {
		offer(step.machine, step.cores)
		if got := runs(); got != step.want {
			t.Errorf("when machine %d offers %d cores of slack, %v run on each, want %v", step.machine, step.cores, got,
				step.want)
		}
	}
	s.rest()
}
