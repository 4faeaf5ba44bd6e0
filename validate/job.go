package validate

import (
	"slices"
	"strconv"
	"strings"

	"starling/terms"
	"starling/terms/lifecycle"
)

// job adds what is wrong with the job itself.
func (p *problems) job(s *terms.Job) {
	if reason := s.Name.Problem(); reason != "" {
		p.add("job", "%s", p.told(reason, string(s.Name)))
	}
	if s.Type < terms.Batch || s.Type > terms.Daemon {
		p.add("type", "must be one of %q", terms.JobTypes()[1:])
	}
	p.sharing(s)
	p.virtualPeers(s)
	p.follows(s)
	p.ends(s)
	p.path = "update"
	p.update(&s.Update, s.Type)
	p.path = ""
	p.requests(s)
	if len(s.Tasks) == 0 || len(s.Tasks) > terms.TasksMax {
		p.add("tasks", "must have 1 to %d tasks, has %d", terms.TasksMax, len(s.Tasks))
		return
	}
	size := 0
	for i := range s.Tasks {
		t := &s.Tasks[i]
		p.path = "tasks[" + strconv.Itoa(i) + "]"
		p.task(t)
		p.policies(t, s.Type)
		p.share(t, s.Type)
		lifecycle.Problems(t.Policies, s.Type == terms.Batch, p.add)
		for k := range i {
			if s.Tasks[k].Name == t.Name {
				p.add("name", "is also the name of tasks[%d]: each task needs a name of its own", k)
				break
			}
		}
		size += sizeOf(t)
	}
	p.path = ""
	p.order(s)
	if size > terms.SpecBytesMax {
		p.add("tasks", "must hold at most %d bytes of text, hold %d: put large input into files", terms.SpecBytesMax, size)
	}
}

// order adds what is wrong with the order of the tasks.
func (p *problems) order(s *terms.Job) {
	sound, gang, ordered := len(p.found) == 0, s.HasGang(), false
	for i := range s.Tasks {
		p.path = "tasks[" + strconv.Itoa(i) + "]"
		switch t := &s.Tasks[i]; {
		case len(t.After) == 0:
			continue
		case len(t.After) > terms.TasksMax:
			p.add("after", "must have at most %d elements, has %d", terms.TasksMax, len(t.After))
			sound = false
			continue
		case s.Type != terms.Batch:
			p.add("after", "needs a batch job: only its tasks come to an end")
		case gang:
			p.add("after", "excludes min_available: a gang starts together, and this begins later")
		}
		sound, ordered = p.after(s, s.Tasks[i].After) && sound, true
	}
	if p.path = ""; !sound || !ordered {
		return
	}
	if _, cycle := s.Order(); len(cycle) > 0 {
		first := slices.IndexFunc(s.Tasks, func(t terms.Task) bool { return t.Name == cycle[0] })
		p.add("tasks["+strconv.Itoa(first)+"].after", "is in a cycle: %s",
			strings.Join(cycleNames(cycle), " after "))
	}
}

// follows adds what is wrong with the names of the jobs that the job comes after.
func (p *problems) follows(s *terms.Job) {
	if len(s.After) > terms.JobsAfterMax {
		p.add("after", "must have at most %d elements, has %d", terms.JobsAfterMax, len(s.After))
		return
	}
	if len(s.After) > 0 && s.Type == terms.Daemon {
		p.add("after", "excludes daemon: daemons belong to their machines")
	}
	for k, name := range s.After {
		field := "after[" + strconv.Itoa(k) + "]"
		switch reason := name.Problem(); {
		case reason != "":
			p.add(field, "%s", p.told(reason, string(name)))
		case name == s.Name:
			p.add(field, "is the job itself")
		case slices.Contains(s.After[:k], name):
			p.add(field, "is there twice")
		}
	}
}

// after adds what is wrong with the names of the tasks that one comes after. It returns false if some is none.
func (p *problems) after(s *terms.Job, after []terms.TaskName) (sound bool) {
	sound = true
	for k, name := range after {
		field := "after[" + strconv.Itoa(k) + "]"
		switch {
		case slices.Contains(after[:k], name):
			p.add(field, "is there twice")
		case !slices.ContainsFunc(s.Tasks, func(t terms.Task) bool { return t.Name == name }):
			var names []string
			for i := range s.Tasks {
				names = append(names, string(s.Tasks[i].Name))
			}
			p.add(field, "there is no task %q in the job: it has %s", string(name), strings.Join(names, ", "))
			sound = false
		}
	}
	return sound
}

