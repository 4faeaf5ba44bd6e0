// Package fingerprint hashes what users and machines state, and gives the digest of the value the arithmetic for it.
// Two jobs that differ in anything have different fingerprints, but by accident: they are no protection against intent.
package fingerprint

import (
	"math/bits"

	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/lifecycle"
)

// The tags keep what is hashed of one kind apart from others.
const (
	tagJob    uint64 = 5
	tagNode   uint64 = 7
	tagPool   uint64 = 12
	tagLimits uint64 = 13
)

// Odd constants with no pattern (digits of pi), as multiplicative hashing wants them.
const (
	mix1 = 0x243f6a8885a308d3
	mix2 = 0x13198a2e03707345
)

// Mix adds a word to a hash.
func Mix(h, word uint64) uint64 {
	high, low := bits.Mul64(h^word^mix1, mix2|1)
	return high ^ low ^ bits.RotateLeft64(word, 23)
}

// Words hashes numbers.
func Words(tag uint64, words ...uint64) uint64 {
	h := Mix(tag, uint64(len(words)))
	for _, w := range words {
		h = Mix(h, w)
	}
	return Mix(h, mix2)
}

// Text hashes texts.
func Text(tag uint64, texts ...string) uint64 {
	h := Mix(tag, uint64(len(texts)))
	for _, text := range texts {
		h = Mix(h, uint64(len(text)))
		for len(text) >= 8 {
			word := uint64(0)
			for i := range 8 {
				word = word<<8 | uint64(text[i])
			}
			h = Mix(h, word)
			text = text[8:]
		}
		word := uint64(0)
		for i := range len(text) {
			word = word<<8 | uint64(text[i])
		}
		h = Mix(h, word)
	}
	return Mix(h, mix2)
}

// Bit returns 1 for true.
func Bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Job hashes all that a job says.
func Job(s *terms.Job) uint64 {
	hash, _ := Measured(s)
	return hash
}

// Measured returns that, and how many bytes the job takes: what one needs is asked for the other.
func Measured(s *terms.Job) (hash uint64, bytes int64) {
	bytes, version := s.Measure()
	h := Text(tagJob, string(s.Name))
	h = Mix(Mix(h, uint64(s.Type)), updatePolicy(&s.Update))
	h = Mix(h, Words(tagJob, uint64(s.Priority)<<32|uint64(s.MinAvailable), uint64(s.Preemption), Bit(s.Revocable),
		Bit(s.Controller),
		Bit(s.KillOnPreempt), uint64(s.TaskScheduler)<<32|uint64(s.Percent), uint64(s.Coverage)<<8|uint64(s.Grow)))
	h = Mix(h, Text(tagJob, s.Within))
	for _, name := range s.After {
		h = Mix(h, Text(tagJob, string(name)))
	}
	h = Mix(h, Words(tagJob, uint64(s.MinSuccess)<<32|uint64(s.MaxRestarts), uint64(s.KeepMillis),
		ofLifecycle(s.Policies)))
	for _, q := range s.Plugins {
		h = Mix(h, Text(tagJob, q.Name))
		for _, a := range q.Arguments {
			h = Mix(h, Text(tagJob, a.Name, a.Value))
		}
	}
	for i := range s.Tasks {
		h = Mix(h, task(&s.Tasks[i]))
	}
	if version > writtenOut {
		h = Mix(h, Text(tagJob, string(s.Added(writtenOut))))
	}
	return h, bytes
}

// writtenOut is the version of the encoding whose fields are hashed one by one, here and below. That is never changed:
// peers of all programs compare their digests. What came later is hashed as it is encoded.
const writtenOut = 2

func updatePolicy(u *terms.UpdatePolicy) uint64 {
	return Words(tagJob, uint64(u.BatchSize), uint64(u.Canaries), Bit(u.AutoPromote), uint64(u.MinHealthyMillis),
		uint64(u.HealthyDeadlineMillis), uint64(u.ProgressDeadlineMillis), uint64(u.AttemptsMax), uint64(u.FailuresMax),
		Bit(u.Rollback),
		Bit(u.StartPaused), Bit(u.SameNode))
}

func task(t *terms.Task) uint64 {
	h := Text(tagJob, string(t.Name), t.WorkDir, t.User)
	h = Mix(h, Text(tagJob, t.Command...))
	for _, name := range t.After {
		h = Mix(h, Text(tagJob, string(name)))
	}
	for _, e := range t.Env {
		h = Mix(h, Text(tagJob, e.Name, e.Value))
	}
	for _, d := range t.Devices {
		h = Mix(h, Mix(Text(tagJob, d.Kind)^uint64(d.Amount), Text(tagJob, d.Models...)))
	}
	for _, p := range t.Ports {
		h = Mix(h, Text(tagJob, p.Name)^uint64(p.Number))
	}
	for i := range t.Constraints {
		h = Mix(h, ofConstraint(&t.Constraints[i]))
	}
	h = Mix(h, policies(t))
	for _, l := range t.Labels {
		h = Mix(h, Text(tagJob, l.Name, l.Value))
	}
	h = Mix(Text(tagJob, t.SpreadOver)^uint64(t.PerNodeMax), h)
	if t.StopDelayMillis > 0 { // the digests of what older programs know stay as they were
		h = Mix(h, uint64(t.StopDelayMillis))
	}
	return Mix(h, Words(tagJob, uint64(t.Instances), uint64(t.MinAvailable)<<32|uint64(t.MaxRunning), uint64(t.Percent),
		uint64(t.MaxRunMillis), uint64(t.Resources[terms.CPU]), uint64(t.Resources[terms.Memory]),
		uint64(t.Resources[terms.Disk]),
		uint64(t.Placement), uint64(t.Restart.AttemptsMax), uint64(t.Restart.DelayMillis), uint64(t.Restart.DelayMaxMillis),
		uint64(t.Restart.ResetMillis), uint64(t.StopGraceMillis), uint64(t.OnMembersChange)))
}

