package reconcile

// Tally sums up slots: what the rules that concern a whole task must know of them.
type Tally struct {
	// Outdated seats ask to be replaced, those that are Ill among them are not known to be healthy; Vacant ones ask to be
	// filled; Frozen ones would be tried again if their update had not failed, and Waiting ones wait to be.
	Outdated, Ill, Vacant, Frozen, Waiting int32
	// Unjudged, Healthy and Unhealthy instances of the present update keep their seats.
	Unjudged, Healthy, Unhealthy int32
	// Canaries are the canary seats that are taken, CanariesHealthy those of them whose instance is healthy.
	Canaries, CanariesHealthy int32
	// OfVersion are the allocations of the task's present version, and Ignored those that nothing is done about.
	OfVersion, Ignored int32
}

// Add adds what slots weigh.
func (t *Tally) Add(w Tally) { t.shift(w, 1) }

// Subtract takes away what slots weighed.
func (t *Tally) Subtract(w Tally) { t.shift(w, -1) }

func (t *Tally) shift(w Tally, sign int32) {
	t.Outdated += sign * w.Outdated
	t.Ill += sign * w.Ill
	t.Vacant += sign * w.Vacant
	t.Frozen += sign * w.Frozen
	t.Waiting += sign * w.Waiting
	t.Unjudged += sign * w.Unjudged
	t.Healthy += sign * w.Healthy
	t.Unhealthy += sign * w.Unhealthy
	t.Canaries += sign * w.Canaries
	t.CanariesHealthy += sign * w.CanariesHealthy
	t.OfVersion += sign * w.OfVersion
	t.Ignored += sign * w.Ignored
}

// judge counts a kept instance of the present update.
func (t *Tally) judge(h Health) {
	switch h {
	case Unjudged:
		t.Unjudged++
	case Healthy:
		t.Healthy++
	case Unhealthy:
		t.Unhealthy++
	}
}
