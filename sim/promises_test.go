package sim

import (
	"testing"

	"starling/cluster/facts"
	"starling/terms"
)

// What users are promised about time, for every moment of a join, a start or a stop at which a machine may die.

func TestLostWorkRunsElsewhereInTime(t *testing.T) {
	for moment := terms.Time(0); moment < 1500; moment += 37 {
		s := newScript(t, 4)
		s.submit("web", nil, 8)
		s.wait(moment)
		s.machines[1].crash(true)
		s.machines[1].dead = true
		s.wait(pulseMillis + 2000)
		s.want("web", "running running running running running running running running")
		s.rest()
	}
}

func TestARestartWithinThePulseMovesNothing(t *testing.T) {
	for down := terms.Time(0); down < pulseMillis-500; down += 117 {
		s := newScript(t, 4)
		s.submit("web", nil, 8)
		s.wait(1000)
		before := s.orders("web")
		s.machines[1].crash(false)
		s.wait(down)
		s.machines[1].boot()
		s.wait(3 * pulseMillis)
		if after := s.orders("web"); after != before {
			t.Fatalf("down for %d ms: allocations %v became %v", down, before, after)
		}
		s.rest()
	}
}

func TestAnAbsenceWithNoticeMovesNothing(t *testing.T) {
	for down := terms.Time(0); down < 5*pulseMillis; down += 517 {
		s := newScript(t, 4)
		s.submit("web", nil, 8)
		s.wait(1000)
		before, self := s.orders("web"), s.machines[1].self()
		if !s.machines[1].core.GoAway(s.machines[1].own(), 6*pulseMillis) {
			t.Fatal("a member cannot give notice")
		}
		s.machines[1].disk.away = true
		s.machines[1].wake()
		s.wait(500)
		s.machines[1].crash(false)
		s.machines[1].absent = s.now + down
		s.wait(down / 2)
		s.submit("more", nil, 4)
		s.wait(down/2 + 6*pulseMillis)
		if after := s.orders("web"); after != before || s.machines[1].self() != self {
			t.Fatalf("down for %d ms: allocations %v became %v, %s became %s", down, before, after, self, s.machines[1].self())
		}
		s.want("more", "running running running running")
		s.rest()
	}
}

// Whoever an absent machine watches is watched by others meanwhile, and whoever joins is taken in by others.
func TestADeathIsNoticedAndAJoinGoesOnWhileAWatcherIsAway(t *testing.T) {
	for i := range 4 {
		s := newScript(t, 4)
		s.submit("web", nil, 8)
		s.wait(1000)
		away := s.machines[i]
		away.core.GoAway(away.own(), 15*pulseMillis)
		away.disk.away = true
		away.wake()
		s.wait(500)
		away.crash(false)
		away.absent = s.now + 15*pulseMillis
		s.wait(2 * pulseMillis)
		dead := s.value().Watched(away.self())
		for _, m := range s.machines {
			if m.up && m.self() == dead {
				m.crash(true)
				m.dead = true
			}
		}
		s.wait(pulseMillis + 2000)
		if s.value().IsMember(dead) {
			t.Fatalf("%s watches %s and is away; that died, and is a member yet", away.self(), dead)
		}
		s.boot(s.addMachine(4))
		s.wait(10_000)
		if !s.value().IsMember("m4~1") || s.value().Members() != 4 {
			t.Fatalf("%d members while %s is away, want 4", s.value().Members(), away.self())
		}
		s.rest()
	}
}

func TestWhoDoesNotComeBackInTimeHasLeft(t *testing.T) {
	s := newScript(t, 4)
	s.submit("web", nil, 8)
	s.wait(1000)
	before := s.orders("web")
	s.machines[1].core.GoAway(s.machines[1].own(), 6*pulseMillis)
	s.machines[1].disk.away = true
	s.machines[1].wake()
	s.wait(500)
	s.machines[1].crash(false)
	s.machines[1].dead = true
	s.wait(5 * pulseMillis)
	if after := s.orders("web"); after != before {
		t.Fatalf("allocations %v became %v before its time was over", before, after)
	}
	s.wait(2*pulseMillis + 2000)
	s.want("web", "running running running running running running running running")
	if after := s.orders("web"); after == before {
		t.Fatal("nothing moved")
	}
	s.rest()
}

// orders returns which entries ordered the eight instances of a job.
func (s *script) orders(name terms.JobName) (orders [8]terms.Index) {
	for i := range orders {
		orders[i] = s.value().JobOf(name).Tasks[0].Slots.At(i).Order
	}
	return orders
}

// Whose turn it is to tell the time follows from the deadline; when that one is silent, the next one speaks, long
// before anybody's pulse has ended.
func TestADeadlineIsMetAlthoughTheOneInTurnIsSilent(t *testing.T) {
	for delay := terms.Time(0); delay < 600; delay += 17 {
		s := newScript(t, 5)
		s.wait(delay)
		s.rates[failStart] = 1000
		s.submit("web", nil, 1)
		for s.phases("web") != "backing off" {
			s.wait(1)
		}
		s.rates[failStart] = 0
		node := s.value().Node(s.value().JobOf("web").Tasks[0].Slots.At(0).Node).Name
		for _, m := range s.machines {
			if m.name != node {
				m.cut(true, true, 2500)
			}
		}
		s.wait(100 + 5*250 + 200)
		for _, m := range s.machines {
			if got := m.core.State().JobOf("web").Tasks[0].Counts[facts.Running]; m.name == node && got != 1 {
				t.Fatalf("%d instances run on %s, want 1", got, node)
			}
		}
		s.rest()
	}
}
