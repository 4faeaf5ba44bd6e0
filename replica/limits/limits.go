// Package limits bounds what enters the value, where it enters, so that no sum of it can leave its range.
package limits

import (
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/want"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/fingerprint"
	"starling/terms/rules"
)

// Job refuses a version with which its job, its pool or the cluster would be beyond a limit; old is nil for a
// new job.
func Job(s *cluster.State, old *workload.Job, spec *terms.Job) report.Result {
	l := &s.Limits
	wants, tasks := s.WantsWith(old, spec)
	pool, all := s.PoolWants(spec), s.Wants()
	had := want.Wants{}
	if old != nil {
		had = old.Most()
	}
	pool.Add(&had, -1)
	all.Add(&had, -1)
	for _, check := range [...]func(*cluster.State, *workload.Job, *terms.Job) report.Result{specs, user} {
		if r := check(s, old, spec); r.Refused() {
			return r
		}
	}
	pool.Add(&wants, 1)
	all.Add(&wants, 1)
	switch {
	case old == nil && s.OpenJobs() >= int(l.Jobs):
		return report.Refuse(facts.Exhausted, "there are %d jobs that have not ended, at most %d: stop some", s.OpenJobs(),
			l.Jobs)
	case old == nil && hasVolumes(spec) && volumesKept(s) >= int(l.FinishedSlots):
		return report.Refuse(facts.Exhausted,
			"volumes of %d instances are kept that do not run, at most %d: remove some with starling volume rm",
			volumesKept(s), l.FinishedSlots)
	case tasks > int(l.Tasks):
		return report.Refuse(facts.Exhausted,
			"job %s would have had %d tasks in all its versions, at most %d: stop it and run it anew",
			spec.Name, tasks, l.Tasks)
	case wants.Instances > uint64(l.JobInstances):
		return report.Refuse(facts.Exhausted,
			"the tasks of job %s would have had %d instances, at most %d: divide it into several jobs",
			spec.Name, wants.Instances, l.JobInstances)
	case all.Instances > uint64(l.Instances):
		return report.Refuse(facts.Exhausted, "all jobs would have %d instances with it, at most %d: stop some", all.Instances,
			l.Instances)
	case spec.GangSize() > uint64(l.Gang):
		return report.Refuse(facts.Exhausted, "%d instances of job %s must run together, at most %d can: lower its min_available",
			spec.GangSize(), spec.Name, l.Gang)
	}
	with := wanted{pool.Instances, all.Instances, wants.Instances > had.Instances}
	if r := share(s, spec, old == nil, with); r.Refused() {
		return r
	}
	for i := range spec.Tasks {
		if t := &spec.Tasks[i]; t.Reschedule.AttemptsMax > l.Attempts && t.Reschedule.AttemptsMax != terms.RestartsUnlimited {
			return report.Refuse(facts.Exhausted,
				"reschedule.attempts of task %s of job %s is %d, at most %d are remembered: lower it, or let it be unlimited",
				t.Name, spec.Name, t.Reschedule.AttemptsMax, l.Attempts)
		}
	}
	for k := range wants.Amounts {
		kind := terms.Kind(k)
		switch {
		case wants.Amounts[k] > l.JobAmount:
			return report.Refuse(facts.Exhausted, "all instances of job %s would take %s of %s together, at most %s",
				spec.Name, atMost(kind, wants.Amounts[k]), kind, kind.Text(l.JobAmount))
		case pool.Amounts[k] > l.PoolAmount:
			return report.Refuse(facts.Exhausted, "all jobs of pool %s would want %s of %s with it, at most %s: stop some",
				spec.Name.Pool(), kind.Round(pool.Amounts[k]), kind, kind.Text(l.PoolAmount))
		case all.Amounts[k] > l.ClusterAmount:
			return report.Refuse(facts.Exhausted, "all jobs would want %s of %s with it, at most %s: stop some",
				kind.Round(all.Amounts[k]), kind, kind.Text(l.ClusterAmount))
		}
	}
	return report.Result{}
}

// specs refuses a version with which the specs of its pool's jobs would take more than they may.
func specs(s *cluster.State, old *workload.Job, spec *terms.Job) report.Result {
	number, found := s.PoolNumber(spec.Name.Pool())
	if s.Rules < rules.Volumes || !found || old != nil && old.Keeps(fingerprint.Job(spec)) {
		return report.Result{}
	}
	account, most := s.Account(number), s.Pools()[number].SpecBytesMost()
	if account.Specs.Bytes+command.EntryBytesMax <= most { // it came in an entry: it need not be measured
		return report.Result{}
	}
	bytes := spec.Bytes()
	if account.Specs.Bytes+bytes <= most {
		return report.Result{}
	}
	return report.Refuse(facts.Exhausted, "the specs of the %d jobs of pool %s take %s in %d versions, and that of %s %s more, "+
		"at most %s: stop some of its jobs, or raise its spec_bytes", account.Jobs, spec.Name.Pool(),
		terms.Disk.Round(account.Specs.Bytes), account.Specs.Count, spec.Name, terms.Disk.Round(bytes), terms.Disk.Text(most))
}

