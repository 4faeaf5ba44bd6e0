package preempt

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

// cases returns how many random cases are run: as many as STARLING_CASES says.
func cases(t *testing.T) uint64 {
	if told := os.Getenv("STARLING_CASES"); told != "" {
		n, err := strconv.ParseUint(told, 10, 64)
		if err != nil {
			t.Fatalf("STARLING_CASES: %v", err)
		}
		return n
	}
	if testing.Short() {
		return 1_000
	}
	return 20_000
}

// TestPlans checks plans on random cases: they do what they say, nobody in them can be spared, and their input's order
// does not matter.
func TestPlans(t *testing.T) {
	for seed := range cases(t) {
		rng := rand.New(rand.NewPCG(seed, 1))
		plain := seed%2 == 0
		in := randomInput(rng, plain)
		plan, found := Choose(in)
		if !found {
			continue
		}
		if wrong := newTwin(in).wrong(&plan); wrong != "" {
			t.Fatalf("seed %d: %s\n%s", seed, wrong, picture(in, &plan))
		}
		if plain && in.Room[0] >= 100 && !newTwin(in).needsWorst(&plan) {
			t.Fatalf("seed %d: those who are worth less would have been enough\n%s", seed, picture(in, &plan))
		}
		other := shuffled(rng, in)
		again, _ := Choose(other)
		if named, renamed := slots(in, &plan),
			slots(other, &again); !slices.Equal(named, renamed) || !reflect.DeepEqual(plan.Seats, again.Seats) {
			t.Fatalf("seed %d: another order of the input gives %v %v, not\n%s", seed, renamed, again.Seats, picture(in, &plan))
		}
	}
}

// TestPlanIsFound compares with trying everything: where no gangs and no bounds of what others give make it hard, a
// plan is found whenever there is one, for as many as possible; elsewhere nearly always.
func TestPlanIsFound(t *testing.T) {
	missed := uint64(0)
	for seed := range cases(t) / 5 {
		plain := seed%2 == 0
		in := randomInput(rand.New(rand.NewPCG(seed, 2)), plain)
		plan, found := Choose(in)
		w := newTwin(in)
		unbroken, broken := w.best()
		if got := w.seated(&plan); got > broken || found != (got > 0) {
			t.Fatalf("seed %d: %d have seats, at most %d could\n%s", seed, got, broken, picture(in, &plan))
		} else if got == broken && (unbroken < broken || !breaks(w, &plan)) {
			continue
		}
		if missed++; plain {
			t.Fatalf("seed %d: %d could have seats, %d without a broken gang\n%s", seed, broken, unbroken, picture(in, &plan))
		}
	}
	if t.Logf("%d hard cases of %d were missed", missed, cases(t)/10); missed*100 > max(cases(t)/10, 200) {
		t.Error("more than one of 100 is too many")
	}
}

// needsWorst tells whether less would run if only those could go who are worth less than the most valuable of a plan.
func (w *twin) needsWorst(p *Plan) bool {
	if len(p.Victims) == 0 {
		return true
	}
	worst, cheaper := value{age: -1 << 40}, []int{}
	for _, chosen := range p.Victims {
		if worth := valueOf(&w.in.Victims[chosen.Victim]); worst.compare(&worth) < 0 {
			worst = worth
		}
	}
	for i := range w.in.Victims {
		if worth := valueOf(&w.in.Victims[i]); worth.compare(&worst) < 0 && w.allowed([]unit{{victims: []int{i}}}) == "" {
			cheaper = append(cheaper, i)
		}
	}
	return w.room(cheaper) < w.seated(p)
}

func breaks(w *twin, p *Plan) bool {
	var victims []int
	for _, chosen := range p.Victims {
		victims = append(victims, chosen.Victim)
	}
	units, _ := w.split(victims)
	return slices.ContainsFunc(units, func(u unit) bool { return u.gang != NoGang })
}

// shuffled returns the same question in another order.
func shuffled(rng *rand.Rand, in *Input) *Input {
	other := *in
	other.Nodes, other.Victims = slices.Clone(in.Nodes), slices.Clone(in.Victims)
	rng.Shuffle(len(other.Nodes), func(a, b int) { other.Nodes[a], other.Nodes[b] = other.Nodes[b], other.Nodes[a] })
	rng.Shuffle(len(other.Victims), func(a, b int) {
		other.Victims[a], other.Victims[b] = other.Victims[b], other.Victims[a]
	})
	return &other
}

// slots names the victims of a plan, with the rule for each.
func slots(in *Input, p *Plan) (all []string) {
	for _, chosen := range p.Victims {
		all = append(all, fmt.Sprintf("%v %d", in.Victims[chosen.Victim].Slot, chosen.Rule))
	}
	return all
}

// picture shows a case and its plan.
func picture(in *Input, p *Plan) string {
	text := fmt.Sprintf("pool %d revocable %v priority %d partial %v room %v subtree %v over %v gangs %v\n", in.Pool,
		in.Revocable, in.Priority, in.Partial,
		in.Room, in.Subtree, in.Over, in.Gangs)
	for _, want := range in.Wants {
		most := []uint32{}
		for _, n := range in.Nodes {
			if want.Most != nil {
				most = append(most, want.Most(n.Index))
			}
		}
		text += fmt.Sprintf("want %d of %v, at most %v\n", want.Count, want.Need, most)
	}
	for _, n := range in.Nodes {
		text += fmt.Sprintf("node %d has %v\n", n.Index, n.Free)
	}
	for i, v := range in.Victims {
		text += fmt.Sprintf("%d: %+v\n", i, v)
	}
	return text + fmt.Sprintf("%+v", *p)
}
