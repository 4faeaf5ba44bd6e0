package sim

import (
	"fmt"
	"strconv"

	"starling/cluster"
	"starling/command"
	"starling/replica"
)

// clients submit and kill jobs through any machine, and repeat what was not answered through another.
type clients struct {
	w         *World
	submitted int
	// accepted are the jobs whose submission was acknowledged, killed those whose end was.
	accepted, killed []cluster.JobName
	// succeeded are the allocations whose program ended well, started how often each was run.
	succeeded map[cluster.AllocationID]bool
	started   map[cluster.AllocationID]int
}

// ran notes that a driver began the allocation.
func (c *clients) ran(id cluster.AllocationID) {
	if c.started[id]++; c.started[id] > 1 {
		c.w.fail("%s was started twice", id)
	}
}

// work submits a random job, or kills or changes one, and comes again.
func (c *clients) work() {
	if c.w.calm {
		return
	}
	name := cluster.JobName("job" + strconv.Itoa(c.w.rng.IntN(c.submitted+1)))
	switch {
	case c.submitted > 0 && c.w.rng.IntN(5) == 0:
		id := c.requestID()
		c.send(&command.KillJob{RequestID: id, Job: name}, func(r replica.Receipt) {
			if r.Refusal.Code == cluster.OK {
				c.killed = append(c.killed, name)
			}
		})
	case c.submitted > 0 && c.w.rng.IntN(4) == 0:
		c.submit(name)
	default:
		c.submitted++
		c.submit(cluster.JobName("job" + strconv.Itoa(c.submitted)))
	}
	c.w.after(c.w.between(10, 3000), c.work)
}

func (c *clients) requestID() string { return fmt.Sprint("request", c.w.posted) }

func (c *clients) submit(name cluster.JobName) {
	spec := c.spec(name)
	c.send(&command.SubmitJob{RequestID: c.requestID(), Spec: spec}, func(r replica.Receipt) {
		if r.Refusal.Code == cluster.OK {
			c.accepted = append(c.accepted, name)
		}
	})
}

// spec draws a job.
func (c *clients) spec(name cluster.JobName) cluster.JobSpec {
	w := c.w
	spec := cluster.JobSpec{Name: name, Type: cluster.Batch}
	if w.rng.IntN(2) == 0 {
		spec.Type = cluster.Stateless
	}
	for i := range w.between(1, 2) {
		task := cluster.TaskSpec{
			Name: cluster.TaskName("t" + strconv.Itoa(i)), Instances: uint32(w.between(0, 8)), Command: []string{"run", "0"},
			Resources: cluster.Resources{int64(w.between(0, 20)) * 100, int64(w.between(0, 4)) << 28, 0}, Placement: cluster.Pack,
			Restart:         cluster.Restart{AttemptsMax: cluster.RestartsUnlimited, DelayMillis: 100, DelayMaxMillis: 2000, ResetMillis: 10_000},
			StopGraceMillis: uint32(w.between(0, 1000)),
		}
		if spec.Type == cluster.Batch {
			task.Command[1] = strconv.Itoa(w.between(1, 3000))
			task.Restart.AttemptsMax = uint32(w.between(0, 4))
		}
		if w.rng.IntN(3) == 0 {
			task.Placement = cluster.Spread
		}
		if w.rng.IntN(4) == 0 {
			task.Ports = []cluster.PortRequest{{Name: "http"}, {Name: "fixed", Number: uint16(w.between(80, 82))}}
		}
		if w.rng.IntN(4) == 0 {
			task.Constraints = []cluster.Constraint{{Attribute: "rack", Operator: cluster.In, Values: []string{"r0", "r1"}}}
		}
		if w.rng.IntN(6) == 0 {
			task.Devices = []cluster.DeviceRequest{{Kind: "gpu", Count: 1}}
		}
		spec.Tasks = append(spec.Tasks, task)
	}
	return spec
}

// send gives the command to a machine that runs, and to another after a while if it was not answered.
func (c *clients) send(one command.Command, done func(replica.Receipt)) {
	answered := false
	if m := c.w.machines[c.w.rng.IntN(len(c.w.machines))]; m.up && m.begun {
		m.core.Request(one, func(r replica.Receipt, err error) {
			if err == nil && !answered {
				answered = true
				done(r)
			}
		})
		m.wake()
	}
	c.w.after(c.w.between(2000, 10_000), func() {
		if !answered {
			c.send(one, func(r replica.Receipt) {
				answered = true
				done(r)
			})
		}
	})
}
