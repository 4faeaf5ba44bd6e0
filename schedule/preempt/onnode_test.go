package preempt

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestOnNode(t *testing.T) {
	member := func(v Victim) Victim { return with(v, func(v *Victim) { v.Gang = 0 }) }
	high := func(v Victim) Victim { return with(v, func(v *Victim) { v.Priority = 9 }) }
	// needs lets it fit only without one that is named, as it has the port.
	needs := func(in *Input, job int) func(*Plan) bool {
		return func(p *Plan) bool {
			for _, chosen := range p.Victims {
				if int(in.Victims[chosen.Victim].Slot.Job) == job {
					return true
				}
			}
			return job == 0
		}
	}
	for _, c := range []struct {
		name    string
		in      Input
		blocker int
		want    string
	}{
		{"it fits as it is", Input{Nodes: nodes(4), Victims: []Victim{runs(1, 0, 0, 4)}}, 0, ""},
		{"the least valuable goes", Input{Nodes: nodes(0), Victims: []Victim{high(runs(1, 0, 0, 4)), runs(2, 0, 0, 4)}}, 0,
			"2[0]"},
		{"all of them would not do", Input{Nodes: nodes(0), Victims: []Victim{runs(1, 0, 0, 1), runs(2, 0, 0, 2)}}, 0, ""},
		{"nobody goes elsewhere", Input{Nodes: nodes(0), Victims: []Victim{runs(1, 0, 1, 8), runs(2, 0, 0, 2)}}, 0, ""},
		{"who has the port goes, although there is room",
			Input{Nodes: nodes(4), Victims: []Victim{runs(1, 0, 0, 4), high(runs(2, 0, 0, 4))}}, 2, "2[0]"},
		{"and nobody beside him if he is enough",
			Input{Nodes: nodes(0), Victims: []Victim{runs(1, 0, 0, 4), high(runs(2, 0, 0, 4))}}, 2, "2[0]"},
		{"or those who are too", Input{Nodes: nodes(0), Victims: []Victim{runs(1, 0, 0, 4), high(runs(2, 0, 0, 3))}}, 2,
			"1[0] 2[0]"},
		{"nobody has the port that could go", Input{Nodes: nodes(4), Victims: []Victim{runs(1, 0, 0, 4)}}, 7, ""},
		{"a gang is spared", Input{Nodes: nodes(0), Victims: []Victim{member(runs(1, 0, 0, 4)), high(runs(2, 0, 0, 4))},
			Gangs: []Gang{{Surplus: []uint32{0}}}}, 0, "2[0]"},
		{"a gang can lose one", Input{Nodes: nodes(0), Victims: []Victim{member(runs(1, 0, 0, 4)), member(runs(1, 1, 0, 4))},
			Gangs: []Gang{{Surplus: []uint32{1}}}}, 0, "1[1]"},
		{
			"a gang that breaks goes, wherever it runs, and others need not",
			Input{Nodes: nodes(0), Victims: []Victim{member(runs(1, 0, 0, 2)), member(runs(1, 1, 0, 2)),
				member(runs(1, 2, 1, 4)), runs(2, 0, 0, 1)}, Gangs: []Gang{{Surplus: []uint32{0}}}},
			0, "1[2] 1[1] 1[0]",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.Wants = []Want{{Need: runs(0, 0, 0, 4).Need, Count: 1}}
			var got []string
			for _, chosen := range OnNode(&c.in, needs(&c.in, c.blocker)).Victims {
				r := c.in.Victims[chosen.Victim].Slot
				got = append(got, fmt.Sprintf("%d[%d]", r.Job, r.Index))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%v go, want %s", got, c.want)
			}
		})
	}
}

// TestOnNodeAsksSeldom asks about many of whom one has to go: it is asked for groups of them.
func TestOnNodeAsksSeldom(t *testing.T) {
	in, asked := &Input{Nodes: nodes(4), Wants: wants(4, 1)}, 0
	for i := range 512 {
		in.Victims = append(in.Victims, runs(1, i, 0, 0))
	}
	plan := OnNode(in, func(p *Plan) bool {
		asked++
		return slices.ContainsFunc(p.Victims, func(chosen Chosen) bool { return in.Victims[chosen.Victim].Slot.Index == 300 })
	})
	if len(plan.Victims) != 1 || in.Victims[plan.Victims[0].Victim].Slot.Index != 300 {
		t.Errorf("%d go", len(plan.Victims))
	}
	if asked > 2*(1+9)+1 {
		t.Errorf("it was asked %d times", asked)
	}
}
