package model

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/cluster/workload"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// comparison collects where the fold and the model differ.
type comparison struct {
	m     *Model
	s     *cluster.State
	found []string
}

// Differences compares the value, and what became of the last entry, with the model; nothing is found if all is well.
func (m *Model) Differences(s *cluster.State, outcome *report.Outcome) []string {
	c := &comparison{m: m, s: s, found: m.wrongs}
	c.outcome(outcome)
	same(c, about{"", "index, time and rules"}, [3]uint64{uint64(s.Index), uint64(s.Time), uint64(s.Rules)},
		[3]uint64{uint64(m.index), uint64(m.time), uint64(m.rules)})
	same(c, about{"", "last job"}, s.LastJob, m.lastJob)
	same(c, about{"", "kept volumes"}, m.volumes.Same(s.Volumes().Rows()), true)
	c.ring()
	c.jobs()
	c.nodes()
	c.pools()
	c.found = append(c.found, m.known.Differences(s.Registry(), s.Time)...)
	for _, r := range m.requests {
		known, ok := s.RequestOf(r.ID)
		same(c, about{r.ID, "memory of request"}, ok && (known.Refusal.Code != facts.OK) == r.Refused, true)
	}
	return c.found
}

// about is what is compared: something of somebody, who may be nobody.
type about struct{ who, what string }

// same notes a difference.
func same[T comparable](c *comparison, a about, fast, slow T) {
	if fast != slow {
		c.found = append(c.found, fmt.Sprintf("%s %s: the fold has %+v, the model %+v", a.who, a.what, fast, slow))
	}
}

func (c *comparison) outcome(o *report.Outcome) {
	if same(c, about{"", "dropped"}, o.Dropped != "", c.m.dropped); c.m.dropped {
		return
	}
	same(c, about{"", "results"}, len(o.Results), len(c.m.refused))
	for i, refused := range c.m.refused {
		if r := o.Results[i].Refusal; (r.Code != facts.OK) != refused {
			c.found = append(c.found, fmt.Sprintf("command %d: the fold says %s %q, the model refused: %v", i, r.Code, r.Reason,
				refused))
		}
	}
}

func (c *comparison) ring() {
	same(c, about{"", "members"}, c.s.Members(), len(c.m.Ring))
	for i, p := range c.m.Ring {
		next := c.m.Ring[(i+1)%len(c.m.Ring)]
		if next == p {
			next = ""
		}
		same(c, about{string(p), "is a member"}, c.s.IsMember(p), true)
		same(c, about{string(p), "watches"}, c.s.Watched(p), next)
	}
	c.s.EachAttempt(func(p terms.PeerID, a membership.Attempt) bool {
		same(c, about{string(p), "attempt"}, a, c.m.Attempts[p])
		return true
	})
	for p, a := range c.m.Attempts {
		fast, _ := c.s.Attempt(p)
		same(c, about{string(p), "attempt"}, fast, a)
	}
}

func (c *comparison) jobs() {
	same(c, about{"", "jobs"}, c.s.Jobs(), len(c.m.Jobs))
	for _, j := range c.m.Jobs {
		fast := c.s.Job(j.ID)
		if fast == nil || c.s.JobOf(j.newest().Name) != fast {
			c.found = append(c.found, fmt.Sprintf("the fold does not know job %d %s", j.ID, j.newest().Name))
			continue
		}
		c.job(fast, j)
	}
	c.deadline()
}

// deadline checks that nothing is due before the fold looks again; it may look earlier, for those that wait.
func (c *comparison) deadline() {
	deadline := c.m.next().at
	if c.m.unfinished {
		deadline = c.m.time
	}
	if first, _ := c.s.NextDeadline(); deadline != 0 && (first == 0 || first > deadline) {
		same(c, about{"", "next deadline"}, first, deadline)
	}
}

func (c *comparison) job(fast *workload.Job, j *Job) {
	name := string(j.newest().Name)
	same(c, about{name, "stop"}, fast.Stop, j.stop)
	same(c, about{name, "jobs that it waits for"}, fmt.Sprint(fast.Awaits), fmt.Sprint(j.awaits))
	same(c, about{name, "suspended"}, fast.Suspended, j.suspended)
	same(c, about{name, "state"}, fast.PolicyState, j.state)
	same(c, about{name, "entries"}, [3]terms.Index{fast.Submitted, fast.Changed, fast.Finished},
		[3]terms.Index{j.submitted, j.changed, j.finished})
	same(c, about{name, "times"}, [2]terms.Time{fast.SubmittedAt, fast.FinishedAt},
		[2]terms.Time{j.submittedAt, j.finishedAt})
	c.versions(fast, j)
	same(c, about{name, "version of the list of members"}, fast.Roster.Version, j.roster)
	record := fast.Update
	record.Reason = ""
	j.update.Reason = ""
	same(c, about{name, "update"}, record, j.update)
	if same(c, about{name, "tasks"}, len(fast.Tasks), len(j.tasks)); len(fast.Tasks) != len(j.tasks) {
		return
	}
	for i, t := range j.tasks {
		c.task(fast.Tasks[i], t)
	}
}

