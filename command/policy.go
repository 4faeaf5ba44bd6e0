package command

import (
	"math"

	"starling/terms"
	"starling/terms/lifecycle"
)

func flag(c *coder, v *bool) {
	number := uint64(0)
	if *v {
		number = 1
	}
	c.number(&number, 1)
	if !c.writing {
		*v = number == 1
	}
}

func updatePolicy(c *coder, u *terms.UpdatePolicy) {
	for _, v := range []*uint32{
		&u.BatchSize, &u.Canaries, &u.MinHealthyMillis, &u.HealthyDeadlineMillis, &u.ProgressDeadlineMillis, &u.AttemptsMax,
		&u.FailuresMax,
	} {
		integer(c, v, math.MaxUint32)
	}
	for _, v := range []*bool{&u.AutoPromote, &u.Rollback, &u.StartPaused, &u.SameNode} {
		flag(c, v)
	}
}

// policies codes what a task says about failures, health and what it keeps.
func policies(c *coder, t *terms.Task) {
	r, d := &t.Reschedule, &t.Disconnect
	for _, v := range []*uint32{
		&r.AttemptsMax, &r.IntervalMillis, &r.DelayMillis, &r.DelayMaxMillis, &d.LostAfterMillis, &d.StopAfterMillis,
	} {
		integer(c, v, math.MaxUint32)
	}
	integer(c, &r.Growth, uint64(terms.Fibonacci))
	flag(c, &d.Wait)
	integer(c, &d.Keep, uint64(terms.KeepLongest))
	list(c, &t.Policies, lifecycle.PoliciesMax, lifecyclePolicy)
	integer(c, &t.MaxRestarts, math.MaxUint32)
	list(c, &t.Checks, terms.ChecksMax, check)
	list(c, &t.Volumes, terms.VolumesMax, volume)
}

func lifecyclePolicy(c *coder, p *lifecycle.Policy) {
	list(c, &p.On, int(lifecycle.Any), func(c *coder, e *lifecycle.Event) { integer(c, e, uint64(lifecycle.Any)) })
	list(c, &p.ExitCodes, lifecycle.PoliciesMax, func(c *coder, code *uint32) { integer(c, code, math.MaxUint32) })
	integer(c, &p.Action, uint64(lifecycle.Complete))
	integer(c, &p.DelayMillis, math.MaxUint32)
}

func check(c *coder, k *terms.Check) {
	integer(c, &k.Kind, uint64(terms.CheckCommand))
	text(c, &k.Port, terms.NameBytesMax)
	text(c, &k.Path, terms.TextBytesMax)
	list(c, &k.Command, terms.ArgumentsMax, argument)
	integer(c, &k.IntervalMillis, math.MaxUint32)
	integer(c, &k.TimeoutMillis, math.MaxUint32)
	integer(c, &k.FailuresMax, math.MaxUint32)
}

func volume(c *coder, v *terms.Volume) { text(c, &v.Name, terms.NameBytesMax) }
