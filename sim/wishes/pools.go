package wishes

import (
	"slices"

	"starling/cluster"
	"starling/command"
	"starling/terms"
	"starling/terms/pool"
	"starling/terms/rules"
)

// poolPaths are the pools that users make, besides the default one.
var poolPaths = [...]terms.PoolPath{"a", "a/x", "a/y", "b", "b/z", "c"}

// jobName draws a name for a job, mostly in a leaf of the tree as a machine sees it in s.
func (d *Drawer) jobName(s *cluster.State, own string) terms.JobName {
	path := poolPaths[d.IntN(len(poolPaths))]
	if s != nil && d.IntN(8) > 0 {
		tree := pool.Tree(s.Pools())
		number := d.IntN(len(tree))
		if path = tree[number].Path; !tree.Leaf(number) {
			path = tree[number+1].Path
		}
	}
	return terms.NewJobName(path, own)
}

// ChangePools draws a change of the tree that somebody sees in s: pools that come, change or go. What is above them is
// mostly changed with them, so that it has room for them.
func (d *Drawer) ChangePools(s *cluster.State) command.Command {
	change := &command.ChangePools{RequestID: d.RequestID(), Against: s.PoolsVersion() * uint32(d.IntN(2))}
	if change.Against > 0 && d.Happens(Stale) {
		change.Against--
	}
	for range d.between(1, 3) {
		path := poolPaths[d.IntN(len(poolPaths))]
		if d.IntN(6) == 0 {
			path = terms.DefaultPool
		}
		if _, found := s.PoolNumber(path); found && d.IntN(4) == 0 {
			change.Gone = append(change.Gone, path)
			continue
		}
		change.Pools = slices.DeleteFunc(change.Pools, func(p terms.Pool) bool { return p.Path == path })
		change.Pools = append(change.Pools, d.pool(path))
	}
	if d.IntN(8) > 0 {
		for _, above := range poolPaths {
			d.makeRoom(pool.Tree(s.Pools()).Change(change.Pools, change.Gone), above, change)
		}
	}
	d.rights(s, change.Pools)
	if s.Rules >= rules.Volumes {
		for i := range change.Pools { // a job takes some hundred bytes
			most := [...]int64{0, 0, 400, 1000, 3000}
			change.Pools[i].SpecBytes = most[(d.Seed/4+uint64(s.Index)+uint64(len(change.Pools[i].Path)))%uint64(len(most))]
		}
	}
	return change
}

// makeRoom changes a pool of a tree, if need be, so that those below it keep to the rules.
func (d *Drawer) makeRoom(tree pool.Tree, above terms.PoolPath, change *command.ChangePools) {
	sum, limit, below := terms.Amounts{}, terms.Amounts{}, false
	for i := range tree {
		if parent, _ := pool.Split(tree[i].Path); parent == above {
			below = true
			for k, q := range tree[i].Quotas {
				sum[k] += q.Reservation
				limit[k] = max(limit[k], q.Limit)
			}
		}
	}
	if !below {
		return
	}
	spec := d.pool(above)
	if number, found := tree.Find(above); found {
		spec = tree[number]
	}
	for k := range spec.Quotas {
		q := &spec.Quotas[k]
		q.Reservation = max(q.Reservation, sum[k])
		if q.Limit = max(q.Limit, q.Reservation); limit[k] < terms.Unlimited {
			q.Limit = max(q.Limit, limit[k])
		}
	}
	change.Pools = slices.DeleteFunc(change.Pools, func(p terms.Pool) bool { return p.Path == above })
	change.Gone = slices.DeleteFunc(change.Gone, func(path terms.PoolPath) bool { return path == above })
	change.Pools = append(change.Pools, spec)
}