// Change refuses a version in which a job is not what it was: of another type, after other jobs, with another way to
// share its pool, or with more or fewer instances of a sealed task.
func Change(old *workload.Job, spec *terms.Job) report.Result {
	switch {
	case old.Spec.Type != spec.Type:
		return report.Refuse(facts.Conflict, "job %s has type %s, which cannot change: stop it first", spec.Name, old.Spec.Type)
	case !slices.Equal(old.Spec.After, spec.After):
		return report.Refuse(facts.Conflict, "what job %s comes after cannot change: stop it first", spec.Name)
	case sharing(old.Spec, spec).Refused():
		return sharing(old.Spec, spec)
	}
	return sealed(old, spec)
}

// sealed refuses a version that wants more or fewer of a sealed task, of which no other instances begin.
func sealed(j *workload.Job, spec *terms.Job) report.Result {
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		task := j.TaskIndex(t.Name)
		if task < 0 || j.Tasks[task].Seal == (facts.Seal{}) {
			continue
		}
		if old := j.TaskSpecOf(task, j.Version); old != nil && old.Instances != t.Instances {
			return report.Refuse(facts.Conflict,
				"task %s of job %s is sealed, so that no instance of it begins: it keeps its %d instances", t.Name, spec.Name,
				old.Instances)
		}
	}
	return report.Result{}
}

// user refuses a new job that would run as the user that is another's own.
func user(s *cluster.State, old *workload.Job, spec *terms.Job) report.Result {
	if s.Rules < rules.UsersApart || old != nil {
		return report.Result{}
	}
	other, shared := s.WithUserOf(spec.Name)
	if !shared {
		return report.Result{}
	}
	return report.Refuse(facts.Conflict, "job %s would run as the same user as %s, which is known: give it another name",
		spec.Name, other)
}

// shareOfRest is how many times as many jobs and instances as are left for all pools together one of them may have. A
// pool alone gets four fifths of all, and there is always something left for another.
const shareOfRest = 4

// share refuses a version with which its pool would have too many of the jobs, or instances, that a cluster counts.
func share(s *cluster.State, spec *terms.Job, isNew bool, with wanted) report.Result {
	number, found := s.PoolNumber(spec.Name.Pool())
	if s.Rules < rules.PoolShares || !found || spec.Type == terms.Daemon {
		return report.Result{}
	}
	jobs, jobsLeft := uint64(s.Account(number).Jobs), uint64(s.Limits.Jobs)-uint64(s.OpenJobs())
	left := uint64(s.Limits.Instances) - with.all
	switch {
	case isNew && jobs >= shareOfRest*jobsLeft:
		return report.Refuse(facts.Exhausted, "pool %s has %d jobs that have not ended, %d times the %d that are left for all pools, "+
			"or more: stop some", spec.Name.Pool(), jobs, shareOfRest, jobsLeft)
	case with.grows && with.pool > shareOfRest*left:
		return report.Refuse(facts.Exhausted, "pool %s would have %d instances with it, more than %d times the %d that would be left "+
			"for all pools: stop some", spec.Name.Pool(), with.pool, shareOfRest, left)
	}
	return report.Result{}
}

// wanted is how many instances a pool, and all, would want with a version, and whether that is more than before.
type wanted struct {
	pool, all uint64
	grows     bool
}

// volumesKept counts what is kept of volumes that no instance has. Earlier rules count also what holds nothing.
func volumesKept(s *cluster.State) int {
	if s.Rules < rules.KeptVolumes {
		return s.Volumes().Len() // 0 before rules.Volumes
	}
	return s.Volumes().Full
}

func hasVolumes(spec *terms.Job) bool {
	return slices.ContainsFunc(spec.Tasks, func(t terms.Task) bool { return len(t.Volumes) > 0 })
}

// atMost writes an amount that may have reached what can be counted.
func atMost(k terms.Kind, amount int64) string {
	if amount >= terms.Unlimited {
		return "more than " + k.Round(terms.Unlimited-1)
	}
	return k.Round(amount)
}

// Offer refuses an offer of a node that is none, that says that its peer is away for more than a day, or with which all
// nodes would offer more than can be counted.
func Offer(s *cluster.State, node *cluster.Node, offer *terms.Offer) report.Result {
	if reason := offer.Problem(); reason != "" {
		return report.Refuse(facts.Invalid, "offer of %s: %s", node.Peer, reason)
	}
	if offer.AwayUntil > s.Time+terms.AwayMillisMax {
		return report.Refuse(facts.Invalid, "offer of %s: away for more than a day", node.Peer)
	}
	for k, amount := range s.VolunteeredWith(node.Index, offer) {
		if kind := terms.Kind(k); amount > s.Limits.ClusterAmount {
			return report.Refuse(facts.Exhausted, "all nodes would offer %s of %s with %s, at most %s",
				kind.Round(amount), kind, node.Name, kind.Text(s.Limits.ClusterAmount))
		}
	}
	return report.Result{}
}
