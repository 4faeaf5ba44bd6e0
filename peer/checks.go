package peer

import (
	"context"
	"fmt"
	"sync"

	"starling/driver"
	"starling/peer/probe"
	"starling/replica"
	"starling/terms"
)

// checked are the instances that are asked whether they are well. The prober's goroutines look up tasks in it.
type checked struct {
	prober *probe.Prober
	// news says that the prober has some.
	news chan struct{}
	lock sync.Mutex
	// tasks are those that are asked, as they were started.
	tasks map[terms.AllocationID]driver.Task
}

// startProber makes what asks instances whether they are well, until ctx ends.
func (p *Peer) startProber(ctx context.Context) {
	c := &p.checked
	c.news, c.tasks = make(chan struct{}, 1), map[terms.AllocationID]driver.Task{}
	c.prober = probe.New(ctx, probe.Config{
		Run: func(ctx context.Context, id terms.AllocationID, command []string) error {
			task, ok := c.task(id)
			if !ok {
				return fmt.Errorf("%s is not asked any more", id)
			}
			task.Command = command
			return p.config.Driver.Run(ctx, task)
		},
		Changed: func(terms.AllocationID) {
			select {
			case c.news <- struct{}{}:
			default:
			}
		},
	})
}

func (c *checked) task(id terms.AllocationID) (driver.Task, bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	task, ok := c.tasks[id]
	return task, ok
}

// probe asks the instances of the list from now on, and no others.
func (p *Peer) probe(all []replica.Order) {
	c := &p.checked
	c.lock.Lock()
	defer c.lock.Unlock()
	listed := make(map[terms.AllocationID]bool, len(all))
	for i := range all {
		listed[all[i].ID] = true
		if _, known := c.tasks[all[i].ID]; !known {
			c.tasks[all[i].ID] = p.taskOf(all[i])
			c.prober.Watch(all[i].ID, all[i].Spec.Checks, all[i].Ports)
		}
	}
	for id := range c.tasks {
		if !listed[id] {
			c.prober.Forget(id)
			delete(c.tasks, id)
		}
	}
}

// askProber completes what the driver knows of a task that runs.
func (p *Peer) askProber(task *replica.LocalTask) {
	ready, failure := p.checked.prober.State(task.ID)
	task.Ready = ready
	if failure != "" {
		p.core.CheckFailed(task.ID, failure)
	}
}
