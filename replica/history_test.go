package replica

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/snapshot"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/reaction"
	"starling/schedule/place"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/rules"
)

// history makes random entries that fit the value often enough to go deep, and do not fit it often enough to be
// refused.
type history struct {
	rng *rand.Rand
	s   *cluster.State
	// seqs number the entries of each peer that ever wrote.
	seqs map[terms.PeerID]uint64
	log  []*command.Entry
	now  terms.Time
	// shrinks tells that offers may become smaller than what runs.
	shrinks bool
	// wide tells that everything is drawn that a user can ask for: pools, gangs, updates, drains.
	wide bool
}

func newHistory(seed uint64) *history {
	h := &history{rng: rand.New(rand.NewPCG(seed, 7)), s: cluster.NewState(), seqs: map[terms.PeerID]uint64{},
		now: 1_000_000}
	h.shrinks = h.chance(30)
	return h
}

func (h *history) chance(percent int) bool { return h.rng.IntN(100) < percent }

// node returns the peer that lives on one of few nodes now, or would next.
func (h *history) node() terms.PeerID {
	name := terms.NodeName(fmt.Sprintf("n%d", h.rng.IntN(6)))
	node := h.s.NodeOf(name)
	switch {
	case node == nil:
		return terms.NewPeerID(name, 1)
	case node.Peer != "" && h.chance(95):
		return node.Peer
	}
	return terms.NewPeerID(name, node.Departed+1)
}

// next makes an entry of one writer with a few commands.
func (h *history) next() *command.Entry {
	writer := h.node()
	h.now += terms.Time(h.rng.IntN(2000) - 200)
	e := &command.Entry{Writer: writer, Time: h.now, Cause: h.s.Index}
	for range 1 + h.rng.IntN(3) {
		e.Commands = append(e.Commands, h.command(writer))
	}
	h.seqs[writer]++
	e.Seq = h.seqs[writer]
	if h.chance(3) {
		e.Seq -= min(e.Seq, uint64(h.rng.IntN(3)))
	}
	return e
}

// command makes a command that the writer has reason to write, or any other.
func (h *history) command(writer terms.PeerID) command.Command {
	if !h.s.IsMember(writer) {
		reactions := reaction.React(writer, h.s, &reaction.Observed{Now: h.now + 10_000}).Commands
		if len(reactions) > 0 && h.chance(90) {
			return reactions[0]
		}
		return &command.PrepareJoin{Joiner: writer, Attempt: uint32(1 + h.rng.IntN(2))}
	}
	reactions := reaction.React(writer, h.s, &reaction.Observed{Now: h.now}).Commands
	switch draw := h.rng.IntN(100); {
	case draw < 20 && len(reactions) > 0:
		return reactions[0]
	case draw < 30:
		return &command.Volunteer{Peer: writer, Offer: h.offer()}
	case draw < 45:
		return &command.SubmitJob{RequestID: h.requestID(), Spec: h.job()}
	case draw < 50:
		return &command.KillJob{RequestID: h.requestID(), Job: h.jobName(), Now: h.wide && h.chance(30)}
	case draw < 55:
		return &command.Leave{Peer: h.node()}
	case draw < 60:
		return &command.TellTime{}
	case draw < 68 && h.wide:
		return h.request()
	}
	return h.reports(writer)
}

// request makes one of the other requests of users.
func (h *history) request() command.Command {
	slot := terms.SlotName{Job: h.jobName(), Task: terms.TaskName(fmt.Sprint("t", h.rng.IntN(3))),
		Index: uint32(h.rng.IntN(3))}
	order := terms.Index(0)
	if r, ok := h.s.RefOf(slot); ok {
		row, _ := h.s.SlotAt(r)
		order = row.Order
	}
	version := uint32(h.rng.IntN(4))
	switch h.rng.IntN(9) {
	case 0:
		return &command.SteerUpdate{RequestID: h.requestID(), Job: h.jobName(), Version: version,
			Steering: command.Steering(1 + h.rng.IntN(5))}
	case 1:
		return &command.RevertJob{RequestID: h.requestID(), Job: h.jobName(), Against: version, To: uint32(1 + h.rng.IntN(3))}
	case 2:
		return &command.RestartJob{RequestID: h.requestID(), Job: h.jobName(), Task: slot.Task}
	case 3:
		return &command.SuspendJob{RequestID: h.requestID(), Job: h.jobName(), Resume: h.chance(50)}
	case 4:
		return &command.EndAllocation{RequestID: h.requestID(), Slot: slot, Order: order, Elsewhere: h.chance(50),
			Now: h.chance(30)}
	case 5:
		return &command.DrainNode{RequestID: h.requestID(), Node: h.node().Node(), Drain: h.chance(60),
			DeadlineMillis: uint32(h.rng.IntN(5000))}
	case 6:
		return &command.SealTask{RequestID: h.requestID(), Slot: slot, Order: order}
	case 7:
		return &command.RaiseRules{Version: rules.Number(version)}
	}
	pools := &command.ChangePools{RequestID: h.requestID()}
	for _, path := range []terms.PoolPath{"a", "a/b", "c"} {
		if p := terms.NewPool(path); h.chance(50) {
			p.Quotas[terms.CPU] = terms.Quota{Reservation: int64(h.rng.IntN(4)) * 1000, Limit: int64(1+h.rng.IntN(6)) * 1000,
				Share: int64(h.rng.IntN(3))}
			pools.Pools = append(pools.Pools, p)
		} else if h.chance(20) {
			pools.Gone = append(pools.Gone, path)
		}
	}
	return pools
}

