package lifecycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"starling/terms/lifecycle"
)

const (
	failed, evicted      = lifecycle.InstanceFailed, lifecycle.InstanceEvicted
	completed, exhausted = lifecycle.TaskCompleted, lifecycle.TaskFailed
)

func on(events ...lifecycle.Event) []lifecycle.Event { return events }

func TestFirst(t *testing.T) {
	list := []lifecycle.Policy{
		{ExitCodes: []uint32{3, 4}, Action: lifecycle.RestartJob},
		{On: on(evicted, failed), Action: lifecycle.RestartTask, DelayMillis: 5},
		{On: on(lifecycle.Any), Action: lifecycle.Terminate},
	}
	for _, c := range []struct {
		name  string
		list  []lifecycle.Policy
		event lifecycle.Event
		code  int32
		want  lifecycle.Action
	}{
		{"an exit code", list, failed, 4, lifecycle.RestartJob},
		{"another exit code", list, failed, 5, lifecycle.RestartTask},
		{"an end without a code", list, failed, 0, lifecycle.RestartTask},
		{"no exit code of what did not fail", list, evicted, 3, lifecycle.RestartTask},
		{"any event", list, exhausted, 0, lifecycle.Terminate},
		{"none", list[:2], completed, 0, 0},
		{"no policies", nil, failed, 1, 0},
		{"a restart of an instance hears only instances",
			[]lifecycle.Policy{{On: on(lifecycle.Any), Action: lifecycle.RestartInstance}}, exhausted, 0, 0},
		{"what waits hears of success",
			[]lifecycle.Policy{{On: on(lifecycle.Any), Action: lifecycle.Complete, DelayMillis: 1}}, completed, 0,
			lifecycle.Complete},
	} {
		got, ok := lifecycle.First(c.list, c.event, c.code)
		if got.Action != c.want || ok != (c.want != 0) {
			t.Errorf("%s: got %v, %v, want %v", c.name, got.Action, ok, c.want)
		}
	}
}

func TestProblems(t *testing.T) {
	one := func(p lifecycle.Policy) []lifecycle.Policy { return []lifecycle.Policy{p} }
	for _, c := range []struct {
		list    []lifecycle.Policy
		service bool
		want    string
	}{
		{list: one(lifecycle.Policy{On: on(failed), Action: lifecycle.Abort, DelayMillis: lifecycle.DelayMillisMax})},
		{list: []lifecycle.Policy{{On: on(failed), Action: lifecycle.Abort},
			{ExitCodes: []uint32{1}, Action: lifecycle.Abort}, {On: on(lifecycle.Any), Action: lifecycle.Abort}}},
		{list: one(lifecycle.Policy{Action: lifecycle.Abort}), want: "policies[0]: must have either on or exit_codes"},
		{list: one(lifecycle.Policy{On: on(failed), ExitCodes: []uint32{1}, Action: lifecycle.Abort}),
			want: "policies[0]: must have either on or exit_codes"},
		{list: one(lifecycle.Policy{On: on(failed, failed), Action: lifecycle.Abort}),
			want: "policies[0].on: has instance_failed twice"},
		{list: one(lifecycle.Policy{On: on(failed, lifecycle.Any), Action: lifecycle.Abort}),
			want: "policies[0].on: has any beside others: any is each of them"},
		{list: one(lifecycle.Policy{On: on(6), Action: lifecycle.Abort}),
			want: "policies[0].on: must be of instance_failed, instance_evicted, task_completed, task_failed, any"},
		{list: one(lifecycle.Policy{On: on(completed), Action: lifecycle.Complete}), service: true,
			want: "policies[0].on: task_completed needs a batch job: services run until they are stopped\n" +
				"policies[0].action: complete needs a batch job: services run until they are stopped"},
		{list: one(lifecycle.Policy{On: on(exhausted), Action: lifecycle.RestartInstance}),
			want: "policies[0].action: restart_instance needs an event of an instance, task_failed is one of its task"},
		{list: one(lifecycle.Policy{On: on(completed), Action: lifecycle.Complete, DelayMillis: 1})},
		{list: one(lifecycle.Policy{ExitCodes: []uint32{0, 256, 3, 3}, Action: lifecycle.Abort}),
			want: "policies[0].exit_codes: must be of 1 to 255, is 0: only failures have one\n" +
				"policies[0].exit_codes: must be of 1 to 255, is 256: only failures have one\npolicies[0].exit_codes: has 3 twice"},
		{list: one(lifecycle.Policy{On: on(failed), DelayMillis: lifecycle.DelayMillisMax + 1}),
			want: `policies[0].action: must be one of ["restart_instance" "restart_task" "restart_job" "abort" "terminate" "complete"]` +
				"\npolicies[0].delay: must be 0 to 86400000, is 86400001"},
		{list: []lifecycle.Policy{{On: on(lifecycle.Any), Action: lifecycle.Abort},
			{On: on(failed), Action: lifecycle.Abort}},
			want: "policies[1]: comes after policies[0], which hears any event: it must be the last"},
		{list: []lifecycle.Policy{{On: on(failed), Action: lifecycle.Abort},
			{On: on(evicted, failed), Action: lifecycle.RestartJob}},
			want: "policies[1]: comes after policies[0], which hears instance_failed, too"},
		{list: []lifecycle.Policy{{ExitCodes: []uint32{3}, Action: lifecycle.Abort},
			{ExitCodes: []uint32{3}, Action: lifecycle.RestartJob}},
			want: "policies[1]: comes after policies[0], which hears exit code 3, too"},
		{list: slices.Repeat(one(lifecycle.Policy{}), lifecycle.PoliciesMax+1),
			want: "policies: must have at most 64 elements, has 65"},
	} {
		var got []string
		lifecycle.Problems(c.list, !c.service, func(field, format string, args ...any) {
			got = append(got, field+": "+fmt.Sprintf(format, args...))
		})
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%+v: got\n%s\nwant\n%s", c.list, strings.Join(got, "\n"), c.want)
		}
	}
}
