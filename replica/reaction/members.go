package reaction

import (
	"cmp"
	"errors"
	"slices"

	"starling/cluster/facts"
	"starling/plugin"
	"starling/plugin/roster"
	"starling/terms"
)

// Renewal tells the driver to replace the files of an allocation that runs, and then to send it a signal.
type Renewal struct {
	ID  terms.AllocationID
	Job terms.JobID
	// Version is that of the list of members of which the files tell.
	Version terms.Index
	Files   []plugin.File
	User    string
	Signal  terms.Signal
}

// renewalsMax bounds what is renewed at a time: the files of large jobs are large.
const renewalsMax = 16

// startSome tells the driver to run as many as may be started, those first that were placed first.
func (r *reacting) startSome() {
	if r.o.Starts > 0 {
		slices.SortStableFunc(r.queue, func(a, b *Assignment) int { return cmp.Compare(a.Since, b.Since) })
	}
	for len(r.queue) > 0 && len(r.out.Start) < r.o.Starts {
		r.start(r.queue[0])
		r.queue = r.queue[1:]
	}
	r.out.Queued = len(r.queue)
}

// start tells the driver to run an allocation. One that must know where others are waits until they have nodes: with
// the list that says so it is asked for again.
func (r *reacting) start(a *Assignment) {
	order := a.order()
	set, list, self := r.told(a)
	if set == nil {
		r.out.Start = append(r.out.Start, order)
		return
	}
	var err error
	order.Environment, err = set.OnInstanceCreate(list, &self)
	switch {
	case errors.Is(err, plugin.ErrWaits):
		r.out.Waits = append(r.out.Waits, Wait{order.ID, "others: " + err.Error()})
		return
	case err != nil:
		order.Refusal = err.Error()
	}
	order.Members = list.Version
	r.out.Start = append(r.out.Start, order)
}

// renew replaces the files of an allocation that runs, if the list of members is another than the one they tell of.
func (r *reacting) renew(a *Assignment, task *LocalTask) {
	if r.o.Renewing || task == nil || task.Files == 0 || task.Ended != facts.NotEnded || a.Phase == facts.Stopping ||
		len(r.out.Renew) == renewalsMax ||
		task.Files >= r.s.Job(a.Slot.Job).Roster.Version {
		return
	}
	set, list, self := r.told(a)
	if set == nil {
		return
	}
	files, err := set.OnJobUpdate(list, &self)
	if err != nil {
		return // it is none of the members any more, and will be told to stop
	}
	r.out.Renew = append(r.out.Renew,
		Renewal{ID: a.ID, Job: a.Slot.Job, Version: list.Version, Files: files, User: a.Spec.User,
			Signal: a.Spec.OnMembersChange})
}

// told returns what an allocation is told by, of whom, and who it is; nil if its job has no plugins.
func (r *reacting) told(a *Assignment) (plugin.Set, *plugin.Roster, plugin.Self) {
	j := r.s.Job(a.Slot.Job)
	spec := j.SpecOf(a.Version)
	if spec == nil || len(spec.Plugins) == 0 || len(j.Spec.Plugins) == 0 {
		return nil, nil, plugin.Self{}
	}
	set, err := plugin.NewSet(spec.Plugins, r.s.Rules)
	if err != nil {
		return nil, nil, plugin.Self{} // the fold takes no such job
	}
	if r.lists == nil {
		r.lists = map[terms.JobID]*plugin.Roster{}
	}
	if r.lists[j.ID] == nil {
		r.lists[j.ID] = roster.Of(r.s, j)
	}
	self := plugin.Self{Task: a.ID.Slot.Task, Index: a.ID.Slot.Index}
	if r.o.Folder != nil {
		self.Folder = r.o.Folder(a.ID)
	}
	return set, r.lists[j.ID], self
}
