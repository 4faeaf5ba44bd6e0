package command

import (
	"math"

	"starling/cluster"
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

func updatePolicy(c *coder, u *cluster.UpdatePolicy) {
	for _, v := range []*uint32{
		&u.BatchSize, &u.Canaries, &u.MinHealthyMillis, &u.HealthyDeadlineMillis, &u.ProgressDeadlineMillis, &u.AttemptsMax, &u.FailuresMax,
	} {
		integer(c, v, math.MaxUint32)
	}
	for _, v := range []*bool{&u.AutoPromote, &u.Rollback, &u.StartPaused, &u.SameNode} {
		flag(c, v)
	}
}

// policies codes what a task says about failures, health and what it keeps.
func policies(c *coder, t *cluster.TaskSpec) {
	r, d := &t.Reschedule, &t.Disconnect
	for _, v := range []*uint32{
		&r.AttemptsMax, &r.IntervalMillis, &r.DelayMillis, &r.DelayMaxMillis, &d.LostAfterMillis, &d.StopAfterMillis,
	} {
		integer(c, v, math.MaxUint32)
	}
	integer(c, &r.Growth, uint64(cluster.Fibonacci))
	flag(c, &d.Wait)
	integer(c, &d.Keep, uint64(cluster.KeepLongest))
	list(c, &t.Checks, cluster.ChecksMax, check)
	list(c, &t.Volumes, cluster.VolumesMax, volume)
}

func check(c *coder, k *cluster.Check) {
	integer(c, &k.Kind, uint64(cluster.CheckCommand))
	text(c, &k.Port, cluster.NameBytesMax)
	text(c, &k.Path, cluster.TextBytesMax)
	list(c, &k.Command, cluster.ArgumentsMax, argument)
	integer(c, &k.IntervalMillis, math.MaxUint32)
	integer(c, &k.TimeoutMillis, math.MaxUint32)
	integer(c, &k.FailuresMax, math.MaxUint32)
}

func volume(c *coder, v *cluster.Volume) { text(c, &v.Name, cluster.NameBytesMax) }
