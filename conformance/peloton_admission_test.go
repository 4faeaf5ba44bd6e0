package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"starling/schedule/admission"
	"starling/terms"
)

// The differences from Peloton in admission. Each holds for every file.
var (
	firstAwaited = &difference{name: "first awaited",
		reason: "where a gang does not fit, upstream stops, or lets all that is smaller go past for ever; " +
			"here what the first of its class needs is kept for it, others get what is left, and nothing is kept for what can never fit"}
	noMembersQueued = &difference{name: "no members queued", reason: "what waits is counted from the job, not queued: " +
		"an instance that was killed is not counted, and breaks no gang"}
)

// admissionCase is a leaf, what is submitted to it, and what some passes admit.
type admissionCase struct {
	told `yaml:",inline"`
	Pool struct {
		NonSlack    quantities `yaml:"non_slack_entitlement"`
		Slack       quantities `yaml:"slack_entitlement"`
		Reservation quantities
		// Controllers are without limit if none is told.
		Controllers quantities `yaml:"controller_limit"`
		// Preemption false means that no reservation is checked: nothing is non-preemptible then.
		Preemption *bool `yaml:"preemption_enabled"`
		// Alloc is by class: total, slack and so on.
		Alloc map[string]quantities
	}
	Submitted []submission `yaml:"submitted_in_order"`
	// Limit bounds the gangs that a pass looks at.
	Limit int `yaml:"dequeue_limit"`
	// StartQueue is where the gangs wait; here there is one queue.
	StartQueue string `yaml:"start_queue"`
	Expect     struct {
		Rounds []int64          `yaml:"admitted_per_round"`
		Queues map[string]int64 `yaml:"queues_after"`
		Order  []string         `yaml:"admission_order"`
		// After is by class: total_allocation_after and so on.
		After map[string]quantities `yaml:",inline"`
	}
}

// submission is a number of equal gangs.
type submission struct {
	Name                  string
	Gangs                 int64
	Task                  quantities
	Size                  *int64 `yaml:"gang_size"`
	Priority              uint32
	Revocable, Controller bool
	Preemptible           *bool
}

// admissions runs a file of admission cases.
func admissions(f *sheet) {
	f.runScenarios(func(t *trial, s *scenario, differences tally) {
		if s.has("cases") {
			c := &callsCase{}
			s.read(t, c)
			c.run(t, differences)
			return
		}
		if !s.has("pool") {
			s.read(t, &struct {
				told         `yaml:",inline"`
				Task, Expect any
				DemandBefore any `yaml:"demand_before"`
			}{})
			differences.state(t, noMembersQueued)
			return
		}
		c := &admissionCase{}
		s.read(t, c)
		c.run(t, differences)
	})
}

// run compares what our passes admit with what the case expects.
func (c *admissionCase) run(t *trial, differences tally) {
	if c.Expect.Order != nil {
		c.checkOrder(t)
	}
	pool, err := c.pool()
	if err != nil {
		t.Fatal(err)
	}
	gangs, err := c.gangs()
	if err != nil {
		t.Fatal(err)
	}
	wrong := c.wrong(c.ours(pool, gangs))
	if len(wrong) == 0 {
		return
	}
	model := newQueueModel(pool, gangs, c.StartQueue)
	if len(c.wrong(model.rounds(len(c.Expect.Rounds), c.Limit))) > 0 || !model.overtaken {
		for _, line := range wrong {
			t.Error(line)
		}
		return
	}
	for _, line := range wrong {
		t.Log(line)
	}
	differences.state(t, firstAwaited)
}

