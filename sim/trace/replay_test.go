package trace

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"starling/cluster/facts"
	"starling/terms"
)

func TestArrivals(t *testing.T) {
	tasks := sample(t).Tasks
	demand := func(order []int) (sum int64) {
		for _, i := range order {
			sum += int64(tasks[i].GPU)
		}
		return sum
	}
	for seed := range uint64(50) {
		all := arrivals(tasks, 0, seed)
		if again := arrivals(tasks, 0, seed); !slices.Equal(all, again) {
			t.Errorf("seed %d: got %v, then %v", seed, all, again)
		}
		if got := slices.Sorted(slices.Values(all)); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5}) {
			t.Errorf("seed %d: got %v, want each task once", seed, got)
		}
		for _, enough := range []int64{1, 3000, 100_000} {
			some := arrivals(tasks, enough, seed)
			if got, before := demand(some), demand(some[:len(some)-1]); got < enough || before >= enough {
				t.Errorf("seed %d: %d of GPUs arrive, %d before the last; want just %d", seed, got, before, enough)
			}
		}
	}
	if slices.Equal(arrivals(tasks, 0, 1), arrivals(tasks, 0, 2)) {
		t.Error("two seeds draw the same order")
	}
}

// TestReplay replays under every policy what has room for all but the task of four GPUs.
func TestReplay(t *testing.T) {
	recorded := sample(t)
	for number, policy := range terms.Placements() {
		if number == 0 {
			continue
		}
		arrivals := 0
		o := Options{Placement: terms.Placement(number), Seed: 2, Progress: func(done, all int) {
			if arrivals++; done != arrivals || all != len(recorded.Tasks) {
				t.Errorf("%s: told %d of %d, want %d of %d", policy, done, all, arrivals, len(recorded.Tasks))
			}
		}}
		r, err := Replay(context.Background(), recorded, o)
		if err != nil {
			t.Fatalf("%s: %v", policy, err)
		}
		if r.Policy != policy || r.Arrived != 6 || r.Placed != 5 || r.Unplaced != 1 {
			t.Errorf("%s: got %+v, want 5 of 6 placed", policy, r)
		}
		if got, want := r.Kinds[2], (Use{"gpu", 195, 95}); got != want {
			t.Errorf("%s: got %+v, want %+v", policy, got, want)
		}
		if want := (Obstacle{"there are fewer than 4 gpu", 3}); len(r.Reasons) != 1 ||
			!slices.Contains(r.Reasons[0].Obstacles, want) {
			t.Errorf("%s: got reasons %v, want one with %v", policy, r.Reasons, want)
		}
		if got := len(r.Curve); got != 196 || r.Curve[195].Allocated != r.Kinds[2].Allocated {
			t.Errorf("%s: got %d points, the last %+v, and %+v", policy, got, r.Curve[got-1], r.Kinds[2])
		}
	}
}

// TestReplayKeepsTheBooks holds the measures against the value, after every arrival of an inflated trace.
func TestReplayKeepsTheBooks(t *testing.T) {
	recorded := sample(t)
	r := newReplay(recorded)
	if err := r.populate(); err != nil {
		t.Fatal(err)
	}
	for i, number := range arrivals(recorded.Tasks, 10_000, 3) {
		if err := r.arrive(i, &recorded.Tasks[number], terms.Pack); err != nil {
			t.Fatal(err)
		}
		fresh, used := newGauge(recorded.Tasks, len(recorded.Machines)), int64(0)
		for n := range facts.NodeIndex(r.s.Nodes()) {
			fresh.look(r.s, n)
			r.s.Node(n).EachDeviceInUse(gpu, func(_ uint32, amount terms.Millidevices) { used += int64(amount) })
		}
		if fresh.sum != r.gauge.sum || used != r.allocated[terms.GPU] {
			t.Errorf("arrival %d: got %d useless and %d allocated, want %d and %d", i, r.gauge.sum, r.allocated[terms.GPU],
				fresh.sum, used)
		}
	}
	for _, problem := range r.s.Audit() {
		t.Error(problem)
	}
	if r.s.Members() != len(recorded.Machines) {
		t.Errorf("got %d members, want %d", r.s.Members(), len(recorded.Machines))
	}
}