func policies(t *terms.Task) uint64 {
	h := Words(tagJob, uint64(t.Reschedule.AttemptsMax), uint64(t.Reschedule.IntervalMillis),
		uint64(t.Reschedule.DelayMillis),
		uint64(t.Reschedule.DelayMaxMillis), uint64(t.Reschedule.Growth), uint64(t.Disconnect.LostAfterMillis),
		Bit(t.Disconnect.Wait),
		uint64(t.Disconnect.Keep), uint64(t.Disconnect.StopAfterMillis))
	h = Mix(h, Words(tagJob, uint64(t.MaxRestarts), ofLifecycle(t.Policies)))
	for i := range t.Checks {
		c := &t.Checks[i]
		h = Mix(Mix(h, Text(tagJob, c.Port, c.Path)), Text(tagJob, c.Command...))
		h = Mix(h, Words(tagJob, uint64(c.Kind), uint64(c.IntervalMillis), uint64(c.TimeoutMillis), uint64(c.FailuresMax)))
	}
	for _, v := range t.Volumes {
		h = Mix(h, Text(tagJob, v.Name))
	}
	return h
}

func ofLifecycle(all []lifecycle.Policy) uint64 {
	h := uint64(len(all))
	for i := range all {
		p := &all[i]
		h = Mix(h, Words(tagJob, uint64(p.Action)<<32|uint64(p.DelayMillis), uint64(len(p.On))))
		for _, e := range p.On {
			h = Mix(h, uint64(e))
		}
		for _, code := range p.ExitCodes {
			h = Mix(h, uint64(code))
		}
	}
	return h
}

func ofConstraint(c *constraint.Constraint) uint64 {
	h := Words(tagJob, Text(tagJob, c.Attribute, c.Label, c.Within), Text(tagJob, c.Values...), uint64(c.Operator),
		uint64(c.Count), Bit(c.Soft), uint64(c.SoftTimeoutMillis), uint64(len(c.All)))
	for i := range c.All {
		h = Mix(h, ofConstraint(&c.All[i]))
	}
	for i := range c.Any {
		h = Mix(h, ofConstraint(&c.Any[i]))
	}
	return h
}

// Offer hashes all that a node gives.
func Offer(o *terms.Offer) uint64 {
	h := Text(tagNode, o.Address)
	h = Mix(h, Words(tagNode, uint64(o.Capacity[terms.CPU]), uint64(o.Capacity[terms.Memory]),
		uint64(o.Capacity[terms.Disk]),
		uint64(o.PortFirst), uint64(o.PortLast), uint64(o.Rules)))
	for _, a := range o.Attributes {
		h = Mix(h, Text(tagNode, a.Name, a.Value))
	}
	for _, d := range o.Devices {
		h = Mix(h, Text(tagNode, d.Kind, d.Model)^uint64(d.Count))
	}
	if o.AwayUntil != 0 {
		h = Mix(h, Words(tagNode, uint64(o.AwayUntil)))
	}
	return h
}

// Pool hashes all that is said of a pool.
func Pool(s *terms.Pool) uint64 {
	h := Text(tagPool, append([]string{string(s.Path)}, s.Owners...)...)
	for _, q := range s.Quotas {
		h = Mix(h, Words(tagPool, uint64(q.Reservation), uint64(q.Limit), uint64(q.Share), Bit(q.Static)))
	}
	if s.Version() > terms.PoolVersionFirst {
		for _, names := range [...][]string{s.Operators, s.Submitters, s.Viewers} {
			h = Mix(h, Text(tagPool, names...))
		}
	}
	if len(s.RunAs) > 0 {
		h = Mix(h, Text(tagPool, s.RunAs...))
	}
	if s.SpecBytes != 0 {
		h = Mix(h, Words(tagPool, uint64(s.SpecBytes)))
	}
	if len(s.HostPaths)+len(s.DeviceKinds)+len(s.Capabilities) > 0 {
		h = Mix(h, Mix(Mix(Text(tagPool, s.HostPaths...), Text(tagPool, s.DeviceKinds...)), Text(tagPool, s.Capabilities...)))
	}
	return Mix(h, Words(tagPool, uint64(s.ControllerLimit), uint64(s.SlackLimit), uint64(s.PreemptionDelayMillis),
		uint64(s.JobScheduler)))
}

// Limits hashes the limits of a cluster.
func Limits(l *terms.Limits) uint64 {
	return Words(tagLimits, uint64(l.Jobs), uint64(l.FinishedJobs), uint64(l.FinishedSlots), uint64(l.Tasks),
		uint64(l.JobInstances),
		uint64(l.Instances), uint64(l.Gang), uint64(l.Versions), uint64(l.Attempts), uint64(l.Requests), uint64(l.Nodes),
		uint64(l.Lives),
		uint64(l.Pools), uint64(l.Placements), uint64(l.Preemptions), uint64(l.Trials), uint64(l.JobAmount),
		uint64(l.PoolAmount),
		uint64(l.ClusterAmount))
}