// pool returns the leaf.
func (c *admissionCase) pool() (*admission.Pool, error) {
	p := &admission.Pool{}
	for k := range p.ControllerLimit {
		p.ControllerLimit[k] = terms.Unlimited
	}
	held := map[string]terms.Amounts{}
	for _, class := range sortedKeys(c.Pool.Alloc) {
		amounts, err := c.Pool.Alloc[class].amounts()
		if err != nil || !slices.Contains(allocationClasses, class) {
			return nil, fmt.Errorf("allocation of class %s: %w", class, err)
		}
		held[class] = amounts
	}
	for _, part := range []struct {
		from quantities
		to   *terms.Amounts
	}{
		{c.Pool.NonSlack, &p.Entitlement.NonSlack}, {c.Pool.Slack, &p.Entitlement.Slack},
		{c.Pool.Reservation, &p.Firm}, {c.Pool.Controllers, &p.ControllerLimit},
	} {
		amounts, err := part.from.amounts()
		if err != nil {
			return nil, err
		}
		if part.from != nil {
			*part.to = amounts
		}
	}
	p.Allocated = terms.Work{NonSlack: held["non_slack"], Slack: held["slack"], NonPreemptible: held["non_preemptible"],
		Controller: held["controller"]}
	if total, told := held["total"]; told {
		p.Allocated.NonSlack = lessOf(total, p.Allocated.Slack)
	}
	return p, nil
}

// allocationClasses are the classes of what is allocated.
var allocationClasses = []string{"total", "slack", "non_slack", "non_preemptible", "preemptible", "controller"}

// gangs returns what waits: the highest priority first, then what was submitted first.
func (c *admissionCase) gangs() ([]admission.Gang, error) {
	gangs, submitted := []admission.Gang{}, slices.Clone(c.Submitted)
	slices.SortStableFunc(submitted, func(a, b submission) int { return cmp.Compare(b.Priority, a.Priority) })
	for _, s := range submitted {
		need, err := s.Task.amounts()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		size := int64(1)
		if s.Size != nil {
			size = *s.Size
		}
		for k := range need {
			need[k] *= size
		}
		checked := c.Pool.Preemption == nil || *c.Pool.Preemption
		gangs = append(gangs, admission.Gang{Need: need, Count: uint32(s.Gangs), Revocable: s.Revocable,
			NonPreemptible: s.Preemptible != nil && !*s.Preemptible && checked, Controller: s.Controller})
	}
	return gangs, nil
}

// admitted is what came of some passes.
type admitted struct {
	rounds  []int64
	waiting int64
	work    terms.Work
}

// ours returns what our passes admit.
func (c *admissionCase) ours(pool *admission.Pool, gangs []admission.Gang) admitted {
	now, waiting, done := *pool, slices.Clone(gangs), admitted{}
	for range c.Expect.Rounds {
		a, looked, count := admission.New(&now), 0, int64(0)
		for i := range waiting {
			g := &waiting[i]
			seen := *g
			seen.Count = uint32(min(int(g.Count), c.Limit-looked))
			looked += int(seen.Count)
			n := a.Room(&seen)
			a.Take(g, n)
			if n < seen.Count {
				a.Await(g, func() []admission.Unit { return nil })
			}
			hold(&now.Allocated, g, int64(n))
			g.Count -= n
			count += int64(n)
		}
		done.rounds = append(done.rounds, count)
	}
	for _, g := range waiting {
		done.waiting += int64(g.Count)
	}
	done.work = now.Allocated
	return done
}

// hold adds some equal gangs to what is allocated.
func hold(w *terms.Work, g *admission.Gang, count int64) {
	for k, need := range g.Need {
		need *= count
		if g.Revocable {
			w.Slack[k] += need
			continue
		}
		w.NonSlack[k] += need
		if g.NonPreemptible {
			w.NonPreemptible[k] += need
		}
		if g.Controller {
			w.Controller[k] += need
		}
	}
}