func TestReplayIsRefused(t *testing.T) {
	recorded := sample(t)
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := Replay(ended, recorded, Options{Placement: terms.Pack}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	bare := &Trace{recorded.Machines[2:], recorded.Tasks}
	want := "inflate to 130 percent of the GPUs: the machines have 0"
	if _, err := Replay(context.Background(), bare, Options{Placement: terms.Pack, Inflate: 130}); err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestUseless(t *testing.T) {
	free := &terms.Resources{4000, 1 << 30, 0}
	left := []terms.Millidevices{1000, 1000, 600, 200, 0}
	for _, c := range []struct {
		name  string
		shape Shape
		model string
		want  int64
	}{
		{"a share fits on three", Shape{GPU: 500}, "T4", 200},
		{"a whole one on two", Shape{GPU: 1000}, "T4", 800},
		{"two whole ones on two", Shape{GPU: 2000}, "T4", 800},
		{"three do not fit", Shape{GPU: 3000}, "T4", 2800},
		{"no GPU is asked for", Shape{}, "T4", 2800},
		{"too little processor", Shape{GPU: 500, Resources: terms.Resources{5000}}, "T4", 2800},
		{"the right model", Shape{GPU: 500, Models: "A100|T4"}, "T4", 200},
		{"the wrong model", Shape{GPU: 500, Models: "A100|T40"}, "T4", 2800},
	} {
		if got := useless(&c.shape, left, free, c.model); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

func TestMean(t *testing.T) {
	few := &Result{Policy: "pack", Seeds: []uint64{1}, Placed: 1, Kinds: []Use{{"gpu", 10, 20}},
		Curve:   []Point{{0, 0, 4}, {1, 1, 3}},
		Reasons: []Group{{2, []Obstacle{{"cpu is short", 8}}}}}
	many := &Result{Policy: "pack", Seeds: []uint64{2}, Placed: 3, Kinds: []Use{{"gpu", 30, 50}},
		Curve:   []Point{{0, 0, 2}},
		Reasons: []Group{{6, []Obstacle{{"cpu is short", 4}}}, {9, []Obstacle{{"memory is short", 1}}}}}
	want := &Result{Policy: "pack", Seeds: []uint64{1, 2}, Placed: 2, Kinds: []Use{{"gpu", 20, 35}},
		Curve:   []Point{{0, 0, 3}},
		Reasons: []Group{{4.5, []Obstacle{{"memory is short", 1}}}, {4, []Obstacle{{"cpu is short", 5}}}}}
	if got := Mean([]*Result{few, many}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestPlotNeedsGPUs(t *testing.T) {
	if err := Plot(io.Discard, []*Result{{Policy: "pack"}}); err == nil {
		t.Error("a result without a curve is plotted")
	}
}

// TestPlot reads the plot as XML and counts its lines: the ideal, and two for each result.
func TestPlot(t *testing.T) {
	text := strings.Builder{}
	results := []*Result{{Policy: "pack", Curve: []Point{{0, 0, 5}, {1, 1, 4}}},
		{Policy: "spread", Curve: []Point{{0, 0, 5}}}}
	if err := Plot(&text, results); err != nil {
		t.Fatal(err)
	}
	lines, words := 0, []string{}
	for decoder := xml.NewDecoder(strings.NewReader(text.String())); ; {
		token, err := decoder.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, text.String())
		}
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local == "polyline" {
				lines++
			}
		case xml.CharData:
			words = append(words, string(token))
		}
	}
	if lines != 5 {
		t.Errorf("got %d lines, want 5", lines)
	}
	if want := "pack: 1.00 % allocated, 4.00 % fragmented at 1 %"; !slices.Contains(words, want) {
		t.Errorf("got %q, want among them %q", words, want)
	}
}
