package sim

import (
	"slices"

	"starling/terms"
	"starling/terms/lifecycle"
)

// lifecycle draws what becomes of a job when something happens to its instances and tasks.
func (c *clients) lifecycle(spec *terms.Job) {
	w := c.w
	spec.MaxRestarts, spec.MinSuccess, spec.KeepMillis, spec.Policies = uint32(w.between(0, 4)), 0, 0, nil
	if w.rng.IntN(4) == 0 {
		if spec.KeepMillis = uint32(w.between(1, 20_000)); spec.KeepMillis < 4000 {
			spec.KeepMillis = terms.KeepLeast
		}
	}
	instances := 0
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		instances += int(t.Instances)
		t.MaxRestarts, t.Policies = uint32(w.between(0, 3)), nil
		if spec.Type != terms.Daemon && w.rng.IntN(2) == 0 {
			t.Policies = c.lifecyclePolicies(spec.Type == terms.Batch)
		}
	}
	if spec.Type != terms.Daemon && w.rng.IntN(2) == 0 {
		spec.Policies = c.lifecyclePolicies(spec.Type == terms.Batch)
	}
	if spec.Type == terms.Batch && w.rng.IntN(4) == 0 {
		spec.MinSuccess = uint32(w.rng.IntN(instances + 1))
	}
}

// lifecyclePolicies draws one to three policies of which none hides another.
func (c *clients) lifecyclePolicies(batch bool) (all []lifecycle.Policy) {
	w := c.w
	for range w.between(1, 3) {
		p := lifecycle.Policy{Action: lifecycle.Action(w.between(int(lifecycle.RestartInstance), int(lifecycle.Complete)))}
		switch {
		case w.rng.IntN(3) == 0:
			p.ExitCodes = []uint32{[]uint32{1, 3, 143}[w.rng.IntN(3)]}
		case batch && w.rng.IntN(3) == 0:
			p.On = []lifecycle.Event{lifecycle.TaskCompleted}
		default:
			p.On = []lifecycle.Event{lifecycle.Event(w.between(int(lifecycle.InstanceFailed), int(lifecycle.Any)))}
		}
		if w.rng.IntN(2) == 0 {
			p.DelayMillis = uint32(w.between(1, 6000))
		}
		problem := false
		lifecycle.Problems(append(slices.Clone(all), p), batch, func(string, string, ...any) { problem = true })
		if !problem {
			all = append(all, p)
		}
	}
	return all
}