// pool draws a pool.
func (d *Drawer) pool(path terms.PoolPath) terms.Pool {
	spec := terms.NewPool(path)
	spec.PreemptionDelayMillis = []uint32{0, 100, 1000, 4000}[d.IntN(4)]
	spec.ControllerLimit = []terms.Percent{terms.NoPercent, 0, 50, 100}[d.IntN(4)]
	spec.SlackLimit = []terms.Percent{0, 20, 50, 100}[d.IntN(4)]
	spec.JobScheduler = terms.JobScheduler(d.IntN(int(terms.JobPercentage) + 1))
	units := terms.Amounts{terms.CPU: 1000, terms.Memory: 1 << 28, terms.GPU: 500, terms.VirtualPeers: 1000}
	for k, unit := range units {
		q := &spec.Quotas[k]
		if unit == 0 {
			continue
		}
		if q.Share = int64(d.IntN(4)); d.IntN(2) == 0 {
			q.Reservation = unit * int64(d.between(0, 8))
		}
		if d.IntN(3) == 0 {
			q.Limit = q.Reservation + unit*int64(d.between(0, 8))
		}
		q.Static = d.IntN(4) == 0
	}
	return spec
}

// sharing draws how a job shares its pool.
func (d *Drawer) sharing(spec *terms.Job) {
	spec.Priority = []uint32{50, 50, 50, 0, 80, 100}[d.IntN(6)]
	if spec.Type == terms.Daemon {
		return
	}
	spec.Preemption = []terms.Preemption{terms.NonPreemptible, terms.Preemptible, 0, 0, 0, 0}[d.IntN(6)]
	spec.Revocable = d.IntN(5) == 0 && !spec.NonPreemptible()
	spec.Controller = d.IntN(8) == 0
	spec.KillOnPreempt = spec.Type == terms.Batch && !spec.NonPreemptible() && d.IntN(3) == 0
	d.bounds(spec)
}

// bounds draws how many instances of a job must run together, and how many and how long they may run.
func (d *Drawer) bounds(spec *terms.Job) {
	gang := spec.Type != terms.Daemon && d.IntN(3) == 0
	least, most := uint32(0), uint32(0)
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		t.MinAvailable, t.MaxRunning, t.MaxRunMillis = 0, 0, 0
		if spec.Type == terms.Batch && d.IntN(4) == 0 {
			t.MaxRunning = uint32(d.between(1, 4))
		}
		if spec.Type == terms.Batch && d.IntN(5) == 0 {
			t.MaxRunMillis = uint32(d.between(500, 8000))
		}
		if gang && d.IntN(2) == 0 {
			t.MinAvailable = uint32(d.between(0, int(atOnce(t))))
		}
		least += t.MinAvailable
		most += atOnce(t)
	}
	spec.MinAvailable, spec.Within, spec.Grow = 0, "", terms.GrowEach
	if gang && d.IntN(2) == 0 {
		spec.MinAvailable = uint32(d.between(int(least), int(most)))
	}
	if gang && d.IntN(3) == 0 {
		spec.Within = []string{"rack", "disk"}[d.IntN(2)]
	}
	if gang && d.IntN(4) == 0 {
		spec.Grow = terms.GrowWhole
	}
	d.order(spec)
}

// order draws which tasks of a batch job come after which; a gang has no order.
func (d *Drawer) order(spec *terms.Job) {
	gang := spec.MinAvailable > 0 || slices.ContainsFunc(spec.Tasks, func(t terms.Task) bool { return t.MinAvailable > 0 })
	ordered := spec.Type == terms.Batch && !gang && d.IntN(2) == 0
	for i := range spec.Tasks {
		spec.Tasks[i].After = nil
		for k := range i {
			if ordered && d.IntN(2) == 0 {
				spec.Tasks[i].After = append(spec.Tasks[i].After, spec.Tasks[k].Name)
			}
		}
	}
}

// scheduler draws how a job divides virtual peers, if it is run by such.
func (d *Drawer) scheduler(spec *terms.Job) {
	spec.TaskScheduler, spec.Percent = terms.TaskScheduler(d.IntN(int(terms.TaskColocated)+1)), uint32(d.IntN(101))
	spec.Coverage = terms.Coverage(d.IntN(int(terms.CoverageOptional) + 1))
	for i := range spec.Tasks {
		spec.Tasks[i].Percent = uint32(d.IntN(101))
	}
}

