package plugin

import (
	"errors"
	"strconv"

	"starling/terms"
)

// pytorch gives what torch.distributed reads from the environment.
type pytorch struct {
	bare
	master, worker role
	port           portChoice
}

func newPytorch(a *arguments) Plugin {
	return &pytorch{master: a.task("master", "master"), worker: a.task("worker", "worker"), port: a.port("port", 23456)}
}

// Name returns pytorch.
func (*pytorch) Name() string { return "pytorch" }

// OnJobAdd wants a master, and the port if it is named. A job may have no workers.
func (p *pytorch) OnJobAdd(job *terms.Job) error {
	return errors.Join(p.master.missing(job), p.port.missing(job, p.master.task))
}

// OnInstanceCreate returns where the first master listens, how many masters and workers there are and which of them
// this one is: masters first, each in their order. Instances of other tasks have no rank.
func (p *pytorch) OnInstanceCreate(r *Roster, self *Self) (Environment, error) {
	masters, workers := r.members(p.master.task), r.members(p.worker.task)
	if p.master.task == p.worker.task {
		workers = nil
	}
	if len(masters) == 0 {
		return Environment{}, nil
	}
	host, port, err := r.reach(&masters[0], p.port)
	if err != nil {
		return Environment{}, err
	}
	all := []terms.EnvVar{
		{Name: "MASTER_ADDR", Value: host},
		{Name: "MASTER_PORT", Value: strconv.Itoa(int(port))},
		{Name: "WORLD_SIZE", Value: strconv.Itoa(len(masters) + len(workers))},
	}
	rank, _ := r.position(self)
	switch self.Task {
	case p.master.task:
	case p.worker.task:
		rank += len(masters)
	default:
		return Environment{Env: all}, nil
	}
	return Environment{Env: append(all, terms.EnvVar{Name: "RANK", Value: strconv.Itoa(rank)})}, nil
}
