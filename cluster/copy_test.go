package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/cluster/retries"
	"starling/cluster/workload"
	"starling/terms"
)

// books is a State under random changes through every door of the package, each of which keeps its conditions.
type books struct {
	rng *rand.Rand
	s   *State
}

func (b *books) change() {
	b.s.Index++
	b.s.Time += terms.Time(b.rng.IntN(1000))
	b.s.WakeTimedOut()
	b.s.TakeDirtyPages()
	switch b.rng.IntN(13) {
	case 12:
		b.canary()
	case 0, 1:
		b.machine()
	case 2:
		b.join()
	case 3:
		b.s.Remember(fmt.Sprint("r", b.s.Index),
			facts.Request{Index: b.s.Index, Refusal: facts.Refusal{Code: facts.Code(b.rng.IntN(3)), Reason: "so"}})
	case 4, 5, 6, 7:
		b.submit()
	case 8, 9, 10:
		b.assign()
	default:
		b.advance()
	}
}

func (b *books) node() *Node { return b.s.EnsureNode(terms.NodeName(fmt.Sprint("n", b.rng.IntN(80)))) }

// machine lets a node offer something, or take it back if nothing runs there.
func (b *books) machine() {
	n := b.node()
	if len(n.Held) > 0 {
		return
	}
	b.s.Wrote(n.Index, n.Departed+1, uint64(b.s.Index))
	offer := &terms.Offer{Capacity: terms.Resources{int64(b.rng.IntN(8)) * 1000, 8 << 30, 0}, PortFirst: 1000,
		PortLast:   1009,
		Attributes: []terms.EnvVar{{Name: "zone", Value: fmt.Sprint(b.rng.IntN(3))}},
		Devices:    []terms.DeviceOffer{{Kind: "gpu", Count: 4}}}
	if b.rng.IntN(4) == 0 {
		offer = nil
	}
	b.s.SetOffer(n.Index, offer)
}

// join lets a peer begin an attempt, join behind the first member, or leave.
func (b *books) join() {
	n := b.node()
	p := terms.NewPeerID(n.Name, n.Departed+1)
	switch attempt, ok := b.s.Attempt(p); {
	case n.Peer != "" && b.s.Handshake(n.Peer) == "" && b.s.Members() > 2:
		watcher, watched := b.s.Watcher(n.Peer), b.s.Watched(n.Peer)
		b.s.SetWatched(n.Peer, "")
		b.s.SetWatched(watcher, watched)
		b.s.SetPeer(n.Index, "")
		b.s.Depart(n.Index, n.Departed+1)
	case n.Peer != "":
	case b.s.Members() == 0:
		b.s.SetPeer(n.Index, p)
	case !ok && b.s.Open() > 0:
		b.s.SetAttempt(p, membership.Attempt{Number: 1, Phase: membership.Prepared,
			Observer: b.s.OpenAt(b.rng.IntN(b.s.Open())), Began: b.s.Index})
	case attempt.Phase == membership.Prepared:
		attempt.Phase = membership.Accepted
		b.s.SetAttempt(p, attempt)
	case attempt.Phase == membership.Accepted:
		subject := b.s.Watched(attempt.Observer)
		if subject == "" {
			subject = attempt.Observer
		}
		b.s.SetAttempt(p, membership.Attempt{})
		b.s.SetPeer(n.Index, p)
		b.s.SetWatched(attempt.Observer, p)
		b.s.SetWatched(p, subject)
	}
}

// submit brings a job, a new version of it, or its end.
func (b *books) submit() {
	name := terms.JobName(fmt.Sprint("j", b.rng.IntN(5)))
	spec := &terms.Job{Name: name, Type: terms.Batch}
	for i := range 1 + b.rng.IntN(3) {
		spec.Tasks = append(spec.Tasks,
			terms.Task{Name: terms.TaskName(fmt.Sprint("t", i)), Instances: uint32(b.rng.IntN(150)),
				Resources: terms.Resources{int64(b.rng.IntN(1000)), 1 << 20, 0}, Ports: []terms.PortRequest{{Name: "http"}},
				Devices: []terms.DeviceRequest{{Kind: "gpu", Amount: 500 + 500*terms.Millidevices(b.rng.IntN(2))}}})
	}
	switch j := b.s.JobOf(name); {
	case j == nil:
		b.s.AddJob(spec)
	case j.Finished != 0:
		b.s.Expire(j.ID)
		b.s.ForgetJobs()
	case j.Stop:
	case b.rng.IntN(3) == 0:
		b.s.StopJob(j.ID)
	default:
		b.s.AddVersion(j.ID, facts.JobVersion{Kind: facts.Submitted, Spec: spec}, nil)
		for task := range b.s.Job(j.ID).Tasks {
			want := uint32(0)
			if task < len(spec.Tasks) {
				want = spec.Tasks[task].Instances
			}
			b.s.SetDesired(j.ID, task, want)
		}
		b.s.SetUpdate(j.ID, facts.Update{State: facts.RollingForward, To: j.Version}, terms.Time(b.rng.IntN(3)))
		b.s.SetCompletion(j.ID, 0, facts.Completion{Due: terms.Time(b.rng.IntN(3))})
	}
}

