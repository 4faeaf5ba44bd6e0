package reconcile

// Tally sums up slots: what the rules that concern a whole task must know of them.
type Tally struct {
	// Outdated seats ask to be replaced, those that are Ill among them are not known to be healthy; Vacant ones ask to be
	// filled, and Waiting ones wait to be.
	Outdated, Ill, Vacant, Waiting int32
	// Unjudged, Healthy and Unhealthy instances of the present update keep their seats.
	Unjudged, Healthy, Unhealthy int32
	// Canaries are the canary seats that are taken, CanariesHealthy those of them whose instance is healthy.
	Canaries, CanariesHealthy int32
	// Ignored are the allocations that nothing is done about.
	Ignored int32
}

// Add adds what slots weigh.
func (t *Tally) Add(w Tally) {
	t.Outdated += w.Outdated
	t.Ill += w.Ill
	t.Vacant += w.Vacant
	t.Waiting += w.Waiting
	t.Unjudged += w.Unjudged
	t.Healthy += w.Healthy
	t.Unhealthy += w.Unhealthy
	t.Canaries += w.Canaries
	t.CanariesHealthy += w.CanariesHealthy
	t.Ignored += w.Ignored
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
