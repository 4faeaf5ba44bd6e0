package plugin

import (
	"errors"
	"fmt"

	"starling/terms"
)

// ray gives each member what to call `ray start` with, so that the job's command can be the same everywhere:
// ray start --block $STARLING_RAY_START
type ray struct {
	bare
	head, worker            role
	port, dashboard, client portChoice
}

func newRay(a *arguments) Plugin {
	return &ray{
		head: a.task("head", "head"), worker: a.task("worker", "worker"),
		port: a.port("port", 6379), dashboard: a.port("dashboard_port", 8265), client: a.port("client_port", 10001),
	}
}

// Name returns ray.
func (*ray) Name() string { return "ray" }

// OnJobAdd wants a head, and its ports if they are named. A job may have no workers.
func (p *ray) OnJobAdd(job *terms.Job) error {
	return errors.Join(p.head.missing(job), p.port.missing(job, p.head.task), p.dashboard.missing(job, p.head.task),
		p.client.missing(job, p.head.task))
}

// OnInstanceCreate returns the arguments. The first head leads; other heads and the workers join it.
func (p *ray) OnInstanceCreate(r *Roster, self *Self) (Environment, error) {
	heads := r.members(p.head.task)
	if len(heads) == 0 || self.Task != p.head.task && self.Task != p.worker.task {
		return Environment{}, nil
	}
	first := &heads[0]
	var ports [3]uint16
	host := ""
	for i, choice := range []portChoice{p.port, p.dashboard, p.client} {
		var err error
		if host, ports[i], err = r.reach(first, choice); err != nil {
			return Environment{}, err
		}
	}
	start := fmt.Sprintf("--address=%s:%d", host, ports[0])
	if self.Task == p.head.task && self.Index == first.Index {
		start = fmt.Sprintf("--head --port=%d --dashboard-port=%d --ray-client-server-port=%d", ports[0], ports[1], ports[2])
	}
	return Environment{Env: []terms.EnvVar{{Name: "STARLING_RAY_START", Value: start}}}, nil
}
