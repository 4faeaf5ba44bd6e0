package preempt

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"starling/cluster/facts"
	"starling/terms"
)

// paged has an input in pages of a few nodes, with bounds that may be loose.
type paged struct {
	whole *Input
	rng   *rand.Rand
	// done are the pages that were read, gangs the new numbers of the gangs that were, from 1.
	done  map[int]bool
	gangs []int
}

const pageNodes = 3

// inPages returns the same question with nothing read.
func inPages(rng *rand.Rand, whole *Input) (*Input, *paged) {
	in := *whole
	p := &paged{whole: whole, rng: rng, done: map[int]bool{}, gangs: make([]int, len(whole.Gangs))}
	in.Nodes, in.Victims, in.Gangs, in.Unread = nil, nil, nil, p
	return &in, p
}

func (p *paged) PageOf(n facts.NodeIndex) int { return int(n) / pageNodes }

func (p *paged) Pages() (pages []int) {
	for n := range p.whole.Nodes {
		pages = append(pages, p.PageOf(p.whole.Nodes[n].Index))
	}
	for i := range p.whole.Victims {
		pages = append(pages, p.PageOf(p.whole.Victims[i].Node))
	}
	slices.Sort(pages)
	return slices.DeleteFunc(slices.Compact(pages), func(page int) bool { return p.done[page] })
}

func (p *paged) EachLeast(page int, visit func(*Victim)) {
	type class struct {
		pool      int
		revocable bool
		priority  uint32
	}
	seen := map[class]bool{}
	some := slices.DeleteFunc(slices.Clone(p.whole.Victims), func(v Victim) bool { return p.PageOf(v.Node) != page })
	slices.SortStableFunc(some, func(a, b Victim) int { return compareVictims(&a, &b) })
	for _, v := range some {
		one := class{v.Pool, v.Revocable, v.Priority}
		if v.Need = (terms.Amounts{}); p.rng.IntN(2) == 0 {
			v.Since, v.Stage = v.Since+terms.Time(p.rng.IntN(2)), Stage(p.rng.IntN(int(v.Stage)+1))
		}
		if !seen[one] {
			visit(&v)
		}
		seen[one] = true
	}
}

func (p *paged) EachFitting(page int, need *terms.Amounts, visit func(*Node)) {
	for i := range p.whole.Nodes {
		if n := p.whole.Nodes[i]; p.PageOf(n.Index) == page && (fits(need, &n.Free) || p.rng.IntN(3) == 0) {
			visit(&n)
		}
	}
}

func (p *paged) Read(page int, in *Input) {
	p.done[page] = true
	for _, n := range p.whole.Nodes {
		if p.PageOf(n.Index) == page {
			in.Nodes = append(in.Nodes, n)
		}
	}
	for _, v := range p.whole.Victims {
		switch {
		case p.PageOf(v.Node) != page || v.Gang != NoGang && p.gangs[v.Gang] > 0:
		case v.Gang == NoGang:
			in.Victims = append(in.Victims, v)
		default:
			p.readGang(v.Gang, in)
		}
	}
}

func (p *paged) readGang(id int, in *Input) {
	in.Gangs = append(in.Gangs, p.whole.Gangs[id])
	p.gangs[id] = len(in.Gangs)
	for _, v := range p.whole.Victims {
		if v.Gang == id {
			v.Gang = len(in.Gangs) - 1
			in.Victims = append(in.Victims, v)
		}
	}
}

// TestUnreadChangesNothing makes the same choice with everything read and with nothing, in random cases, and reads less
// than all in some.
func TestUnreadChangesNothing(t *testing.T) {
	spared := 0
	for seed := range cases(t) {
		rng := rand.New(rand.NewPCG(seed, 3))
		in := randomInput(rng, seed%3 == 0)
		for range rng.IntN(4) * 2 {
			other := randomInput(rng, true)
			for _, n := range other.Nodes {
				n.Index = facts.NodeIndex(len(in.Nodes) * 2)
				in.Nodes = append(in.Nodes, n)
			}
			for i, v := range other.Victims {
				v.Slot.Job, v.Slot.Index = v.Slot.Job+terms.JobID(len(in.Victims)), uint32(100+i)
				v.Node = facts.NodeIndex(rng.IntN(len(in.Nodes)*2 + 1))
				in.Victims = append(in.Victims, v)
			}
		}
		want, found := Choose(in)
		other, p := inPages(rng, in)
		got, again := Choose(other)
		if found != again || found && (!slices.Equal(slots(in, &want), slots(other, &got)) ||
			!reflect.DeepEqual(want.Seats, got.Seats)) {
			t.Fatalf("seed %d: with pages %v %v, without\n%s", seed, slots(other, &got), got.Seats, picture(in, &want))
		}
		if found && len(p.Pages()) > 0 {
			spared++
		}
		if next, still := Choose(other); still != again || !slices.Equal(slots(other, &next), slots(other, &got)) {
			t.Fatalf("seed %d: with some pages read %v, with none %v", seed, slots(other, &next), slots(other, &got))
		}
	}
	if spared < int(cases(t)/20) {
		t.Errorf("only %d choices left pages unread", spared)
	}
}
