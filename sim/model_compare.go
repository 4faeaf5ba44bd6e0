package sim

import (
	"fmt"
	"slices"
	"strconv"

	"starling/cluster"
	"starling/replica"
)

// comparison collects where the fold and the model differ.
type comparison struct {
	m     *model
	s     *cluster.State
	found []string
}

// differences compares the value, and what became of the last entry, with the model; nothing is found if all is well.
func (m *model) differences(s *cluster.State, outcome *replica.Outcome) []string {
	c := &comparison{m: m, s: s}
	c.outcome(outcome)
	same(c, about{"", "index, time and rules"}, [3]uint64{uint64(s.Index), uint64(s.Time), uint64(s.Rules)}, [3]uint64{uint64(m.index), uint64(m.time), uint64(m.rules)})
	same(c, about{"", "unfinished"}, s.Unfinished, m.unfinished)
	same(c, about{"", "last job"}, s.LastJob, m.lastJob)
	c.ring()
	c.jobs()
	c.nodes()
	if len(m.requests) > 0 {
		last := m.requests[len(m.requests)-1]
		known, ok := s.RequestOf(last.id)
		same(c, about{last.id, "memory of request"}, ok && (known.Refusal.Code != cluster.OK) == last.refused, true)
		_, ok = s.RequestOf(m.requests[0].id)
		same(c, about{m.requests[0].id, "memory of request"}, ok, true)
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

func (c *comparison) outcome(o *replica.Outcome) {
	if same(c, about{"", "dropped"}, o.Dropped != "", c.m.dropped); c.m.dropped {
		return
	}
	same(c, about{"", "results"}, len(o.Results), len(c.m.refused))
	for i, refused := range c.m.refused {
		if r := o.Results[i].Refusal; (r.Code != cluster.OK) != refused {
			c.found = append(c.found, fmt.Sprintf("command %d: the fold says %s %q, the model refused: %v", i, r.Code, r.Reason, refused))
		}
	}
}

func (c *comparison) ring() {
	same(c, about{"", "members"}, c.s.Members(), len(c.m.circle))
	for i, p := range c.m.circle {
		next := c.m.circle[(i+1)%len(c.m.circle)]
		if next == p {
			next = ""
		}
		same(c, about{string(p), "is a member"}, c.s.IsMember(p), true)
		same(c, about{string(p), "watches"}, c.s.Watched(p), next)
	}
	c.s.EachAttempt(func(p cluster.PeerID, a cluster.Attempt) bool {
		same(c, about{string(p), "attempt"}, a, c.m.attempts[p])
		return true
	})
	for p, a := range c.m.attempts {
		fast, _ := c.s.Attempt(p)
		same(c, about{string(p), "attempt"}, fast, a)
	}
}

func (c *comparison) jobs() {
	same(c, about{"", "jobs"}, c.s.Jobs(), len(c.m.jobs))
	deadline := cluster.Time(0)
	for _, j := range c.m.jobs {
		fast := c.s.Job(j.id)
		if fast == nil || c.s.JobOf(j.newest().Name) != fast {
			c.found = append(c.found, fmt.Sprintf("the fold does not know job %d %s", j.id, j.newest().Name))
			continue
		}
		c.job(fast, j)
		for _, t := range j.tasks {
			for i := range t.slots {
				if s := &t.slots[i]; s.Phase == cluster.Delayed && (deadline == 0 || s.Deadline < deadline) {
					deadline = s.Deadline
				}
			}
			if at := c.m.lapse(t); at != 0 && (deadline == 0 || at < deadline) {
				deadline = at
			}
		}
	}
	if c.m.unfinished {
		deadline = c.m.time
	}
	first, _ := c.s.NextDeadline()
	same(c, about{"", "next deadline"}, first, deadline)
}

func (c *comparison) job(fast *cluster.Job, j *modelJob) {
	name := string(j.newest().Name)
	same(c, about{name, "version"}, fast.Version, uint32(len(j.versions)))
	same(c, about{name, "stop"}, fast.Stop, j.stop)
	same(c, about{name, "entries"}, [3]cluster.Index{fast.Submitted, fast.Changed, fast.Finished}, [3]cluster.Index{j.submitted, j.changed, j.finished})
	same(c, about{name, "times"}, [2]cluster.Time{fast.SubmittedAt, fast.FinishedAt}, [2]cluster.Time{j.submittedAt, j.finishedAt})
	if same(c, about{name, "tasks"}, len(fast.Tasks), len(j.tasks)); len(fast.Tasks) != len(j.tasks) {
		return
	}
	for i, t := range j.tasks {
		other := fast.Tasks[i]
		same(c, about{name, "task"}, other.Name, t.name)
		same(c, about{name, "desired"}, other.Desired, t.desired)
		same(c, about{name, "failure"}, other.Failure, t.failure)
		if same(c, about{name, "slots"}, other.Slots.Len(), len(t.slots)); other.Slots.Len() != len(t.slots) {
			continue
		}
		for k := range t.slots {
			if got := other.Slots.At(k); got != t.slots[k].Slot {
				same(c, about{fmt.Sprintf("%s.%s[%d]", name, t.name, k), "slot"}, got, t.slots[k].Slot)
			}
		}
	}
}

func (c *comparison) nodes() {
	same(c, about{"", "nodes"}, c.s.Nodes(), len(c.m.nodes))
	rooms := c.m.rooms()
	for i, n := range c.m.nodes {
		fast := c.s.Node(cluster.NodeIndex(i))
		name := string(n.name)
		same(c, about{"", "name of node"}, fast.Name, n.name)
		same(c, about{name, "peer"}, fast.Peer, n.peer)
		same(c, about{name, "departed"}, fast.Departed, n.departed)
		same(c, about{name, "lives"}, len(fast.Sessions), len(n.written))
		for _, session := range fast.Sessions {
			same(c, about{name, "last entry"}, session.Seq, n.written[session.Incarnation])
		}
		if (fast.Offer == nil) != (n.offer == nil) || n.offer != nil && !fast.Offer.Equal(n.offer) {
			c.found = append(c.found, fmt.Sprintf("offer of %s: the fold has %+v, the model %+v", name, fast.Offer, n.offer))
		}
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
