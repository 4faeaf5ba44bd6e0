package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"starling/terms"
)

// mpi gives the workers to the one who starts programs on them with mpirun.
type mpi struct {
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

// OnInstanceCreate returns to the masters the names of the workers, and what lets mpirun find them without arguments. A
// master waits for the first worker that has a node: without any, mpirun would start all on the master itself.
func (p *mpi) OnInstanceCreate(r *Roster, self *Self) (Environment, error) {
	if self.Task != p.master.task {
		return Environment{}, nil
	}
	workers, found := r.members(p.worker.task), p.found(r)
	if len(workers) > 0 && len(found) == 0 {
		return Environment{}, portChoice{}.waits(&workers[0])
	}
	var names, addresses []string
	for i := range found {
		names, addresses = append(names, found[i].Name), append(addresses, found[i].Address)
	}
	env := []terms.EnvVar{
		{Name: "MPI_HOST", Value: strings.Join(names, ",")},
		// Instances share the processors of a machine, and programs of others would be bound to the same first ones.
		{Name: "OMPI_MCA_hwloc_base_binding_policy", Value: "none"},
		// The names mean something to ssh alone, and only as a whole.
		{Name: "OMPI_MCA_if_base_do_not_resolve", Value: "1"},
		{Name: "OMPI_MCA_orte_default_hostfile", Value: self.Folder + "/hostfile"},
		{Name: "OMPI_MCA_orte_keep_fqdn_hostnames", Value: "1"},
		{Name: "OMPI_MCA_plm_rsh_args", Value: "-F " + self.Folder + "/" + clientConfig},
		// Workers that start others would look for the configuration of ssh where it is here.
		{Name: "OMPI_MCA_plm_rsh_no_tree_spawn", Value: "1"},
	}
	slices.Sort(addresses)
	if len(slices.Compact(addresses)) < len(found) {
		// The first parts on both of two workers on one machine would take the same file for their shared memory.
		env = append(env, terms.EnvVar{Name: "OMPI_MCA_btl", Value: "self,tcp"})
	}
	files, err := p.OnJobUpdate(r, self)
	return Environment{Env: env, Files: files}, err
}

// OnJobUpdate returns the workers in the form of Open MPI, to the masters.
func (p *mpi) OnJobUpdate(r *Roster, self *Self) ([]File, error) {
	if self.Task != p.master.task {
		return nil, nil
	}
	var hosts []string
	for _, m := range p.found(r) {
		hosts = append(hosts, fmt.Sprintf("%s slots=%d", m.Name, p.slots))
	}
	return []File{{Path: "hostfile", Content: lines(hosts)}}, nil
}

// found returns the workers that have a node. Masters know them by name: by address mpirun would take all on one
// machine for one, and those on its own machine for itself, and would not log in to them.
func (p *mpi) found(r *Roster) []Member {
	return slices.DeleteFunc(slices.Clone(r.members(p.worker.task)), func(m Member) bool { return m.Address == "" })
}