func (c *comparison) versions(fast *workload.Job, j *Job) {
	name := string(j.newest().Name)
	if same(c, about{name, "versions"}, len(fast.Versions), len(j.versions)); len(fast.Versions) != len(j.versions) {
		return
	}
	for i, v := range fast.Versions {
		slow := j.versions[i]
		same(c, about{name, "version"}, [3]uint32{v.Number, v.Of, uint32(v.Kind)},
			[3]uint32{slow.Number, slow.Of, uint32(slow.Kind)})
		same(c, about{name, "outcome"}, v.Outcome, slow.Outcome)
		same(c, about{name, "version's entry"}, v.Index, slow.Index)
		if !v.Spec.Equal(slow.Spec) {
			c.found = append(c.found, fmt.Sprintf("%s: version %d differs", name, v.Number))
		}
	}
}

func (c *comparison) task(fast *workload.Task, t *task) {
	who := string(t.job.newest().Name) + "." + string(t.name)
	same(c, about{who, "task"}, fast.Name, t.name)
	same(c, about{who, "desired"}, fast.Desired, t.desired)
	same(c, about{who, "seal"}, fast.Seal, t.sealed)
	same(c, about{who, "failure"}, fast.Failure, t.failure)
	same(c, about{who, "restarts"}, fast.Restarts, t.restarts)
	same(c, about{who, "restarting"}, fast.Restarting, t.restarting)
	if t.job.finished == 0 {
		same(c, about{who, "completion"}, fast.Completion, t.completion)
	}
	sums := t.standing()
	same(c, about{who, "sums"}, standing{fast.New, fast.Old, fast.Canaries}, sums)
	if same(c, about{who, "slots"}, fast.Slots.Len(), len(t.slots)); fast.Slots.Len() != len(t.slots) {
		return
	}
	fast.EachSecondary(t.job.ID, t.number, func(r facts.SlotRef, got facts.Slot) bool {
		if int(r.Index) >= len(t.slots) || !t.slots[r.Index].seats[r.Seat].taken() {
			c.found = append(c.found, fmt.Sprintf("%s[%d] %s seat: the fold has %+v, the model nothing", who, r.Index, r.Seat,
				got))
		}
		return true
	})
	t.each(func(s *seat) {
		got, _ := c.s.SlotAt(s.ref())
		if got != s.Slot {
			same(c, about{fmt.Sprintf("%s[%d]", who, s.slot.index), s.kind.String() + " seat"}, got, s.Slot)
		}
		if got := fast.Attempts(s.slot.index); s.kind == facts.MainSeat && got.Made != s.slot.attempts.Made ||
			!slices.Equal(got.Latest, s.slot.attempts.Latest) {
			c.found = append(c.found, fmt.Sprintf("%s[%d] attempts: the fold has %+v, the model %+v", who, s.slot.index, got,
				s.slot.attempts))
		}
		if other := s.slot.ordered(s.Order); s.Phase.Holds() && other != s && c.m.rules >= rules.OncePerEntry {
			c.found = append(c.found, fmt.Sprintf("%s[%d] has two allocations #%d", who, s.slot.index, s.Order))
		}
	})
}

func (c *comparison) pools() {
	same(c, about{"", "version of the pools"}, c.s.PoolsVersion(), c.m.poolsVersion)
	same(c, about{"", "capacity"}, c.s.Capacity(), c.m.capacity())
	if !reflect.DeepEqual([]terms.Pool(c.s.Pools()), c.m.pools) {
		c.found = append(c.found, fmt.Sprintf("the fold has the pools %+v, the model %+v", c.s.Pools(), c.m.pools))
		return
	}
	for number, spec := range c.m.pools {
		same(c, about{string(spec.Path), "account"}, c.s.Account(number), c.m.account(spec.Path))
	}
}

func (c *comparison) nodes() {
	same(c, about{"", "nodes"}, c.s.Nodes(), len(c.m.Nodes))
	rooms := c.m.rooms()
	for i, n := range c.m.Nodes {
		fast := c.s.Node(facts.NodeIndex(i))
		name := string(n.Name)
		same(c, about{"", "name of node"}, fast.Name, n.Name)
		same(c, about{name, "peer"}, fast.Peer, n.Peer)
		same(c, about{name, "departed"}, fast.Departed, n.Departed)
		same(c, about{name, "lives"}, len(fast.Sessions), len(n.written))
		for _, session := range fast.Sessions {
			same(c, about{name, "last entry"}, session.Seq, n.written[session.Incarnation])
		}
		if (fast.Offer == nil) != (n.offer == nil) || n.offer != nil && !fast.Offer.Equal(n.offer) {
			c.found = append(c.found, fmt.Sprintf("offer of %s: the fold has %+v, the model %+v", name, fast.Offer, n.offer))
		}
		same(c, about{name, "drain"}, fast.Drain, n.drain)
		same(c, about{name, "free"}, c.s.Free(fast.Index), rooms[i].free)
		same(c, about{name, "ports"}, len(fast.Ports), len(rooms[i].ports))
		for _, p := range rooms[i].ports {
			same(c, about{name, "port " + strconv.Itoa(int(p.Number))}, slices.Contains(fast.Ports, p), true)
		}
		same(c, about{name, "devices"}, len(fast.Devices), len(rooms[i].devices))
		for _, d := range rooms[i].devices {
			same(c, about{name, "device " + d.Kind}, slices.Contains(fast.Devices, d), true)
		}
	}
}