func (h *history) requestID() string {
	if h.chance(60) {
		return ""
	}
	return fmt.Sprint("r", h.rng.IntN(50))
}

// jobName is one of a few.
func (h *history) jobName() terms.JobName {
	name := terms.JobName(fmt.Sprint("j", h.rng.IntN(4)))
	if h.wide {
		return []terms.JobName{"", "", "", "a/b/", "c/"}[h.rng.IntN(5)] + name
	}
	return name
}

func (h *history) offer() terms.Offer {
	cpu := int64(4000)
	if h.shrinks {
		cpu = int64(h.rng.IntN(6)) * 1000
	}
	o := terms.Offer{Capacity: terms.Resources{cpu, 4 << 30, 1 << 30}, PortFirst: 8000, PortLast: 8003, Rules: 1}
	if h.chance(50) {
		o.Attributes = []terms.EnvVar{{Name: "disk", Value: "ssd"}, {Name: "size", Value: fmt.Sprint(h.rng.IntN(3))}}
	}
	if h.chance(50) {
		o.Devices = []terms.DeviceOffer{{Kind: "gpu", Count: 2}}
	}
	return o
}

func (h *history) job() terms.Job {
	spec := terms.Job{Name: h.jobName(), Type: terms.Batch}
	if spec.Name > "j1" {
		spec.Type = terms.Stateless
	}
	if h.wide {
		h.widen(&spec)
	}
	for i := range 1 + h.rng.IntN(2) {
		t := terms.Task{
			Name: terms.TaskName(fmt.Sprint("t", (i+h.rng.IntN(2))%3)), Instances: uint32(h.rng.IntN(6)),
			Command:   []string{"run"},
			Resources: terms.Resources{int64(h.rng.IntN(4)) * 500, int64(h.rng.IntN(3)) << 30, 0}, Placement: terms.Pack,
			Restart: terms.Restart{AttemptsMax: uint32(h.rng.IntN(3)), DelayMillis: 1000, DelayMaxMillis: 8000,
				ResetMillis: 5000},
		}
		if h.chance(30) {
			t.Placement = terms.Spread
		}
		if h.chance(20) {
			t.Ports = []terms.PortRequest{{Name: "http"}, {Name: "admin", Number: uint16(8000 + h.rng.IntN(5))}}
		}
		if h.chance(20) {
			t.Devices = []terms.DeviceRequest{{Kind: "gpu", Amount: terms.Millidevices(1+h.rng.IntN(4)) * 250}}
		}
		if h.chance(20) {
			t.Constraints = []constraint.Constraint{{Attribute: "size", Operator: constraint.GreaterOrEqual,
				Values: []string{"1"}}}
		}
		if h.chance(40) {
			t.Labels = []terms.EnvVar{{Name: "app", Value: fmt.Sprint(h.rng.IntN(2))}}
		}
		if h.chance(20) {
			operators := []constraint.Operator{constraint.Less, constraint.Greater, constraint.Equal}
			t.Constraints = append(t.Constraints,
				constraint.Constraint{Label: "app", Values: []string{fmt.Sprint(h.rng.IntN(2))},
					Operator: operators[h.rng.IntN(3)], Count: uint32(h.rng.IntN(3)), Within: []string{"", "size"}[h.rng.IntN(2)],
					Soft: h.chance(50), SoftTimeoutMillis: uint32(h.rng.IntN(3000))})
		}
		if h.chance(10) {
			t.PerNodeMax, t.SpreadOver = uint32(1+h.rng.IntN(2)), "size"
		}
		if i == 0 || spec.Tasks[0].Name != t.Name {
			spec.Tasks = append(spec.Tasks, t)
		}
	}
	return spec
}

// widen draws what a job says as a whole.
func (h *history) widen(spec *terms.Job) {
	spec.Priority = uint32(h.rng.IntN(3)) * 40
	switch spec.Name[len(spec.Name)-1] {
	case '2':
		spec.Type = terms.Stateless
		spec.Update = terms.UpdatePolicy{BatchSize: uint32(h.rng.IntN(3)), Canaries: uint32(h.rng.IntN(2)), AttemptsMax: 1,
			Rollback:              h.chance(50),
			HealthyDeadlineMillis: 2000, ProgressDeadlineMillis: 5000}
	case '3':
		spec.Type = []terms.JobType{terms.Stateful, terms.Daemon}[h.rng.IntN(2)]
	default:
		spec.MinAvailable, spec.KillOnPreempt, spec.Revocable = uint32(h.rng.IntN(3)), h.chance(30), h.chance(20)
	}
}

