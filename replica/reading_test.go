package replica

import (
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/plugin/roster"
	"starling/replica/reaction"
	"starling/schedule"
	"starling/schedule/admission"
	"starling/schedule/entitle"
	"starling/schedule/explain"
	"starling/sim/imprint"
	"starling/terms"
)

// reading checks that who reads a value leaves it as it was, down to the last byte.
type reading struct {
	t *testing.T
	// jobs, devices, gangs, spreads and shares count what was read, so that poor values are noticed.
	jobs, devices, gangs, spreads, shares int
}

// all has every reader read.
func (r *reading) all(s *cluster.State) {
	r.t.Helper()
	before := imprint.Of(s)
	r.fold(s)
	if imprint.Of(s) != before {
		r.t.Fatalf("at entry %d the value has changed because a peer that folds it has read it", s.Index)
	}
	frozen := s.Freeze()
	before = imprint.Of(&frozen)
	r.copies(frozen)
	if imprint.Of(&frozen) != before {
		r.t.Fatalf("at entry %d the frozen value has changed because copies of it were computed on", s.Index)
	}
}

// fold reads as a peer does beside its fold.
func (r *reading) fold(s *cluster.State) {
	s.EachJob(func(j *workload.Job) bool {
		r.jobs++
		for i, t := range j.Tasks {
			roster.Members(s, j, i)
			if spec := j.TaskSpecOf(i, j.Version); spec != nil {
				r.devices, r.spreads = r.devices+len(spec.Devices), r.spreads+len(spec.SpreadOver)
			}
			for index := range t.Slots.Len() {
				ref := facts.SlotRef{Job: j.ID, Task: uint16(i), Index: uint32(index)}
				id := terms.AllocationID{Slot: s.NameOf(ref), Order: t.Slots.At(index).Order}
				reaction.OutputOf(s, ref)
				reaction.HandoverOf(s, id)
				reaction.IsKept(s, id)
			}
		}
		if j.HasGang() {
			r.gangs++
		}
		if j.Spec.Shares() {
			r.shares++
		}
		if j.Finished == 0 {
			roster.Of(s, j)
		}
		return true
	})
	for n := range facts.NodeIndex(s.Nodes()) {
		peer := terms.NewPeerID(s.Node(n).Name, s.Node(n).Departed+1)
		reaction.ViewOf(s, peer)
		reaction.React(peer, s, &reaction.Observed{Now: s.Time + 60_000, Gone: []terms.PeerID{s.Watched(peer)}, Starts: 9,
			Offer: s.Node(n).Offer})
	}
	admission.AncestorLimitsOf(s, entitle.Entitlements(entitle.Of(s)), nil)
	s.Audit()
	s.Digest()
}

// copies computes on copies, as the API does to explain and to plan.
func (r *reading) copies(frozen cluster.Frozen) {
	frozen.Copy().EachJob(func(j *workload.Job) bool {
		own := frozen.Copy()
		explain.Job(own, own.Job(j.ID), &explain.Reader{Try: Tries(own, j.Name())})
		schedule.DivisionOf(own, j.ID)
		for i := range j.Tasks {
			if own.Job(j.ID).TaskSpecOf(i, j.Version) != nil {
				explain.Obstacles(own, own.Job(j.ID), i)
			}
		}
		spec, writer := *j.Spec, imagined(own)
		own = frozen.Copy()
		Apply(own, own.Index+1, writer(&command.SubmitJob{Spec: spec, Against: j.Version}), true)
		Apply(own, own.Index+1, writer(&command.KillJob{Job: j.Name()}), true)
		return true
	})
}

// imagined makes entries that any member may have written.
func imagined(s *cluster.State) func(command.Command) *command.Entry {
	writer, seq := terms.PeerID(""), uint64(1)<<40
	if s.Members() > 0 {
		writer = s.MemberAt(0)
	}
	return func(c command.Command) *command.Entry {
		seq++
		return &command.Entry{Writer: writer, Seq: seq, Time: s.Time + 1000, Cause: s.Index, Commands: []command.Command{c}}
	}
}

// TestReadersWriteNothing reads values of random histories: of machines with devices and rules, of pools, and of jobs
// that share virtual peers.
func TestReadersWriteNothing(t *testing.T) {
	r := &reading{t: t}
	for seed := range uint64(4) {
		h := newHistory(seed)
		for entry := range 150 {
			if Apply(h.s, h.s.Index+1, h.next(), true); entry%15 == 0 {
				r.all(h.s)
			}
		}
		g := newSharing(seed)
		for range 12 {
			g.submit()
			r.all(g.s)
			g.settle()
		}
		c := newSharedPool(seed)
		for range 6 {
			c.step()
			r.all(c.s)
		}
	}
	if min(r.jobs, r.devices, r.gangs, r.spreads, r.shares) == 0 {
		t.Errorf("the values were poor: %+v", *r)
	}
}
