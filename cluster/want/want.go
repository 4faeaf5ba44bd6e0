// Package want tells the most that tasks, jobs and pools have ever wanted at a time, which bounds every sum of a value.
package want

import (
	"math"
	"starling/terms"
	"starling/terms/codec"
	"starling/terms/fingerprint"
)

// Wants is the most that a job, the jobs of a pool or all jobs have ever wanted at a time. What they hold and ask for
// is at most three times as much, since a slot may hold room in three seats; so bounds on it keep every sum within its
// range.
type Wants struct {
	Instances uint64
	Amounts   terms.Amounts
}

// Add adds what other wants, so many times: 1 or -1.
func (w *Wants) Add(other *Wants, times int64) {
	w.Instances += other.Instances * uint64(times)
	for k := range w.Amounts {
		w.Amounts[k] += other.Amounts[k] * times
	}
}

// Most is the most that any version of a task has wanted: instances, and what each takes.
type Most struct {
	instances uint32
	each      terms.Amounts
}

// With returns the most of m and what a version of the task wants; of a daemon that is one for each of so many nodes.
func (m Most) With(spec *terms.Task, kind terms.JobType, nodes uint32) Most {
	m.instances = max(m.instances, spec.Instances)
	if kind == terms.Daemon {
		m.instances = nodes
	}
	for k, amount := range spec.Amounts() {
		m.each[k] = max(m.each[k], amount)
	}
	return m
}

// Code writes or reads it.
func (m *Most) Code(c *codec.Coder) {
	codec.Uint32s(c, &m.instances)
	for k := range m.each {
		codec.Integer(c, &m.each[k], math.MaxInt64)
	}
}

// Hash is a hash of it.
func (m *Most) Hash() uint64 {
	h := uint64(m.instances)
	for _, amount := range m.each {
		h = fingerprint.Mix(h, uint64(amount))
	}
	return h
}

// Sum returns what tasks want together; amounts end at terms.Unlimited.
func Sum(all []Most, kind terms.JobType) (w Wants) {
	for i := range all {
		count := uint64(all[i].instances)
		if w.Instances += count; kind == terms.Daemon {
			w.Instances -= count - 1 // its instances are not more than there are nodes
		}
		for k, amount := range all[i].each {
			w.Amounts[k] = terms.Sum(w.Amounts[k], terms.Times(amount, count))
		}
	}
	return w
}
