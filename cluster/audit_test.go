package cluster

import (
	"strings"
	"testing"

	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/cluster/workload"
	"starling/terms"
)

// audited returns a value with two members, a joiner, and a job with one slot in each of several phases.
func audited() *State {
	s := NewState()
	s.Index, s.Time = 10, 1000
	for _, name := range []terms.NodeName{"a", "b", "c"} {
		s.Wrote(s.EnsureNode(name).Index, 1, 1)
	}
	for _, name := range []terms.NodeName{"a", "b"} {
		n := s.NodeOf(name).Index
		s.SetPeer(n, terms.NewPeerID(name, 1))
		s.SetOffer(n, &terms.Offer{Capacity: terms.Resources{4000, 4 << 30, 0}, PortFirst: 8000, PortLast: 8009})
	}
	s.SetWatched("a~1", "b~1")
	s.SetWatched("b~1", "a~1")
	s.SetAttempt("c~1", membership.Attempt{Number: 1, Phase: membership.Prepared, Observer: "a~1"})
	j := s.AddJob(&terms.Job{Name: "web", Type: terms.Stateless, Tasks: []terms.Task{{
		Name: "server", Instances: 5, Resources: terms.Resources{1000, 1 << 30, 0},
		Ports: []terms.PortRequest{{Name: "http"}},
	}}})
	s.Assign(facts.KeyOf(j.ID, 0), 0, 2, nil)
	s.Assign(facts.KeyOf(j.ID, 0), 1, 1, nil)
	s.SetSlot(facts.SlotRef{Job: 1, Index: 1}, facts.Slot{Order: 10, Phase: facts.BackingOff, Deadline: 2000, Version: 1})
	s.Remember("once", facts.Request{Index: 9, Job: "web"})
	return s
}

func TestAuditIsCleanAtFirst(t *testing.T) {
	if found := audited().Audit(); len(found) > 0 {
		t.Errorf("Audit() = %q, want nothing", found)
	}
}

// recountAsNew counts the instances of a task as if there were a newer version.
func recountAsNew(s *State) {
	j := *s.Job(1)
	j.Version++
	j.Tasks[0].Recount(&j, 0)
}

// TestAudit plants one difference at a time.
func TestAudit(t *testing.T) {
	row := func(s *State, n facts.NodeIndex) *Node { return s.nodes.At(int(n)) }
	task := func(s *State) *workload.Task { return s.Job(1).Tasks[0] }
	cases := []struct {
		name, want string
		plant      func(*State)
	}{
		{"free room", "free room of node a", func(s *State) { s.rooms.Take(s.epoch, 0, terms.Resources{1, 0, 0}) }},
		{"eligibility", "eligibility of node b", func(s *State) { s.rooms.Set(s.epoch, 1, s.Free(1), false) }},
		{"held slots", "slots of node a", func(s *State) { row(s, 0).Held = row(s, 0).Held[:1] }},
		{"a port given twice", "gave port 8000 twice", func(s *State) { row(s, 0).Ports[1].Number = 8000 }},
		{"a port not given", "has 0 ports, wants 1", func(s *State) { row(s, 1).Ports = nil }},
		{"counts", "kept is", func(s *State) { task(s).Counts[facts.Running]++ }},
		{"the digest of slots", "kept is", func(s *State) { task(s).Digest++ }},
		{"waiting slots", "kept is", func(s *State) { task(s).Fresh-- }},
		{"queue", "the queue", func(s *State) { s.waiting.Delete(task(s).QueueEntry) }},
		{"queued twice", "the queue", func(s *State) { s.waiting.Set(workload.QueueEntry{Key: 99}) }},
		{"a wrong entry", "task server of job web", func(s *State) { task(s).QueueEntry.Rank++ }},
		{"accounts", "account 1: kept is", func(s *State) { s.editAccount(1).Held.NonSlack[terms.CPU]++ }},
		{"offers", "what the nodes offer to pools", func(s *State) { s.offered[terms.GPU]++ }},
		{"deadlines", "deadlines: kept is []", func(s *State) { s.deadlines.PopMin() }},
		{"what is to follow", "deadlines: kept is", func(s *State) { task(s).Completion.Due = 9 }},
		{"what has followed", "the digest of the rows", func(s *State) { task(s).Completion.Followed = true }},
		{"version", "runs version 1, which is not kept",
			func(s *State) { s.Job(1).Version, s.Job(1).Versions[0].Number = 2, 2 }},
		{"health", "kept is", func(s *State) { task(s).New[facts.Healthy]++ }},
		{"canaries", "kept is", func(s *State) { task(s).Canaries[facts.Healthy]++ }},
		{"outdated slots", "outdated slots of task server", recountAsNew},
		{"ill slots", "ill slots of task server", recountAsNew},
		{"particular waits", "particular waits of task server", func(s *State) {
			s.SetSlot(facts.SlotRef{Job: 1, Index: 1}, facts.Slot{Order: 10, Phase: facts.Failed, Version: 1})
			s.SetSlot(facts.SlotRef{Job: 1, Index: 1}, facts.Slot{Order: 10, Preference: facts.OnlyNode})
			task(s).CutSpecial(facts.SlotRef{Job: 1})
		}},
		{"digest of rows", "the digest of the rows", func(s *State) { s.digest++ }},
		{"a changed node", "the digest of the rows", func(s *State) { row(s, 0).Departed = 7 }},
		{"a changed job", "the digest of the rows", func(s *State) { s.Job(1).Stop = true }},
		{"a forgotten request", "the digest of the rows", func(s *State) { s.requests.Forget(s.Rules) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := audited()
			c.plant(s)
			if found := strings.Join(s.Audit(), "\n"); !strings.Contains(found, c.want) {
				t.Errorf("Audit() finds %q, want %q", found, c.want)
			}
		})
	}
}
