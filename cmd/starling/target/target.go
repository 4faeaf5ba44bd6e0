// Package target is what a user names on the command line: a job or something of it, and how that stands.
package target

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	starlingv1 "starling/api/v1"
	"starling/terms"
)

// Target is what a user asks about: a job, one of its tasks, one instance, or one allocation.
type Target struct {
	// Job is the name in full, Task "" for all of the job's.
	Job, Task string
	// Number of the instance, -1 for all.
	Number int
	// Allocation in full, "" for the present or last one.
	Allocation string
}

// JobName returns the name of the job that a user calls so: default/web is web.
func JobName(text string) string {
	return string(terms.NewJobName(terms.JobName(text).Split()))
}

// form matches what tables show, JOB.TASK[3] and JOB.TASK[3]#4711, and also JOB/TASK, JOB/TASK[3] and JOB/TASK/3. JOB
// may have the path of its pool: analytics/etl/nightly.
const form = `^([\w-]+(?:/[\w-]+)*)(?:\.([\w-]+))?(?:(?:\[(\d{1,9})\]|/(\d{1,9}))(#\d+)?)?$`

// Parse returns what the text may mean, the reading with the longest name of a job first: of "a/b" only the
// cluster's jobs tell whether it is a job or a task.
func Parse(text string) ([]Target, error) {
	parts := regexp.MustCompile(form).FindStringSubmatch(text)
	if parts == nil {
		return nil, badTarget(text)
	}
	path, task, number, order := parts[1], parts[2], parts[3]+parts[4], parts[5]
	above, last := cutLast(path)
	switch {
	case task != "":
		return []Target{newTarget(path, task, number, order)}, nil
	case number != "" && above == "":
		return nil, badTarget(text)
	case number != "":
		return []Target{newTarget(above, last, number, order)}, nil
	}
	readings := []Target{newTarget(path, "", "", "")}
	if above != "" {
		readings = append(readings, newTarget(above, last, "", ""))
	}
	if job, task := cutLast(above); job != "" && regexp.MustCompile(`^\d{1,9}$`).MatchString(last) {
		readings = append(readings, newTarget(job, task, last, ""))
	}
	return readings, nil
}

func badTarget(text string) error {
	return fmt.Errorf("%q names nothing of a job: write JOB, JOB.TASK or JOB.TASK[3]", text)
}

// cutLast parts a path before its last name; above is empty if there is only one.
func cutLast(path string) (above, last string) {
	at := strings.LastIndexByte(path, '/')
	return path[:max(at, 0)], path[at+1:]
}

// newTarget returns a target of parts, of which all but the job may be empty; number has at most nine digits.
func newTarget(job, task, number, order string) Target {
	t := Target{Job: JobName(job), Task: task, Number: -1}
	if value, err := strconv.Atoi(number); err == nil {
		t.Number = value
	}
	if order != "" {
		t.Allocation = fmt.Sprintf("%s.%s[%d]%s", t.Job, t.Task, t.Number, order)
	}
	return t
}

// String returns the target as a user may write it, so that it has no other reading.
func (t Target) String() string {
	switch {
	case t.Task == "":
		return t.Job
	case t.Number < 0:
		return t.Job + "." + t.Task
	}
	return fmt.Sprintf("%s.%s[%d]", t.Job, t.Task, t.Number)
}

// Check is an error if the job has no such task.
func (t Target) Check(answer *starlingv1.JobStatusResponse) error {
	var names []string
	for _, task := range answer.GetTasks() {
		names = append(names, task.GetName())
	}
	if t.Task == "" || slices.Contains(names, t.Task) {
		return nil
	}
	return fmt.Errorf("job %s has no task %s: there are %s", t.Job, t.Task, strings.Join(names, ", "))
}

// CheckInstance is an error if the job has no such task or instance, or the instance another allocation by now.
func (t Target) CheckInstance(answer *starlingv1.JobStatusResponse) error {
	err := t.Check(answer)
	if err != nil || t.Number < 0 {
		return err
	}
	slot := t.Find(answer)
	isOf := func(task *starlingv1.Task) bool {
		return (t.Task == "" || task.GetName() == t.Task) && uint32(t.Number) < task.GetCounts().GetDesired()
	}
	switch {
	case slot == nil && !slices.ContainsFunc(answer.GetTasks(), isOf): // what was never placed has no slot
		return fmt.Errorf("job %s has no instance %s", t.Job, t)
	case t.Allocation != "" && slot.GetAllocation() != t.Allocation:
		return fmt.Errorf("%s is not the allocation of %s any more: that is %s", t.Allocation, t,
			cmp.Or(slot.GetAllocation(), "none"))
	}
	return nil
}

// Choose returns the instances that are meant.
func (t Target) Choose(answer *starlingv1.JobStatusResponse) ([]Target, error) {
	if err := t.Check(answer); err != nil {
		return nil, err
	}
	var chosen []Target
	for _, slot := range answer.GetSlots() {
		if t.Task == "" || slot.GetTask() == t.Task {
			chosen = append(chosen, Target{t.Job, slot.GetTask(), int(slot.GetNumber()), ""})
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%s has no instances", t)
	}
	return chosen, nil
}

// Find returns the slot of an instance, nil if it is not in the answer.
func (t Target) Find(answer *starlingv1.JobStatusResponse) *starlingv1.Slot {
	for _, slot := range answer.GetSlots() {
		if (t.Task == "" || slot.GetTask() == t.Task) && slot.GetNumber() == uint32(t.Number) {
			return slot
		}
	}
	return nil
}
