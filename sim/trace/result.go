package trace

import (
	"cmp"
	"slices"
	"strings"

	"starling/schedule/explain"
	"starling/terms"
)

// Result is what a replay came to, or the mean of several. Percentages are of what all machines have.
type Result struct {
	Policy string `json:"policy"`
	// Seeds are those of the replays.
	Seeds []uint64 `json:"seeds"`
	// Arrived, Placed and Unplaced count tasks.
	Arrived  float64 `json:"arrived"`
	Placed   float64 `json:"placed"`
	Unplaced float64 `json:"unplaced"`
	Kinds    []Use   `json:"kinds"`
	// Fragmented is how much of the GPUs is left at the end and of no use to a task of the trace, in the mean.
	Fragmented float64 `json:"gpu_fragmented_percent"`
	// Seconds were needed to fold the entries of all arrivals.
	Seconds             float64 `json:"seconds"`
	PlacementsPerSecond float64 `json:"placements_per_second"`
	Reasons             []Group `json:"unplaced_reasons"`
	// Curve has a point for every percent of the GPUs that the tasks which have arrived ask for; none if there are no
	// GPUs.
	Curve []Point `json:"curve"`
}

// Use is what became of one kind of resource.
type Use struct {
	Kind string `json:"kind"`
	// Arrived is what the tasks that arrived ask for, Allocated what those that were placed have.
	Arrived   float64 `json:"arrived_percent"`
	Allocated float64 `json:"allocated_percent"`
}

// Group are tasks that found no room for the same reasons.
type Group struct {
	Tasks float64 `json:"tasks"`
	// Obstacles stand in the order in which package explain finds them.
	Obstacles []Obstacle `json:"obstacles"`
}

// Obstacle is one of the reasons, and the number of machines on which it stood at the end, in the mean over the tasks.
type Obstacle struct {
	What     string  `json:"what"`
	Machines float64 `json:"machines"`
}

// Point is a moment of a replay; all is in percent of the GPUs.
type Point struct {
	Arrived    float64 `json:"arrived_percent"`
	Allocated  float64 `json:"allocated_percent"`
	Fragmented float64 `json:"fragmented_percent"`
}

func percent(part float64, of int64) float64 {
	if of == 0 {
		return 0
	}
	return 100 * part / float64(of)
}

// result sums the replay up.
func (r *replay) result(o Options, arrived int) *Result {
	result := &Result{Policy: o.Placement.String(), Seeds: []uint64{o.Seed}, Arrived: float64(arrived),
		Placed:   float64(r.placed),
		Unplaced: float64(arrived - r.placed), Seconds: r.took.Seconds(), Reasons: r.reasons(), Curve: r.curve}
	if result.Seconds > 0 {
		result.PlacementsPerSecond = result.Placed / result.Seconds
	}
	for _, k := range []terms.Kind{terms.CPU, terms.Memory, terms.GPU} {
		result.Kinds = append(result.Kinds,
			Use{k.String(), percent(float64(r.arrived[k]), r.capacity[k]), percent(float64(r.allocated[k]), r.capacity[k])})
	}
	result.Fragmented = percent(r.gauge.milli(), r.capacity[terms.GPU])
	return result
}

// reasons asks why what waits does so now. Tasks of one shape have one answer.
func (r *replay) reasons() []Group {
	var all []Group
	for i := range r.gauge.shapes {
		jobs := r.waiting[r.gauge.shapes[i]]
		if len(jobs) == 0 {
			continue
		}
		g := Group{Tasks: float64(len(jobs))}
		for _, o := range explain.Obstacles(r.s, r.s.JobOf(jobs[0]), 0) {
			g.Obstacles = append(g.Obstacles, Obstacle{o.What, float64(o.Nodes)})
		}
		all = append(all, g)
	}
	return joined(all)
}

// joined makes one group of those with the same reasons, and puts the largest first.
func joined(groups []Group) []Group {
	var all []Group
	at := map[string]int{}
	for _, g := range groups {
		i, known := at[g.what()]
		if !known {
			at[g.what()] = len(all)
			all = append(all, Group{g.Tasks, slices.Clone(g.Obstacles)})
			continue
		}
		sum := &all[i]
		for k := range sum.Obstacles {
			o := &sum.Obstacles[k]
			o.Machines = (o.Machines*sum.Tasks + g.Obstacles[k].Machines*g.Tasks) / (sum.Tasks + g.Tasks)
		}
		sum.Tasks += g.Tasks
	}
	slices.SortStableFunc(all, func(a, b Group) int { return cmp.Compare(b.Tasks, a.Tasks) })
	return all
}

func (g *Group) what() string {
	var what []string
	for _, o := range g.Obstacles {
		what = append(what, o.What)
	}
	return strings.Join(what, "; ")
}

// Mean returns the mean of replays under one policy.
func Mean(results []*Result) *Result {
	first := results[0]
	mean := &Result{Policy: first.Policy, Kinds: slices.Clone(first.Kinds), Curve: slices.Clone(first.Curve)}
	average := func(value func(*Result) float64) float64 {
		sum := 0.0
		for _, r := range results {
			sum += value(r)
		}
		return sum / float64(len(results))
	}
	var groups []Group
	for _, r := range results {
		mean.Seeds = append(mean.Seeds, r.Seeds...)
		mean.Curve = mean.Curve[:min(len(mean.Curve), len(r.Curve))]
		for _, g := range r.Reasons {
			groups = append(groups, Group{g.Tasks / float64(len(results)), g.Obstacles})
		}
	}
	mean.Reasons = joined(groups)
	mean.Arrived = average(func(r *Result) float64 { return r.Arrived })
	mean.Placed = average(func(r *Result) float64 { return r.Placed })
	mean.Unplaced = average(func(r *Result) float64 { return r.Unplaced })
	mean.Fragmented = average(func(r *Result) float64 { return r.Fragmented })
	mean.Seconds = average(func(r *Result) float64 { return r.Seconds })
	mean.PlacementsPerSecond = average(func(r *Result) float64 { return r.PlacementsPerSecond })
	for k := range mean.Kinds {
		mean.Kinds[k].Arrived = average(func(r *Result) float64 { return r.Kinds[k].Arrived })
		mean.Kinds[k].Allocated = average(func(r *Result) float64 { return r.Kinds[k].Allocated })
	}
	for i := range mean.Curve {
		mean.Curve[i].Allocated = average(func(r *Result) float64 { return r.Curve[i].Allocated })
		mean.Curve[i].Fragmented = average(func(r *Result) float64 { return r.Curve[i].Fragmented })
	}
	return mean
}
