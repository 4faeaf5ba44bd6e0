package jobspec

import (
	"strconv"

	"starling/terms"
)

// idle tells what in a job file would do nothing. The cluster takes such jobs, so this is only about files: who writes
// a setting there expects something of it.
func idle(spec *terms.Job) []terms.Problem {
	var found []terms.Problem
	add := func(path, why string) { found = append(found, terms.Problem{Path: path, Reason: why}) }
	if spec.Percent > 0 && !spec.Shares() {
		add("percent", "does nothing without a task_scheduler: it is a part of the virtual peers of the pool, and only such jobs have any")
	}
	for i := range spec.Tasks {
		t, path := &spec.Tasks[i], "tasks["+strconv.Itoa(i)+"]."
		if t.Percent > 0 && spec.TaskScheduler != terms.TaskPercentage {
			add(path+"percent", "does nothing without task_scheduler: percentage")
		}
		if t.OnMembersChange != terms.NoSignal && len(spec.Plugins) == 0 {
			add(path+"on_members_change", "does nothing without plugins, such as svc: there are no files about the members that could change")
		}
	}
	return found
}