// wrong lists where something else was admitted than the case expects. Which of upstream's queues the others wait in is
// not compared, only how many they are.
func (c *admissionCase) wrong(got admitted) []string {
	var wrong []string
	if !slices.Equal(got.rounds, c.Expect.Rounds) {
		wrong = append(wrong, fmt.Sprintf("%v admitted, want %v", got.rounds, c.Expect.Rounds))
	}
	waiting := int64(0)
	for _, n := range c.Expect.Queues {
		waiting += n
	}
	if c.Expect.Queues != nil && got.waiting != waiting {
		wrong = append(wrong, fmt.Sprintf("%d wait, want %v", got.waiting, c.Expect.Queues))
	}
	w, shown, want := &got.work, map[string]quantities{}, map[string]quantities{}
	for i, amounts := range []terms.Amounts{sumOf(w.NonSlack, w.Slack), w.Slack, w.NonSlack, w.NonPreemptible,
		lessOf(w.NonSlack, w.NonPreemptible), w.Controller} {
		shown[allocationClasses[i]] = quantities{}
		for k := range amounts {
			shown[allocationClasses[i]][terms.Kind(k).String()] = quantityOf(amounts[k])
		}
	}
	for key, amounts := range c.Expect.After {
		want[strings.TrimSuffix(key, "_allocation_after")] = amounts
	}
	return append(wrong, different("allocation", shown, want, 0)...)
}

// queueModel is upstream's rule, after section 4 of the reference: four queues, each of which stops at what does not
// fit.
type queueModel struct {
	pool   admission.Pool
	queues map[string][]admission.Gang
	// overtaken tells that something else waited behind a gang that did not fit: only then our rule is another.
	overtaken bool
}

// newQueueModel puts each gang by itself into the queue where upstream has it.
func newQueueModel(pool *admission.Pool, gangs []admission.Gang, start string) *queueModel {
	m := &queueModel{pool: *pool, queues: map[string][]admission.Gang{}}
	if start == "" {
		start = "pending"
	}
	for _, g := range gangs {
		single := g
		single.Count = 1
		for range g.Count {
			m.queues[start] = append(m.queues[start], single)
		}
	}
	return m
}

// rounds plays some passes.
func (m *queueModel) rounds(count, limit int) admitted {
	done := admitted{}
	for range count {
		looked, got := 0, int64(0)
		for _, name := range []string{"non_preemptible", "controller", "revocable", "pending"} {
			got += m.queue(name, &looked, limit)
		}
		done.rounds = append(done.rounds, got)
	}
	for _, queue := range m.queues {
		done.waiting += int64(len(queue))
	}
	done.work = m.pool.Allocated
	return done
}

// queue admits from one queue and returns how many.
func (m *queueModel) queue(name string, looked *int, limit int) (count int64) {
	for len(m.queues[name]) > 0 && *looked < limit {
		g := m.queues[name][0]
		*looked++
		if m.fits(&g) {
			hold(&m.pool.Allocated, &g, 1)
			m.queues[name] = m.queues[name][1:]
			count++
			continue
		}
		m.overtaken = m.overtaken || len(m.queues[name]) > 1
		aside := asideOf(&g)
		if name != "pending" || aside == name {
			break
		}
		m.queues[name] = m.queues[name][1:]
		m.queues[aside] = append(m.queues[aside], g)
	}
	return count
}

// asideOf returns the queue into which a gang goes that does not fit.
func asideOf(g *admission.Gang) string {
	switch {
	case g.NonPreemptible:
		return "non_preemptible"
	case g.Controller:
		return "controller"
	case g.Revocable:
		return "revocable"
	}
	return "pending"
}

func (m *queueModel) fits(g *admission.Gang) bool {
	after := m.pool.Allocated
	hold(&after, g, 1)
	for k := range after.NonSlack {
		if g.Revocable && after.Slack[k] > m.pool.Entitlement.Slack[k] {
			return false
		}
		if !g.Revocable && (after.NonSlack[k] > m.pool.Entitlement.NonSlack[k] ||
			g.Controller && after.Controller[k] > m.pool.ControllerLimit[k] ||
			g.NonPreemptible && after.NonPreemptible[k] > m.pool.Firm[k]) {
			return false
		}
	}
	return true
}
