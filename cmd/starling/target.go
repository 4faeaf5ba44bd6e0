package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	starlingv1 "starling/api/v1"
	"starling/cluster"
)

// target is what a user wants to see the output of: a job, one of its tasks, one instance, or one allocation.
type target struct {
	job, task string
	// number of the instance, -1 for all.
	number int
	// allocation in full, "" for the present or last one.
	allocation string
}

// jobNamed returns the name of the job that a user calls so: default/web is web.
func jobNamed(text string) string {
	return string(cluster.NewJobName(cluster.JobName(text).Split()))
}

// targetForm matches JOB, JOB/TASK, JOB/TASK[3], JOB/TASK/3, and what tables show: JOB.TASK[3] and JOB.TASK[3]#4711. JOB
// may have the path of its pool: analytics/etl/nightly.
const targetForm = `^([\w-]+(?:/[\w-]+)*)(?:\.([\w-]+))?(?:[[/](\d{1,9})\]?(#\d+)?)?$`

// parseTarget returns what the text may mean, the reading with the longest name of a job first: of "a/b" only the
// cluster's jobs tell whether it is a job or a task.
func parseTarget(text string) ([]target, error) {
	parts := regexp.MustCompile(targetForm).FindStringSubmatch(text)
	if parts == nil {
		return nil, badTarget(text)
	}
	path, task, number, order := parts[1], parts[2], parts[3], parts[4]
	above, last := cutLast(path)
	switch {
	case task != "":
		return []target{newTarget(path, task, number, order)}, nil
	case number != "" && above == "":
		return nil, badTarget(text)
	case number != "":
		return []target{newTarget(above, last, number, order)}, nil
	}
	readings := []target{newTarget(path, "", "", "")}
	if above != "" {
		readings = append(readings, newTarget(above, last, "", ""))
	}
	if job, task := cutLast(above); job != "" && regexp.MustCompile(`^\d{1,9}$`).MatchString(last) {
		readings = append(readings, newTarget(job, task, last, ""))
	}
	return readings, nil
}

func badTarget(text string) error {
	return fmt.Errorf("%q names no output: write JOB, JOB/TASK or JOB/TASK[3]", text)
}

// cutLast parts a path before its last name; above is empty if there is only one.
func cutLast(path string) (above, last string) {
	at := strings.LastIndexByte(path, '/')
	return path[:max(at, 0)], path[at+1:]
}

// newTarget returns a target of parts, of which all but the job may be empty; number has at most nine digits.
func newTarget(job, task, number, order string) target {
	t := target{job: jobNamed(job), task: task, number: -1}
	if value, err := strconv.Atoi(number); err == nil {
		t.number = value
	}
	if order != "" {
		t.allocation = fmt.Sprintf("%s.%s[%d]%s", t.job, t.task, t.number, order)
	}
	return t
}

// String returns the target as a user may write it, so that it has no other reading.
func (t target) String() string {
	switch {
	case t.task == "":
		return t.job
	case t.number < 0:
		return t.job + "." + t.task
	}
	return fmt.Sprintf("%s/%s[%d]", t.job, t.task, t.number)
}

// choose returns the instances that are meant.
func (t target) choose(answer *starlingv1.JobStatusResponse) ([]target, error) {
	var names []string
	known := t.task == ""
	for _, task := range answer.GetTasks() {
		names = append(names, task.GetName())
		known = known || task.GetName() == t.task
	}
	if !known {
		return nil, fmt.Errorf("job %s has no task %s: its tasks are %q", t.job, t.task, names)
	}
	var chosen []target
	for _, slot := range answer.GetSlots() {
		if t.task == "" || slot.GetTask() == t.task {
			chosen = append(chosen, target{t.job, slot.GetTask(), int(slot.GetNumber()), ""})
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%s has no instances", t)
	}
	return chosen, nil
}

// find returns the slot of an instance, nil if it is not in the answer.
func (t target) find(answer *starlingv1.JobStatusResponse) *starlingv1.Slot {
	for _, slot := range answer.GetSlots() {
		if (t.task == "" || slot.GetTask() == t.task) && slot.GetNumber() == uint32(t.number) {
			return slot
		}
	}
	return nil
}
