package preempt

import (
	"fmt"
	"testing"

	"starling/cluster/facts"
	"starling/terms"
)

// fullCluster has nodes of 40 cores and 400 units of memory with ten instances each of other pools that hold too much.
func fullCluster(nodes int) *Input {
	in := &Input{Pool: 0, Priority: 9, Over: make([]terms.Amounts, 4)}
	for k := range in.Room {
		in.Room[k] = terms.Unlimited
	}
	for n := range nodes {
		in.Nodes = append(in.Nodes, Node{Index: facts.NodeIndex(n)})
		for i := range 10 {
			v := Victim{
				Slot: facts.SlotRef{Job: terms.JobID(1 + (n*7+i*13)%101), Index: uint32(n*10 + i)}, Node: facts.NodeIndex(n),
				Need: terms.Amounts{4000, 40 << 20}, Pool: 1 + (n+i)%3, Stage: Running, Priority: uint32((n*31 + i*17) % 8),
				Since: terms.Time(n*97+i*1009) % 65521, Gang: NoGang,
			}
			for k := range v.Need {
				in.Over[v.Pool][k] += v.Need[k] / 2
			}
			in.Victims = append(in.Victims, v)
		}
	}
	return in
}

func BenchmarkChoose(b *testing.B) {
	need := terms.Amounts{8000, 60 << 20}
	for _, nodes := range []int{1_000, 10_000} {
		for _, c := range []struct {
			name    string
			count   uint32
			partial bool
			gangs   bool
		}{
			{"one", 1, true, false}, {"gang of 100", 100, false, false}, {"1000 singles", 1000, true, false},
			{"100 among gangs", 100, false, true},
			{"nobody helps", 1 << 20, false, false},
		} {
			in := fullCluster(nodes)
			in.Wants, in.Partial = []Want{{Need: need, Count: c.count}}, c.partial
			if c.gangs {
				for i := range in.Victims {
					in.Victims[i].Gang, in.Victims[i].Priority = i/20, 1
					if i%20 == 0 {
						in.Gangs = append(in.Gangs, Gang{Surplus: []uint32{0}})
					}
				}
			}
			b.Run(fmt.Sprintf("%d nodes/%s", nodes, c.name), func(b *testing.B) {
				for b.Loop() {
					Choose(in)
				}
			})
		}
	}
}
