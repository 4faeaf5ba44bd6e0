package plugin

import (
	"errors"
	"fmt"
	"strings"

	"starling/terms"
)

// mpi gives the workers to the one who starts programs on them with mpirun.
type mpi struct {
	bare
	master, worker role
	slots          uint16
}

func newMPI(a *arguments) Plugin {
	return &mpi{master: a.task("master", "master"), worker: a.task("worker", "worker"), slots: a.number("slots", 1)}
}

// Name returns mpi.
func (*mpi) Name() string { return "mpi" }

// OnJobAdd wants both tasks.
func (p *mpi) OnJobAdd(job *terms.Job) error {
	return errors.Join(p.master.missing(job), p.worker.missing(job))
}

// OnInstanceCreate returns the names of the workers to the masters.
func (p *mpi) OnInstanceCreate(r *Roster, self *Self) (outfit Outfit, err error) {
	if self.Task == p.master.task {
		workers := strings.Join(r.hosts(r.members(p.worker.task)), ",")
		outfit.Env = []terms.EnvVar{{Name: "MPI_HOST", Value: workers}}
	}
	outfit.Files, err = p.OnJobUpdate(r, self)
	return outfit, err
}

// OnJobUpdate returns the workers in the form of Open MPI, to the masters.
func (p *mpi) OnJobUpdate(r *Roster, self *Self) ([]File, error) {
	if self.Task != p.master.task {
		return nil, nil
	}
	var all []string
	for _, name := range r.hosts(r.members(p.worker.task)) {
		all = append(all, fmt.Sprintf("%s slots=%d", name, p.slots))
	}
	return []File{{Path: "hostfile", Content: lines(all)}}, nil
}