// canary puts a waiting canary beside the first slot of some task, if it has none.
func (b *books) canary() {
	b.s.EachJob(func(j *workload.Job) bool {
		r := facts.SlotRef{Job: j.ID, Task: uint16(b.rng.IntN(len(j.Tasks))), Seat: facts.CanarySeat}
		if _, taken := b.s.SlotAt(r); taken || j.Stop || j.Finished != 0 || j.Tasks[r.Task].Desired == 0 ||
			b.rng.IntN(2) == 0 {
			return true
		}
		b.s.SetSlot(r, facts.Slot{Version: j.Version})
		b.s.SetAttempts(r, retries.Attempts{Made: 1, Latest: []retries.Attempt{{At: b.s.Time, DelayMillis: 5}}})
		return false
	})
}

// assign places waiting slots of some task where there is room.
func (b *books) assign() {
	for _, key := range b.s.QueuedKeys() {
		id, task := key.Split()
		j := b.s.Job(id)
		spec := j.TaskSpecOf(task, j.Version)
		if spec == nil {
			continue
		}
		for n := range facts.NodeIndex(b.s.Nodes()) {
			free := b.s.Free(n)
			node := b.s.Node(n)
			if !b.s.Eligible(n) || !spec.Resources.Fits(&free) || node.PortsFree() == 0 ||
				node.DeviceTimes(&spec.Devices[0], 1) == 0 {
				continue
			}
			t := b.s.Job(id).Tasks[task]
			switch {
			case b.rng.IntN(3) > 0:
			case !key.IsSpecial() && t.Waits() > 0:
				b.s.Assign(key, n, 1, nil)
			case key.IsSpecial() && t.SpecialWaits() > 0:
				t.EachSpecial(id, task, func(r facts.SlotRef, slot facts.Slot) bool {
					if need := j.TaskSpecOf(task, slot.Version); need.Resources.Fits(&free) {
						defer b.s.AssignSpecial(r, n, nil)
					}
					return false
				})
			}
		}
	}
}

// advance moves some slots that hold room on to their next phase.
func (b *books) advance() {
	for n := range facts.NodeIndex(b.s.Nodes()) {
		for _, r := range slices.Clone(b.s.Node(n).Held) {
			if slot, _ := b.s.SlotAt(r); b.rng.IntN(3) == 0 {
				b.next(b.s.Job(r.Job), r, slot)
			}
		}
	}
	switch r, ok := b.s.Due(); {
	case !ok:
	case r.OfUpdate():
		b.s.SetUpdate(r.Job, facts.Update{State: facts.UpdateFailed}, 0)
	case r.OfTask():
		b.s.SetCompletion(r.Job, int(r.Task), facts.Completion{Followed: true})
	default:
		slot, _ := b.s.SlotAt(r)
		slot.Deadline = 0
		if slot.Phase == facts.Rescheduling {
			slot.Phase = facts.Stopped
		}
		b.s.SetSlot(r, slot)
	}
}

// next moves a slot on to some phase.
func (b *books) next(j *workload.Job, r facts.SlotRef, slot facts.Slot) {
	slot.Phase = []facts.Phase{facts.Running, facts.BackingOff, facts.Stopping, facts.Unknown, facts.Succeeded,
		facts.Failed, facts.Stopped, facts.Rescheduling, facts.Waiting}[b.rng.IntN(9)]
	slot.Deadline, slot.Health = 0, facts.Health(b.rng.IntN(int(facts.HealthCount)))
	unknown := r
	unknown.Seat = facts.UnknownSeat
	_, taken := b.s.SlotAt(unknown)
	switch {
	case r.Seat != facts.MainSeat && slot.Phase > facts.Unknown,
		r.Seat != facts.MainSeat && slot.Phase == facts.Rescheduling:
		slot = facts.Slot{}
	case slot.Phase == facts.Unknown && r.Seat == facts.MainSeat && !taken:
		b.s.SetSlot(r, slot)
		b.s.MoveSeat(r, facts.UnknownSeat)
		return
	case slot.Phase == facts.BackingOff || slot.Phase == facts.Rescheduling:
		slot.Deadline = b.s.Time + terms.Time(b.rng.IntN(100))
	case slot.Phase == facts.Waiting && (j.Stop || r.Index >= j.Tasks[r.Task].Desired):
		slot.Phase = facts.Stopped
	case slot.Phase == facts.Waiting:
		slot.Version = []uint32{0, slot.Version}[b.rng.IntN(2)]
		slot.Preference = facts.NodePreference(b.rng.IntN(4))
	}
	b.s.SetSlot(r, slot)
	b.s.FinishIfDone(r.Job)
}

