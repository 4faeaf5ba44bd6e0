package forecast_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/jobspec"
	"starling/replica"
	"starling/replica/forecast"
	"starling/replica/reaction"
	"starling/terms"
)

// TestForecasts tells what would come of job files, and runs some of them.
//
//	nodes a b cpu=2000           these join and offer that much
//	run                          the job file is folded; then all goes as it was forecast
//	plan                         the forecast for the job file
//	stop web                     the forecast for the end of the job
func TestForecasts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := &world{t: t, s: cluster.NewState()}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			digest := w.s.Digest()
			switch d.Cmd {
			case "nodes":
				cpu := int64(0)
				d.ScanArgs(t, "cpu", &cpu)
				for _, argument := range d.CmdArgs[:len(d.CmdArgs)-1] {
					w.join(argument.Key, cpu)
				}
				return ""
			case "run":
				f := w.forecast(d)
				w.s = f.End
				return words(f)
			case "plan":
				f := w.forecast(d)
				if w.s.Digest() != digest {
					t.Errorf("%s: the forecast changed the value", d.Pos)
				}
				return words(f)
			case "stop":
				job := terms.JobName(d.CmdArgs[0].Key)
				return words(forecast.Of(w.s, &command.KillJob{Job: job}, job, nil))
			}
			t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

type world struct {
	t *testing.T
	s *cluster.State
}

func (w *world) forecast(d *datadriven.TestData) forecast.Forecast {
	documents, err := jobspec.Parse(d.Pos, []byte(d.Input))
	if err != nil {
		w.t.Fatal(err)
	}
	spec := documents[0].Spec
	against := uint32(0)
	if j := w.s.JobOf(spec.Name); j != nil && j.Finished == 0 {
		against = j.Version
	}
	return forecast.Of(w.s, &command.SubmitJob{Spec: spec, Against: against}, spec.Name, nil)
}

// join lets a node join and offer.
func (w *world) join(name string, cpu int64) {
	self := terms.PeerID(name + "~1")
	offer := terms.Offer{Capacity: terms.Resources{cpu, 8 << 30, 0}, PortFirst: 20000, PortLast: 29999, Rules: 1}
	for range 10 {
		seq := uint64(1)
		if node := w.s.NodeOf(terms.NodeName(name)); node != nil {
			seq = node.LastSeq(1) + 1
		}
		for _, writer := range append([]terms.PeerID{self}, members(w.s)...) {
			r := reaction.React(writer, w.s, &reaction.Observed{Now: w.s.Time, Offer: w.offer(writer, self, &offer)})
			if len(r.Commands) == 0 {
				continue
			}
			if writer != self {
				seq = w.s.NodeOf(writer.Node()).LastSeq(1) + 1
			}
			replica.Apply(w.s, w.s.Index+1, &command.Entry{Writer: writer, Seq: seq, Time: w.s.Time + 1, Commands: r.Commands},
				false)
			break
		}
	}
	if w.s.NodeOf(terms.NodeName(name)).Offer == nil {
		w.t.Fatalf("%s did not join", name)
	}
}

func (w *world) offer(writer, self terms.PeerID, offer *terms.Offer) *terms.Offer {
	if writer == self {
		return offer
	}
	return w.s.NodeOf(writer.Node()).Offer
}

func members(s *cluster.State) []terms.PeerID {
	var all []terms.PeerID
	s.EachMember(func(p terms.PeerID) bool {
		all = append(all, p)
		return true
	})
	return all
}

func words(f forecast.Forecast) string {
	if f.Refusal.Code != facts.OK {
		return fmt.Sprintf("refused: %s\n", f.Refusal.Reason)
	}
	var b strings.Builder
	for i, wave := range f.Waves {
		fmt.Fprintf(&b, "wave %d after %dms", i+1, wave.After)
		if wave.Needs != 0 {
			fmt.Fprintf(&b, " and %s", wave.Needs)
		}
		b.WriteByte('\n')
		for k, step := range wave.Steps {
			if k == 8 {
				fmt.Fprintf(&b, "  and %d more\n", len(wave.Steps)-k)
				break
			}
			fmt.Fprintf(&b, "  %s", step.Slot)
			if step.Seat != facts.MainSeat {
				fmt.Fprintf(&b, " %s", step.Seat)
			}
			if step.Stops != "" {
				fmt.Fprintf(&b, " stops on %s", step.Stops)
			}
			if step.Starts != "" {
				fmt.Fprintf(&b, " starts on %s", step.Starts)
			}
			if step.Reason != "" {
				fmt.Fprintf(&b, ": %s", step.Reason)
			}
			b.WriteByte('\n')
		}
	}
	if f.Cut {
		b.WriteString("and steps that are not listed\n")
	}
	if !f.Complete {
		b.WriteString("and so on\n")
	}
	if b.Len() == 0 {
		return "nothing happens\n"
	}
	return b.String()
}