// reports tells news of some of what the writer holds.
func (h *history) reports(writer terms.PeerID) command.Command {
	news := &command.ReportTasks{Peer: writer}
	for _, a := range reaction.ViewOf(h.s, writer) {
		r := command.Report{Slot: a.Slot, Order: a.ID.Order}
		switch draw := h.rng.IntN(10); {
		case draw < 4:
			continue
		case draw < 7:
			r.Ended, r.ExitCode = facts.ByItself, int32(h.rng.IntN(2))
		case draw < 8:
			r.Ended, r.Detail = facts.NotStarted, "no such program"
		case draw < 9 && r.Order > 0:
			r.Order--
		}
		news.Reports = append(news.Reports, r)
	}
	return news
}

// check returns what is wrong with a value after an entry.
func (h *history) check(s *cluster.State, before terms.Time) []string {
	wrong := s.Audit()
	if s.Time < before {
		wrong = append(wrong, fmt.Sprintf("time went from %d back to %d", before, s.Time))
	}
	for n := range s.Nodes() {
		if free := s.Unheld(facts.NodeIndex(n)); !h.shrinks && slices.Min(free[:]) < 0 && s.Eligible(facts.NodeIndex(n)) {
			wrong = append(wrong, fmt.Sprintf("node %s is over its capacity: %v are free", s.Node(facts.NodeIndex(n)).Name,
				free))
		}
	}
	s.EachJob(func(j *workload.Job) bool {
		for i, t := range j.Tasks {
			if t.Waits() > 0 && j.Finished != 0 {
				wrong = append(wrong, fmt.Sprintf("%s has finished and waits", j.Name()))
			}
			first, _ := s.NextInQueue(s.QueueStart(0), func(workload.QueueEntry) bool { return true })
			for n := range s.Nodes() {
				if first.Key == facts.KeyOf(j.ID, i) && place.Fits(s, facts.KeyOf(j.ID, i), facts.NodeIndex(n)) {
					wrong = append(wrong, fmt.Sprintf("%s.%s waits although %s has room", j.Name(), t.Name,
						s.Node(facts.NodeIndex(n)).Name))
				}
			}
		}
		return true
	})
	return wrong
}

// TestRandomHistories folds random entries and checks the value after each. Copies taken on the way must not change,
// and those that are folded on must stay equal; what is read back from bytes must fold alike.
func TestRandomHistories(t *testing.T) {
	histories := uint64(400)
	if testing.Short() {
		histories = 100
	}
	for seed := range histories {
		if wrong := runHistory(seed, 150); len(wrong) > 0 {
			t.Fatalf("history %d: %q", seed, wrong)
		}
	}
}

// another returns a value equal to s: a copy, or what a snapshot holds.
func another(s *cluster.State) *cluster.State {
	if s.Index%2 > 0 {
		return s.Copy()
	}
	anew, err := restored(s)
	if err != nil {
		panic(err)
	}
	return anew
}

// restored returns the value that a snapshot of s holds, and an error if it is another.
func restored(s *cluster.State) (*cluster.State, error) {
	data := snapshot.Encode(s.Facts())
	all, err := snapshot.Decode(data, rules.Next)
	if err != nil {
		return nil, fmt.Errorf("snapshot of entry %d: %w", s.Index, err)
	}
	anew := cluster.Rebuild(all)
	if anew.Digest() != s.Digest() || !bytes.Equal(snapshot.Encode(anew.Facts()), data) {
		return nil, fmt.Errorf("the value of entry %d is another when it was made from its snapshot", s.Index)
	}
	return anew, nil
}

func runHistory(seed uint64, length int) []string {
	h := newHistory(seed)
	twin := cluster.NewState()
	frozen := map[*cluster.State]uint64{}
	for range length {
		e := h.next()
		if len(h.log) > 0 && h.chance(3) {
			e = h.log[h.rng.IntN(len(h.log))]
		}
		h.log = append(h.log, e)
		read, err := command.Decode(command.Encode(e), rules.First)
		if err != nil {
			return []string{err.Error()}
		}
		before := h.s.Time
		explained := Apply(h.s, h.s.Index+1, e, true)
		plain := Apply(twin, twin.Index+1, read, false)
		if wrong := h.check(h.s, before); len(wrong) > 0 {
			return append(wrong, fmt.Sprintf("after entry %d: %+v", h.s.Index, e))
		}
		if h.s.Digest() != twin.Digest() || explained.Dropped != plain.Dropped ||
			!slices.Equal(explained.Results, plain.Results) {
			return []string{fmt.Sprintf("after entry %d the twin differs: %+v, %+v", h.s.Index, explained, plain)}
		}
		if h.chance(10) {
			frozen[h.s.Copy()] = h.s.Digest()
			twin = another(h.s)
		}
	}
	for s, digest := range frozen {
		if found := s.Audit(); s.Digest() != digest || len(found) > 0 {
			return append(found, fmt.Sprintf("the copy at entry %d changed", s.Index))
		}
	}
	again := cluster.NewState()
	for _, e := range h.log {
		Apply(again, again.Index+1, e, false)
	}
	if again.Digest() != h.s.Digest() {
		return []string{"the log folded again gives another value"}
	}
	return nil
}