// dump writes out everything in a State that readers can see.
func dump(s *State) string {
	out := &strings.Builder{}
	fmt.Fprintln(out, s.Index, s.Time, s.Unfinished, s.Digest())
	s.EachMember(func(p terms.PeerID) bool {
		fmt.Fprintln(out, p, s.Watched(p), s.Watcher(p), s.Handshake(p))
		return true
	})
	s.EachAttempt(func(p terms.PeerID, a membership.Attempt) bool {
		fmt.Fprintln(out, p, a)
		return true
	})
	for n := range 80 {
		fmt.Fprint(out, s.NodeOf(terms.NodeName(fmt.Sprint("n", n))) != nil, " ")
	}
	fmt.Fprintln(out, s.Classes())
	for n := range facts.NodeIndex(s.Nodes()) {
		node := s.Node(n)
		fmt.Fprintln(out, node.Name, node.Peer, node.Departed, node.Sessions, node.Offer, node.Class, node.Held, node.Ports,
			node.Devices, s.Free(n), s.Eligible(n))
	}
	s.EachJobByName("", func(j *workload.Job) bool {
		fmt.Fprintln(out, j.ID, j.Name(), j.Version, j.Stop, j.Finished, j.Status())
		for _, v := range j.Versions {
			fmt.Fprint(out, v, " ")
		}
		for _, t := range j.Tasks {
			fmt.Fprintln(out, t.Name, t.Desired, t.Fresh, t.Counts, t.Waits(), t.Failure)
			for i := range t.Slots.Len() {
				fmt.Fprint(out, t.Slots.At(i), " ")
			}
			t.EachSpecial(j.ID, 0, func(r facts.SlotRef, slot facts.Slot) bool {
				fmt.Fprint(out, r, slot)
				return true
			})
			t.EachSecondary(j.ID, 0, func(r facts.SlotRef, slot facts.Slot) bool {
				fmt.Fprint(out, r, slot, t.Attempts(r.Index))
				return true
			})
			t.EachOutdated(false, 0, func(index uint32) bool {
				fmt.Fprint(out, index, " ")
				return true
			})
			t.EachOutdated(true, 0, func(index uint32) bool {
				fmt.Fprint(out, index, " ")
				return true
			})
			fmt.Fprint(out, t.Lists())
		}
		return true
	})
	for i := range s.Index {
		if r, ok := s.RequestOf(fmt.Sprint("r", i)); ok {
			fmt.Fprintln(out, i, r)
		}
	}
	at, ok := s.NextDeadline()
	fmt.Fprintln(out, at, ok, s.QueuedKeys())
	return out.String()
}

// TestCopies changes a State at random, keeps copies on the way, changes some of those too, and finds every one as it
// was left, with clean books.
func TestCopies(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 0))
		all := []*books{{rng: rng, s: NewState()}}
		left := []string{dump(all[0].s)}
		for range 150 {
			k := rng.IntN(len(all))
			all[k].change()
			left[k] = dump(all[k].s)
			if rng.IntN(20) == 0 && len(all) < 6 {
				all = append(all, &books{rng: rng, s: all[k].s.Copy()})
				left = append(left, left[k])
			}
		}
		for k, b := range all {
			if got := dump(b.s); got != left[k] {
				t.Fatalf("seed %d: value %d was left as\n%s\nand is\n%s", seed, k, left[k], got)
			}
			if found := b.s.Audit(); len(found) > 0 {
				t.Fatalf("seed %d: the books of value %d: %q", seed, k, found)
			}
		}
	}
}

// TestCopyKeepsVersions drops old versions of a job whose copy still has them.
func TestCopyKeepsVersions(t *testing.T) {
	s := NewState()
	s.SetOffer(s.EnsureNode("a").Index, &terms.Offer{Capacity: terms.Resources{1000, 0, 0}})
	version := func(user string) facts.JobVersion {
		return facts.JobVersion{Kind: facts.Submitted,
			Spec: &terms.Job{Name: "web", Type: terms.Stateless,
				Tasks: []terms.Task{{Name: "server", Instances: 1, User: user}}}}
	}
	s.AddJob(version("0").Spec)
	s.Assign(facts.KeyOf(1, 0), 0, 1, nil)
	for i := range terms.DefaultLimits().Versions {
		s.AddVersion(1, version(fmt.Sprint(i+1)), nil)
	}
	c := s.Copy()
	s.SetSlot(facts.SlotRef{Job: 1, Index: 0}, facts.Slot{Phase: facts.Failed})
	s.AddVersion(1, version("last"), nil)
	if got := c.Job(1).SpecOf(1); got == nil || got.Tasks[0].User != "0" {
		t.Errorf("version 1 in the copy is %v", got)
	}
	if found := append(s.Audit(), c.Audit()...); s.Job(1).SpecOf(1) != nil || len(found) > 0 {
		t.Errorf("version 1 is kept: %v; books: %q", s.Job(1).SpecOf(1) != nil, found)
	}
}
