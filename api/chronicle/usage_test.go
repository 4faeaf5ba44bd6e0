package chronicle

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/terms"
)

// past is a history that is folded again whenever it is asked.
type past struct {
	s       *cluster.State
	entries []*command.Entry
	seq     map[terms.PeerID]uint64
	now     terms.Time
}

func (p *past) write(by terms.PeerID, c command.Command) {
	p.seq[by]++
	e := &command.Entry{Writer: by, Seq: p.seq[by], Time: p.now, Cause: p.s.Index, Commands: []command.Command{c}}
	replica.Apply(p.s, p.s.Index+1, e, false)
	p.entries = append(p.entries, e)
}

func (p *past) At(ctx context.Context, index terms.Index) (*cluster.State, error) {
	s := cluster.NewState()
	for _, e := range p.entries[:index] {
		replica.Apply(s, s.Index+1, e, false)
	}
	return s, ctx.Err()
}

func (p *past) Walk(ctx context.Context, from, to terms.Index,
	visit func(*cluster.State, *report.Folded) error) error {
	s, _ := p.At(ctx, from)
	for _, e := range p.entries[from:to] {
		outcome := replica.Apply(s, s.Index+1, e, true)
		if err := visit(s, &report.Folded{Index: s.Index, Entry: e, Outcome: outcome}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// live lets machines start and end what they were told, jobs come, be changed and go, and machines leave.
func live(seed uint64) *past {
	rng := rand.New(rand.NewPCG(seed, 3))
	p := &past{s: cluster.NewState(), seq: map[terms.PeerID]uint64{}, now: 1_000_000}
	for _, self := range []terms.PeerID{"a~1", "b~1", "c~1"} {
		p.write(self, &command.PrepareJoin{Joiner: self, Attempt: 1})
		if attempt, joins := p.s.Attempt(self); joins {
			p.write(attempt.Observer, &command.NotifyJoin{Joiner: self, Attempt: 1})
			p.write(self, &command.AcceptJoin{Joiner: self, Observer: attempt.Observer, Attempt: 1})
		}
		p.write(self, &command.Volunteer{Peer: self, Offer: terms.Offer{Capacity: terms.Resources{4000, 8 << 30, 1 << 40},
			Devices: []terms.DeviceOffer{{Kind: "gpu", Count: 2}}, Rules: 1}})
	}
	for i := range 120 {
		p.now += terms.Time(rng.IntN(60_000))
		name := terms.JobName(fmt.Sprint("j", rng.IntN(4)))
		switch rng.IntN(8) {
		case 0, 1:
			p.submit(rng, name)
		case 2:
			p.write("a~1", &command.KillJob{Job: name})
		case 3:
			p.write("a~1", &command.TellTime{})
		case 4:
			if i == 90 {
				p.write("a~1", &command.Leave{Peer: "c~1"})
			}
		default:
			p.report(rng, []terms.PeerID{"a~1", "b~1", "c~1"}[rng.IntN(3)])
		}
	}
	return p
}

func (p *past) submit(rng *rand.Rand, name terms.JobName) {
	spec := terms.Job{Name: name, Type: []terms.JobType{terms.Batch, terms.Stateless}[rng.IntN(2)], Tasks: []terms.Task{{
		Name: "t", Instances: uint32(1 + rng.IntN(4)), Command: []string{"run"}, Placement: terms.Pack,
		Resources: terms.Resources{int64(100 * rng.IntN(9)), int64(rng.IntN(3)) << 30, 0}}}}
	if rng.IntN(3) == 0 {
		spec.Tasks[0].Devices = []terms.DeviceRequest{{Kind: "gpu", Amount: 500}}
	}
	c := &command.SubmitJob{Spec: spec}
	if j := p.s.JobOf(name); j != nil && j.Finished == 0 {
		c.Against, c.Spec.Type = j.Version, j.Spec.Type
	}
	p.write("a~1", c)
}

// report lets a machine tell something of each of its allocations.
func (p *past) report(rng *rand.Rand, self terms.PeerID) {
	c := &command.ReportTasks{Peer: self}
	for _, a := range reaction.ViewOf(p.s, self) {
		news := command.Report{Slot: a.Slot, Order: a.ID.Order}
		switch {
		case a.Phase == facts.Stopping:
			news.Ended = facts.OnRequest
		case rng.IntN(4) == 0:
			news.Ended, news.ExitCode = facts.ByItself, int32(rng.IntN(2))
		default:
			news.Ready = true
		}
		c.Reports = append(c.Reports, news)
	}
	if len(c.Reports) > 0 {
		p.write(self, c)
	}
}

// slowly counts hours by looking at all slots after each entry: the slow twin.
func (p *past) slowly(period Period) map[string]*Row {
	rows := map[string]*Row{}
	s, _ := p.At(context.Background(), period.From)
	for i := period.From; ; i++ {
		until := period.Until
		if i < period.To {
			next, _ := p.At(context.Background(), i+1)
			until = min(until, next.Time)
		}
		hours := float64(max(until-max(s.Time, period.Since), 0)) / 3_600_000
		s.EachJob(func(j *workload.Job) bool {
			for task := range j.Tasks {
				s.EachSlot(j.ID, task, func(_ facts.SlotRef, slot facts.Slot) bool {
					if slot.Phase.Holds() {
						row := rows[string(j.Name())]
						if row == nil {
							row = &Row{Devices: map[string]float64{}}
							rows[string(j.Name())] = row
						}
						spec := j.TaskSpecOf(task, slot.Version)
						row.CPU += hours * float64(spec.Resources[terms.CPU]) / 1000
						row.Memory += hours * float64(spec.Resources[terms.Memory]) / (1 << 30)
						for _, d := range spec.Devices {
							row.Devices[d.Kind] += hours * float64(d.Amount) / 1000
						}
					}
					return true
				})
			}
			return true
		})
		if i == period.To {
			return rows
		}
		replica.Apply(s, s.Index+1, p.entries[i], false)
	}
}

// TestUsageIsWhatWasHeld compares the hours of random histories with those of the slow twin.
func TestUsageIsWhatWasHeld(t *testing.T) {
	held := 0.0
	for seed := range uint64(12) {
		p := live(seed)
		last := terms.Index(len(p.entries))
		middle, err := p.At(context.Background(), last/2)
		if err != nil {
			t.Fatal(err)
		}
		for _, period := range []Period{{0, last, 0, p.now + 50_000}, {last / 2, last - 5, middle.Time, p.now - 1}} {
			got, err := Usage(context.Background(), p, []string{"job"}, period)
			if err != nil {
				t.Fatal(err)
			}
			want := p.slowly(period)
			for _, row := range got {
				w := want[row.Keys[0]]
				if w == nil {
					w = &Row{}
				}
				if far(row.CPU, w.CPU) || far(row.Memory, w.Memory) || far(row.Devices["gpu"], w.Devices["gpu"]) {
					t.Errorf("seed %d: %v: got %+v, want %+v", seed, period, *row, *w)
				}
				held += row.CPU
				delete(want, row.Keys[0])
			}
			for job, w := range want {
				if w.CPU+w.Memory > 0 {
					t.Errorf("seed %d: %s is missing: %+v", seed, job, *w)
				}
			}
		}
	}
	if held < 5 {
		t.Errorf("only %f hours were held: the histories are about nothing", held)
	}
}

func far(a, b float64) bool { return math.Abs(a-b) > 1e-9*(1+math.Abs(b)) }

// TestGroupings wants a row for each combination, in order.
func TestGroupings(t *testing.T) {
	p := live(1)
	period := Period{0, terms.Index(len(p.entries)), 0, p.now}
	rows, err := Usage(context.Background(), p, Groupings(), period)
	inOrder := slices.IsSortedFunc(rows, func(a, b *Row) int { return slices.Compare(a.Keys, b.Keys) })
	if err != nil || len(rows) < 2 || !inOrder {
		t.Fatalf("got %d rows, %v", len(rows), err)
	}
	for _, row := range rows {
		if row.Keys[0] != "default" || row.Keys[2] != "t" || row.Allocations == 0 {
			t.Errorf("got %+v", *row)
		}
	}
}

// TestParts leaves out of entries what is about others.
func TestParts(t *testing.T) {
	p := live(2)
	target, seen := Target{Job: "j1", Task: "t", Number: 0}, 0
	_ = p.Walk(context.Background(), 0, terms.Index(len(p.entries)), func(_ *cluster.State, f *report.Folded) error {
		part, ok := target.Part(f, func(terms.PoolPath) bool { return true })
		if !ok {
			return nil
		}
		seen++
		for _, e := range part.Outcome.Effects {
			if e.Slot.Job != "j1" || e.Slot.Task != "" && e.Slot.Index != 0 {
				t.Errorf("entry %d: it has %+v", f.Index, e)
			}
		}
		if len(part.Entry.Commands) != len(part.Outcome.Results) {
			t.Errorf("entry %d: commands and results are not alike", f.Index)
		}
		return nil
	})
	if seen < 5 {
		t.Errorf("only %d entries are about it", seen)
	}
}

// TestPartsNameNobodyElse has no names of jobs that the reader may not see.
func TestPartsNameNobodyElse(t *testing.T) {
	f := &report.Folded{}
	f.Outcome.Effects = []report.Effect{{Kind: report.GaveWay, Slot: terms.SlotName{Job: "b/own", Task: "t"},
		By: "a/merger", Reason: "its pool gets back what is its own"}}
	target := Target{Job: "b/own", Number: -1}
	for sees, want := range map[terms.PoolPath]terms.JobName{"a": "a/merger", "b": ""} {
		part, ok := target.Part(f, func(p terms.PoolPath) bool { return p == sees })
		if !ok || part.Outcome.Effects[0].By != want {
			t.Errorf("who sees %s reads %+v, want %q", sees, part.Outcome.Effects, want)
		}
	}
}