// crowd makes most jobs share virtual peers that suit each other badly: some only on machines of one kind, some
// together.
func (d *Drawer) crowd(spec *terms.Job) {
	if d.IntN(4) == 0 {
		return
	}
	spec.Revocable, spec.Preemption, spec.Update.Canaries = false, terms.PreemptionByType, 0
	spec.TaskScheduler = terms.TaskColocated
	if d.IntN(2) == 0 {
		spec.TaskScheduler = terms.TaskScheduler(d.between(int(terms.TaskGreedy), int(terms.TaskFixed)))
	}
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		for k := range t.Resources {
			t.Resources[k] /= 4
		}
		if d.IntN(3) == 0 {
			t.Constraints = append(t.Constraints, d.constraint())
		}
	}
}

// onPeers makes the instances of a job take virtual peers if such can run it, and no others.
func onPeers(spec *terms.Job) {
	gather(spec)
	gang := spec.MinAvailable > 0
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		gang = gang || t.MinAvailable > 0
		t.Devices = slices.DeleteFunc(slices.Clone(t.Devices),
			func(q terms.DeviceRequest) bool { return q.Kind == terms.VirtualPeers.String() })
	}
	if spec.Type > terms.Stateless || spec.Revocable || spec.NonPreemptible() || spec.Update.Canaries > 0 {
		spec.TaskScheduler = terms.NoScheduler
	}
	if spec.TaskScheduler == terms.TaskGreedy && gang {
		spec.TaskScheduler = terms.TaskRoundRobin
	}
	if !spec.Shares() || spec.TaskScheduler == terms.TaskColocated {
		spec.Coverage = terms.CoverageByType
	}
	if spec.Shares() {
		spec.KillOnPreempt, spec.Within, spec.Grow = false, "", terms.GrowEach
		spec.OnVirtualPeers()
	}
}

// onSlack makes some tasks of a revocable job ask for slack, and no others. It draws nothing: other seeds stay what
// they were.
func onSlack(spec *terms.Job) {
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		t.Devices = slices.DeleteFunc(slices.Clone(t.Devices),
			func(q terms.DeviceRequest) bool { return q.Kind == terms.Slack })
		if spec.Revocable && !spec.Shares() && t.StopGraceMillis%3 == 0 && t.Instances < 100 {
			t.Devices = append(t.Devices, terms.DeviceRequest{Kind: terms.Slack,
				Amount: []terms.Millidevices{500, 1000, 1000, 2000}[t.StopGraceMillis%4]})
		}
	}
}

// gather makes a gang that grows whole one of all instances, and drops what a job says about a gang that it does not
// have.
func gather(spec *terms.Job) {
	if spec.Grow == terms.GrowWhole {
		spec.MinAvailable = 0
		for i := range spec.Tasks {
			spec.Tasks[i].MaxRunning = 0
			spec.MinAvailable += spec.Tasks[i].Instances
		}
	}
	if !spec.HasGang() {
		spec.Within, spec.Grow = "", terms.GrowEach
	}
}

// fit makes the gang of a job, and how many must succeed, small enough for its tasks.
func fit(spec *terms.Job) {
	least, most, all := uint32(0), uint32(0), uint32(0)
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		all += t.Instances
		t.MinAvailable = min(t.MinAvailable, atOnce(t))
		least += t.MinAvailable
		most += atOnce(t)
	}
	if spec.MinAvailable > 0 {
		spec.MinAvailable = min(max(spec.MinAvailable, least), most)
	}
	spec.MinSuccess = min(spec.MinSuccess, all)
}

// atOnce is how many instances of a task may run at a time.
func atOnce(t *terms.Task) uint32 {
	if t.MaxRunning > 0 {
		return min(t.MaxRunning, t.Instances)
	}
	return t.Instances
}
