package preempt

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"starling/cluster/facts"
	"starling/terms"
)

// runs returns a victim that runs: of job and index, on a node, with so much processor.
func runs(job, index, node int, cpu int64) Victim {
	return Victim{
		Slot: facts.SlotRef{Job: terms.JobID(job), Index: uint32(index)}, Node: facts.NodeIndex(node),
		Need: terms.Amounts{cpu},
		Pool: 1, Stage: Running, Gang: NoGang,
	}
}

// with returns a victim with a change.
func with(v Victim, change func(*Victim)) Victim {
	change(&v)
	return v
}

func nodes(free ...int64) (all []Node) {
	for i, cpu := range free {
		all = append(all, Node{Index: facts.NodeIndex(i), Free: terms.Amounts{cpu}})
	}
	return all
}

// choiceCase is a question and its answer in words.
type choiceCase struct {
	name string
	in   Input
	want string
}

func checkChoices(t *testing.T, cases []choiceCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := story(&c.in); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// plenty is more room than any case needs.
var plenty = terms.Amounts{1000}

// over returns amounts of processor by pool.
func over(cpu ...int64) (all []terms.Amounts) {
	for _, amount := range cpu {
		all = append(all, terms.Amounts{amount})
	}
	return all
}

func wants(cpu int64, count uint32) []Want { return []Want{{Need: terms.Amounts{cpu}, Count: count}} }

func TestChooseOrder(t *testing.T) {
	checkChoices(t, []choiceCase{
		{
			"what fits as it is ends nobody",
			Input{Wants: wants(1, 3), Room: plenty, Over: over(0, 9), Nodes: nodes(2, 1), Victims: []Victim{runs(1, 0, 0, 1)}},
			"0 on 0: 2, 0 on 1: 1",
		},
		{
			"revocable before backing off, ordered, lower priority, later start, and higher slot",
			Input{Wants: wants(1, 6), Room: plenty, Over: over(0, 9), Nodes: nodes(0), Victims: []Victim{
				with(runs(1, 0, 0, 1), func(v *Victim) { v.Since = 5 }), with(runs(1, 1, 0, 1), func(v *Victim) { v.Since = 5 }),
				with(runs(2, 0, 0, 1), func(v *Victim) { v.Priority = 1 }),
				with(runs(3, 0, 0, 1), func(v *Victim) { v.Revocable, v.Priority = true, 9 }),
				with(runs(4, 0, 0, 1), func(v *Victim) { v.Stage, v.Priority = Ordered, 9 }),
				with(runs(5, 0, 0, 1), func(v *Victim) { v.Stage, v.Priority = BackingOff, 9 }),
				with(runs(6, 0, 0, 1), func(v *Victim) { v.Since = 4 }),
			}},
			"3[0] as revocable, 5[0] by entitlement, 4[0] by entitlement, 1[1] by entitlement, 1[0] by entitlement, 6[0] by entitlement; 0 on 0: 6",
		},
		{
			"room that adds up to enough on several nodes helps nobody",
			Input{Wants: wants(2, 1), Room: plenty, Over: over(0, 9), Nodes: nodes(0, 0),
				Victims: []Victim{runs(1, 0, 0, 1), runs(1, 1, 1, 1)}},
			"nobody",
		},
		{
			"all of a gang or nobody",
			Input{Wants: wants(1, 3), Room: plenty, Over: over(0, 9), Nodes: nodes(0, 0),
				Victims: []Victim{runs(1, 0, 0, 1), runs(1, 1, 1, 1)}},
			"nobody",
		},
		{
			"as many single instances as can be",
			Input{Wants: wants(1, 3), Partial: true, Room: plenty, Over: over(0, 9), Nodes: nodes(0, 0),
				Victims: []Victim{runs(1, 0, 0, 1), runs(1, 1, 1, 1)}},
			"1[1] by entitlement, 1[0] by entitlement; 0 on 0: 1, 0 on 1: 1",
		},
		{
			"one big one instead of it and a small one",
			Input{Wants: wants(4, 1), Room: plenty, Over: over(0, 9), Nodes: nodes(0), Victims: []Victim{
				with(runs(1, 0, 0, 1), func(v *Victim) { v.Revocable = true }), runs(1, 1, 0, 4),
			}},
			"1[1] by entitlement; 0 on 0: 1",
		},
		{
			"no more than the pool holds above its entitlement",
			Input{Wants: wants(1, 4), Partial: true, Room: plenty, Over: over(0, 2), Nodes: nodes(0, 0, 0, 0), Victims: []Victim{
				runs(1, 0, 0, 1), runs(1, 1, 1, 1), runs(1, 2, 2, 1), runs(1, 3, 3, 1),
			}},
			"1[3] by entitlement, 1[2] by entitlement; 0 on 2: 1, 0 on 3: 1",
		},
	})
}

func TestChooseOwnPool(t *testing.T) {
	checkChoices(t, []choiceCase{
		{
			"its own pool's lower priority, and not the same",
			Input{Wants: wants(1, 2), Partial: true, Pool: 1, Priority: 3, Room: plenty, Over: over(0, 0), Nodes: nodes(0),
				Victims: []Victim{
					with(runs(1, 0, 0, 1), func(v *Victim) { v.Priority = 3 }),
					with(runs(2, 0, 0, 1), func(v *Victim) { v.Priority = 2 }),
				}},
			"2[0] by priority; 0 on 0: 1",
		},
		{
			"a pool that is out of room makes its own work give way, although the node has room",
			Input{Wants: wants(2, 1), Pool: 1, Priority: 3, Room: terms.Amounts{1}, Over: over(0, 0), Nodes: nodes(0, 5),
				Victims: []Victim{
					runs(1, 0, 0, 1), with(runs(2, 0, 0, 1), func(v *Victim) { v.Revocable = true }),
				}},
			"1[0] by priority; 0 on 1: 1",
		},
		{
			"room on the machine and in the pool by the same one",
			Input{Wants: wants(2, 1), Pool: 1, Priority: 3, Room: terms.Amounts{}, Over: over(0, 0), Nodes: nodes(0, 0),
				Victims: []Victim{
					runs(1, 0, 0, 2), with(runs(2, 0, 1, 2), func(v *Victim) { v.Revocable = true }),
				}},
			"1[0] by priority; 0 on 0: 1",
		},
		{
			"revocable work takes from no other",
			Input{Wants: wants(1, 1), Revocable: true, Priority: 9, Room: plenty, Over: over(9, 9), Nodes: nodes(0),
				Victims: []Victim{runs(1, 0, 0, 1)}},
			"nobody",
		},
		{
			"revocable work takes from revocable work above its slack",
			Input{Wants: wants(1, 1), Revocable: true, Room: plenty, Over: over(0, 1), Nodes: nodes(0), Victims: []Victim{
				with(runs(1, 0, 0, 1), func(v *Victim) { v.Revocable = true }),
			}},
			"1[0] by entitlement; 0 on 0: 1",
		},
	})
}

func TestChooseGangs(t *testing.T) {
	gangOf4 := []Victim{}
	for i := range 4 {
		gangOf4 = append(gangOf4, with(runs(7, i, i, 1), func(v *Victim) { v.Gang = 0 }))
	}
	checkChoices(t, []choiceCase{
		{
			"what a gang can spare",
			Input{Wants: wants(1, 2), Room: plenty, Over: over(0, 9), Nodes: nodes(0, 0, 0, 0), Victims: gangOf4,
				Gangs: []Gang{{Surplus: []uint32{2}}}},
			"7[3] by entitlement, 7[2] by entitlement; 0 on 2: 1, 0 on 3: 1",
		},
		{
			"a gang breaks if nothing else helps",
			Input{Wants: wants(1, 3), Room: plenty, Over: over(0, 9), Nodes: nodes(0, 0, 0, 0), Victims: gangOf4,
				Gangs: []Gang{{Surplus: []uint32{2}}}},
			"7[3] by entitlement, 7[2] by entitlement, 7[1] by entitlement, 7[0] by entitlement; 0 on 0: 1, 0 on 2: 1, 0 on 3: 1",
		},
		{
			"a more valuable single one before a gang",
			Input{Wants: wants(1, 1), Room: plenty, Over: over(0, 9), Nodes: nodes(0, 0, 0, 0, 0),
				Victims: append(slices.Clone(gangOf4),
					with(runs(1, 0, 4, 1), func(v *Victim) { v.Priority = 8 })), Gangs: []Gang{{Surplus: []uint32{0}}}},
			"1[0] by entitlement; 0 on 4: 1",
		},
	})
}

// story tells a plan in words.
func story(in *Input) string {
	plan, found := Choose(in)
	if !found {
		return "nobody"
	}
	var victims, seats []string
	for _, chosen := range plan.Victims {
		r := in.Victims[chosen.Victim].Slot
		victims = append(victims, fmt.Sprintf("%d[%d] %s", r.Job, r.Index,
			[...]string{"", "as revocable", "by entitlement", "by priority"}[chosen.Rule]))
	}
	for _, seat := range plan.Seats {
		seats = append(seats, fmt.Sprintf("%d on %d: %d", seat.Want, seat.Node, seat.Count))
	}
	if len(victims) == 0 {
		return strings.Join(seats, ", ")
	}
	return strings.Join(victims, ", ") + "; " + strings.Join(seats, ", ")
}

func TestShed(t *testing.T) {
	victims := []Victim{runs(1, 0, 0, 2), runs(1, 1, 0, 2), runs(1, 2, 0, 1), runs(2, 0, 0, 3), runs(2, 1, 0, 3)}
	for i := range victims {
		victims[i].Priority = uint32(i)
	}
	victims[2].Need[terms.GPU] = 1
	victims[3].Revocable, victims[4].Revocable = true, true
	got := Shed(victims, terms.Amounts{3}, terms.Amounts{terms.CPU: 2, terms.GPU: 1})
	if want := []int{3, 0, 2}; !slices.Equal(got, want) {
		t.Errorf("%v go, want %v", got, want)
	}
}
