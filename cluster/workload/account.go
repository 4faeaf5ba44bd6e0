package workload

import (
	"slices"

	"starling/cluster/facts"
	"starling/cluster/want"
	"starling/terms"
)

// Account is what the jobs of a pool hold and ask for.
type Account struct {
	// Held is held by instances, Lasting the part of it that services hold, which do not end by themselves.
	Held, Lasting terms.Work
	// Asked is wanted by instances that wait. Of a task that may not run more at a time only so many ask.
	Asked terms.Work
	// Asking counts the instances that ask, AskingRevocable the revocable ones among them.
	Asking, AskingRevocable uint32
	// Wants is the most that its jobs that have not ended have ever wanted, each by itself.
	Wants want.Wants
	// Jobs are those that have not ended, and Specs what is kept of how they are written.
	Jobs  uint32
	Specs Specs
}

// Asks notes that so many more instances ask for room, or fewer.
func (a *Account) Asks(j *terms.Job, each *terms.Amounts, count int64) {
	a.Asked.Add(j, each, count)
	facts.Assert(int64(a.Asking)+count >= 0, "no fewer than none ask")
	a.Asking = uint32(int64(a.Asking) + count)
	if j.Revocable {
		a.AskingRevocable = uint32(int64(a.AskingRevocable) + count)
	}
}

// Specs are the kept versions of jobs, each text once: how many, and how many bytes they take.
type Specs struct {
	Count uint32
	Bytes int64
}

// Add adds others, so many times: 1 or -1.
func (p *Specs) Add(other Specs, times int64) {
	p.Count += other.Count * uint32(times)
	p.Bytes += other.Bytes * times
}

// Specs returns what is kept of how the job is written.
func (j *Job) Specs() (kept Specs) {
	for i := range j.Versions {
		if v := &j.Versions[i]; j.keeps(v.SpecHash) == i {
			kept.Add(Specs{1, v.SpecBytes}, 1)
		}
	}
	return kept
}

// Keeps tells whether a version with that fingerprint is kept.
func (j *Job) Keeps(hash uint64) bool { return j.keeps(hash) >= 0 }

func (j *Job) keeps(hash uint64) int {
	return slices.IndexFunc(j.Versions, func(v facts.JobVersion) bool { return v.SpecHash == hash })
}
