package main

import (
	"fmt"
	"regexp"
	"strconv"

	starlingv1 "starling/api/v1"
)

// target is what a user wants to see the output of: a job, one of its tasks, one instance, or one allocation.
type target struct {
	job, task string
	// number of the instance, -1 for all.
	number int
	// allocation in full, "" for the present or last one.
	allocation string
}

// targetForm matches JOB, JOB/TASK, JOB/TASK[3], JOB/TASK/3, and what tables show: JOB.TASK[3] and JOB.TASK[3]#4711.
const targetForm = `^([\w-]+)(?:[/.]([\w-]+)(?:(?:\[|/)(\d{1,9})\]?(#\d+)?)?)?$`

func parseTarget(text string) (target, error) {
	parts := regexp.MustCompile(targetForm).FindStringSubmatch(text)
	if parts == nil {
		return target{}, fmt.Errorf("%q names no output: write JOB, JOB/TASK or JOB/TASK[3]", text)
	}
	t := target{job: parts[1], task: parts[2], number: -1}
	if parts[3] != "" {
		number, err := strconv.Atoi(parts[3])
		if err != nil {
			return target{}, fmt.Errorf("the number of an instance: %w", err)
		}
		t.number = number
	}
	if parts[4] != "" {
		t.allocation = fmt.Sprintf("%s.%s[%d]%s", t.job, t.task, t.number, parts[4])
	}
	return t, nil
}

// String returns the target as a user may write it.
func (t target) String() string {
	switch {
	case t.task == "":
		return t.job
	case t.number < 0:
		return t.job + "/" + t.task
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