func cycleNames(cycle []terms.TaskName) (names []string) {
	for _, name := range cycle {
		names = append(names, string(name))
	}
	return append(names, names[0])
}

// ends adds what is wrong with what the job says about its end, and that of its tasks.
func (p *problems) ends(s *terms.Job) {
	lifecycle.Problems(s.Policies, s.Type == terms.Batch, p.add)
	instances := uint64(0)
	for i := range s.Tasks {
		instances += uint64(s.Tasks[i].Instances)
		if len(s.Tasks[i].Policies) > 0 && s.Type == terms.Daemon {
			p.add("tasks["+strconv.Itoa(i)+"].policies",
				"must be absent in a daemon job: each instance belongs to its machine and begins anew there, as restart says")
		}
	}
	if len(s.Policies) > 0 && s.Type == terms.Daemon {
		p.add("policies", "must be absent in a daemon job: each instance belongs to its machine and begins anew there, as restart says")
	}
	switch {
	case s.MinSuccess > 0 && s.Type != terms.Batch:
		p.add("min_success", "needs a batch job: services run until they are stopped")
	case uint64(s.MinSuccess) > instances:
		p.add("min_success", "must be at most the number of instances, %d, is %d", instances, s.MinSuccess)
	}
}

// requests adds what is wrong with the form of what the job asks of plugins; what they make of it they say themselves.
func (p *problems) requests(s *terms.Job) {
	if len(s.Plugins) > terms.PluginsMax {
		p.add("plugins", "must have at most %d elements, has %d", terms.PluginsMax, len(s.Plugins))
		return
	}
	for i, q := range s.Plugins {
		field := "plugins[" + strconv.Itoa(i) + "]"
		p.name(field, q.Name)
		if len(q.Arguments) > terms.PluginsMax {
			p.add(field, "must have at most %d arguments, has %d", terms.PluginsMax, len(q.Arguments))
			return
		}
		for k, a := range q.Arguments {
			p.name(field+"."+a.Name, a.Name)
			p.text(field+"."+a.Name, a.Value)
			switch {
			case len(a.Value) > terms.AttributeBytesMax:
				p.add(field+"."+a.Name, "must have at most %d bytes, has %d", terms.AttributeBytesMax, len(a.Value))
			case k > 0 && q.Arguments[k-1].Name >= a.Name:
				p.add(field, "arguments must be ordered by name, each name once")
			}
		}
	}
	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.OnMembersChange > terms.SignalUser2 {
			p.add("tasks["+strconv.Itoa(i)+"].on_members_change", "must be one of %q", terms.Signals())
		}
	}
}

func (p *problems) update(u *terms.UpdatePolicy, t terms.JobType) {
	p.bounded("batch_size", int64(u.BatchSize), 0, terms.InstancesMax)
	p.bounded("canaries", int64(u.Canaries), 0, terms.InstancesMax)
	if u.Canaries > 0 && t != terms.Stateless {
		p.add("canaries", "need a stateless job: two instances of one slot run at a time")
	}
	p.millis("min_healthy", int64(u.MinHealthyMillis), 0, terms.DelayMillisMax)
	p.millis("healthy_deadline", int64(u.HealthyDeadlineMillis), 0, terms.DelayMillisMax)
	p.millis("progress_deadline", int64(u.ProgressDeadlineMillis), 0, terms.DelayMillisMax)
	if u.HealthyDeadlineMillis != 0 && u.HealthyDeadlineMillis <= u.MinHealthyMillis {
		p.add("healthy_deadline", "must be above min_healthy, or no instance is healthy in time")
	}
	if u.ProgressDeadlineMillis != 0 && u.ProgressDeadlineMillis <= u.HealthyDeadlineMillis {
		p.add("progress_deadline", "must be above healthy_deadline, or no instance is given up before the update is")
	}
}
