package sim

import (
	"fmt"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica/report"
	"starling/sim/wishes"
	"starling/terms"
	"starling/terms/rules"
)

// clients submit, change and kill jobs through any machine, and repeat what was not answered through another.
type clients struct {
	w *World
	*wishes.Drawer
	// accepted are the jobs whose submission was acknowledged, killed those whose end was, with the entry before
	// it was asked for.
	accepted []terms.JobName
	killed   map[terms.JobName]terms.Index
	// kept are the jobs that were once to be forgotten some time after their end.
	kept map[terms.JobName]bool
	// succeeded are the allocations whose program ended well, started how often each was run.
	succeeded map[terms.AllocationID]bool
	started   map[terms.AllocationID]int
}

func newClients(w *World) *clients {
	c := &clients{w: w, kept: map[terms.JobName]bool{}, killed: map[terms.JobName]terms.Index{},
		succeeded: map[terms.AllocationID]bool{}, started: map[terms.AllocationID]int{}}
	c.Drawer = &wishes.Drawer{Rand: w.rng, Seed: w.seed, Limits: w.limits, Happens: c.happens,
		RequestID: func() string { return fmt.Sprint("request", w.posted) }}
	return c
}

// happens draws whether a mishap does. There is one huge job at most.
func (c *clients) happens(m wishes.Mishap) bool {
	f := [...]fault{wishes.Stale: staleWrite, wishes.Bad: badVersion, wishes.Huge: hugeJob, wishes.Drain: drainMachine}[m]
	happens := c.w.chance(f)
	if happens && f == hugeJob {
		c.w.rates[f] = 0
	}
	return happens
}

// ran notes that a driver began the allocation.
func (c *clients) ran(id terms.AllocationID) {
	if c.started[id]++; c.started[id] > 1 {
		c.w.fail("%s was started twice", id)
	}
}

// work submits a random job, or lets a user do something about one that somebody sees, and comes again.
func (c *clients) work() {
	if c.w.calm {
		return
	}
	var s *cluster.State
	if m := c.w.machines[c.w.rng.IntN(len(c.w.machines))]; m.core != nil {
		s = m.core.State()
	}
	switch {
	case s != nil && c.w.chance(changePools):
		c.request(c.ChangePools(s))
	case c.w.chance(raiseRules):
		c.send(&command.RaiseRules{Version: rules.Next}, func(r report.Receipt) {
			if r.Refusal.Code == facts.OK && !c.w.versions.on {
				c.w.fail("the rules were raised although no program knows the next")
			}
		})
	case len(c.Names) > 0 && c.w.rng.IntN(3) > 0 && s != nil:
		c.request(c.Wish(s, c.Names[c.w.rng.IntN(len(c.Names))]))
	default:
		c.request(c.NewJob(s))
	}
	c.w.after(c.w.between(10, 3000), c.work)
}

// request sends what a user asks for, and notes what was acknowledged.
func (c *clients) request(one command.Command) {
	sent := terms.Index(len(c.w.records))
	if one == nil {
		return
	}
	if submit, ok := command.Plain(one).(*command.SubmitJob); ok && submit.Spec.KeepMillis > 0 {
		c.kept[submit.Spec.Name] = true
	}
	c.send(one, func(r report.Receipt) {
		switch one := command.Plain(one).(type) {
		case *command.SubmitJob:
			if r.Refusal.Code == facts.OK {
				c.accepted = append(c.accepted, one.Spec.Name)
			}
		case *command.KillJob:
			if r.Refusal.Code == facts.OK {
				c.killed[one.Job] = sent
			}
		}
	})
}

// send gives the command to a machine that runs, and to another after a while if it was not answered.
func (c *clients) send(one command.Command, done func(report.Receipt)) {
	answered := false
	answer := func(r report.Receipt) {
		if !answered {
			answered = true
			done(r)
		}
	}
	if m := c.w.machines[c.w.rng.IntN(len(c.w.machines))]; m.up && m.begun {
		m.core.Request(one, func(r report.Receipt, err error) {
			if err == nil {
				answer(r)
			}
		})
		c.w.workedAt = c.w.now
		m.wake()
	}
	c.w.after(c.w.between(2000, 10_000), func() {
		if !answered {
			c.send(one, answer)
		}
	})
}
