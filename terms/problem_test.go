package terms

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"starling/terms/constraint"
)

// sound returns a job that the cluster takes, with something in every field.
func sound() *Job {
	return &Job{Name: "web", Type: Stateless, Tasks: []Task{{
		Name: "server", Instances: 3, Command: []string{"/bin/server", "-v"}, Env: []EnvVar{{"A", "1"}, {"B_2", ""}},
		WorkDir: "/srv", User: "www", Resources: Resources{500, 1 << 28, 1 << 30},
		Devices: []DeviceRequest{{Kind: "fpga", Amount: 250}, {Kind: "gpu", Amount: 2000, Models: []string{"A100", "H100"}}},
		Ports:   []PortRequest{{"http", 0}, {"admin", 8080}},
		Constraints: []constraint.Constraint{{Attribute: "zone", Operator: constraint.In, Values: []string{"a", "b"}},
			{Label: "app", Operator: constraint.Less, Values: []string{"web"}, Count: 3, Within: "rack", Soft: true,
				PatienceMillis: 1000}},
		Labels: []EnvVar{{"app", "web"}, {"tier", ""}}, PerNodeMax: 2, SpreadOver: "rack",
		Placement: Spread, Restart: Restart{3, 1000, 60000, 600000}, StopGraceMillis: 5000,
	}}}
}

func TestSoundJobHasNoProblems(t *testing.T) {
	if found := sound().Problems(); len(found) > 0 {
		t.Errorf("Problems() = %v, want none", found)
	}
	bare := &Job{Name: "b", Type: Batch, Tasks: []Task{{Name: "t", Command: []string{"true"}, Placement: Pack}}}
	if found := bare.Problems(); len(found) > 0 {
		t.Errorf("Problems() of a bare job = %v, want none", found)
	}
}

// problemCase breaks one rule of a sound job and tells what must be said.
type problemCase struct {
	path, reason string
	spoil        func(j *Job, t *Task)
}

func TestProblems(t *testing.T) {
	cases := append(jobProblems(), append(taskProblems(), requestProblems()...)...)
	for _, c := range cases {
		j := sound()
		c.spoil(j, &j.Tasks[0])
		found := j.Problems()
		if len(found) != 1 || found[0].Path != c.path || found[0].Reason != c.reason {
			t.Errorf("Problems() = %q, want one: {%s %s}", found, c.path, c.reason)
		}
	}
}

func jobProblems() []problemCase {
	return []problemCase{
		{"job", "must not be empty", func(j *Job, _ *Task) { j.Name = "" }},
		{"type", `must be one of ["batch" "stateless" "stateful" "daemon"]`, func(j *Job, _ *Task) { j.Type = 0 }},
		{"type", `must be one of ["batch" "stateless" "stateful" "daemon"]`, func(j *Job, _ *Task) { j.Type = 5 }},
		{"tasks", "must have 1 to 64 tasks, has 0", func(j *Job, _ *Task) { j.Tasks = nil }},
		{"tasks", "must have 1 to 64 tasks, has 65", func(j *Job, _ *Task) { j.Tasks = make([]Task, 65) }},
		{"tasks[1].name", "is also the name of tasks[0]: each task needs a name of its own",
			func(j *Job, t *Task) { j.Tasks = append(j.Tasks, *t) }},
		{"tasks", "must hold at most 524288 bytes of text, hold 524313: put large input into files", func(j *Job, t *Task) {
			*t = Task{Name: "t", Placement: Pack, Command: slices.Repeat([]string{strings.Repeat("x", TextBytesMax-1)}, 8)}
			t.Command[0] += "y"
		}},
	}
}

func taskProblems() []problemCase {
	const at = "tasks[0]."
	big := strings.Repeat("x", TextBytesMax+1)
	return []problemCase{
		{at + "name", "must not be empty", func(_ *Job, t *Task) { t.Name = "" }},
		{at + "instances", "must be 0 to 1000000, is 1000001", func(_ *Job, t *Task) { t.Instances = InstancesMax + 1 }},
		{at + "command", "must name a program", func(_ *Job, t *Task) { t.Command = nil }},
		{at + "command", "must name a program", func(_ *Job, t *Task) { t.Command[0] = "" }},
		{at + "command", "command and env must have at most 1024 elements each",
			func(_ *Job, t *Task) { t.Env = make([]EnvVar, 1025) }},
		{at + "command[1]", "must be UTF-8 without zero bytes", func(_ *Job, t *Task) { t.Command[1] = "a\x00" }},
		{at + "command[1]", "must be UTF-8 without zero bytes", func(_ *Job, t *Task) { t.Command[1] = "\xff" }},
		{at + "command[1]", "must have at most 65536 bytes, has 65537", func(_ *Job, t *Task) { t.Command[1] = big }},
		{at + "env.A", "must be UTF-8 without zero bytes", func(_ *Job, t *Task) { t.Env[0].Value = "\x00" }},
		{at + "env.a-b", `is no name of a variable: use letters, digits and "_"`,
			func(_ *Job, t *Task) { t.Env = []EnvVar{{"a-b", ""}} }},
		{at + "env.1", `is no name of a variable: use letters, digits and "_"`,
			func(_ *Job, t *Task) { t.Env = []EnvVar{{"1", ""}} }},
		{at + "env", "the name of a variable must have 1 to 252 bytes", func(_ *Job, t *Task) { t.Env = []EnvVar{{"", ""}} }},
		{at + "env.STARLING_JOB", "is reserved: Starling sets the variables that begin with STARLING_",
			func(_ *Job, t *Task) { t.Env = []EnvVar{{"STARLING_JOB", ""}} }},
		{at + "env.A", "must be ordered by name, each name once",
			func(_ *Job, t *Task) { t.Env = []EnvVar{{"A", ""}, {"A", ""}} }},
		{at + "work_dir", "must be an absolute path, or absent for a folder of the instance's own",
			func(_ *Job, t *Task) { t.WorkDir = "srv" }},
		{at + "work_dir", "must be UTF-8 without zero bytes", func(_ *Job, t *Task) { t.WorkDir = "/\x00" }},
		{at + "user", "must be UTF-8 without zero bytes", func(_ *Job, t *Task) { t.User = "\x00" }},
		{at + "resources.cpu", "must be 0 to 1000000000, is -1", func(_ *Job, t *Task) { t.Resources[CPU] = -1 }},
		{at + "resources.memory", "must be 0 to 1152921504606846976, is 1152921504606846977",
			func(_ *Job, t *Task) { t.Resources[Memory] = BytesMax + 1 }},
		{at + "resources.disk", "must be 0 to 1152921504606846976, is -5", func(_ *Job, t *Task) { t.Resources[Disk] = -5 }},
		{at + "placement", `must be "pack", "spread" or "defragment"`, func(_ *Job, t *Task) { t.Placement = 0 }},
		{at + "restart.delay", "must be 0 to 86400000, is 86400001", func(_ *Job, t *Task) {
			t.Restart.DelayMillis, t.Restart.DelayMaxMillis = DelayMillisMax+1, DelayMillisMax
		}},
		{at + "restart.delay_max", "must be 1000 to 86400000, is 999",
			func(_ *Job, t *Task) { t.Restart.DelayMaxMillis = 999 }},
		{at + "restart.reset_after", "must be 0 to 86400000, is 86400001",
			func(_ *Job, t *Task) { t.Restart.ResetMillis = DelayMillisMax + 1 }},
		{at + "stop_delay", "must be 0 to 3600000, is 3600001",
			func(_ *Job, t *Task) { t.StopDelayMillis = GraceMillisMax + 1 }},
		{at + "stop_grace", "must be 0 to 3600000, is 3600001",
			func(_ *Job, t *Task) { t.StopGraceMillis = GraceMillisMax + 1 }},
	}
}

func requestProblems() []problemCase {
	const at = "tasks[0]."
	return []problemCase{
		{at + "ports", "ports and devices must have at most 64 elements each",
			func(_ *Job, t *Task) { t.Ports = make([]PortRequest, 65) }},
		{at + "devices.", "the kind must not be empty",
			func(_ *Job, t *Task) { t.Devices = []DeviceRequest{{Kind: "", Amount: 1}} }},
		{at + "devices.gpu", "must be a share of one device, 0.001 to 0.999, or 1 to 65536 whole devices",
			func(_ *Job, t *Task) { t.Devices[1].Amount = 0 }},
		{at + "devices.gpu", "must be a share of one device, 0.001 to 0.999, or 1 to 65536 whole devices",
			func(_ *Job, t *Task) { t.Devices[1].Amount = 1500 }},
		{at + "devices.gpu", "must be a share of one device, 0.001 to 0.999, or 1 to 65536 whole devices",
			func(_ *Job, t *Task) { t.Devices[1].Amount = 65537000 }},
		{at + "devices.gpu.models[0]", "must not be empty", func(_ *Job, t *Task) { t.Devices[1].Models[0] = "" }},
		{at + "devices.gpu.models[1]", "is there twice", func(_ *Job, t *Task) { t.Devices[1].Models[1] = "A100" }},
		{at + "devices.gpu.models", "must have at most 64 elements", func(_ *Job, t *Task) {
			t.Devices[1].Models = nil
			for i := range 65 {
				t.Devices[1].Models = append(t.Devices[1].Models, fmt.Sprintf("m%02d", i))
			}
		}},
		{at + "devices.fpga", "must be ordered by kind, each kind once", func(_ *Job, t *Task) {
			t.Devices = []DeviceRequest{{Kind: "gpu", Amount: 1}, {Kind: "fpga", Amount: 1}}
		}},
		{at + "devices.a_b", "would set the same variable STARLING_DEVICES_A_B as a-b", func(_ *Job, t *Task) {
			t.Devices = []DeviceRequest{{Kind: "a-b", Amount: 1}, {Kind: "a_b", Amount: 1}}
		}},
		{at + "ports[0].name", "must not be empty", func(_ *Job, t *Task) { t.Ports[0].Name = "" }},
		{at + "ports[1].name", "would set the same variable STARLING_PORT_HTTP as ports[0]",
			func(_ *Job, t *Task) { t.Ports[1].Name = "HTTP" }},
		{at + "ports[1].number", "is also the number of ports[0]", func(_ *Job, t *Task) { t.Ports[0].Number = 8080 }},
		{at + "constraints[0].operator", `must be one of ["=" "!=" "in" "not in" "exists" "not exists" "<" "<=" ">" ">="]`,
			func(_ *Job, t *Task) { t.Constraints[0].Operator = 0 }},
		{at + "constraints", "must have at most 64 elements with all that is within them, have 66", func(_ *Job, t *Task) {
			all := make([]constraint.Constraint, 33)
			for i := range all {
				all[i] = constraint.Constraint{Attribute: "a", Operator: constraint.Exists}
			}
			t.Constraints = []constraint.Constraint{{All: all}, {Any: all}}
		}},
		{at + "labels.", "must have a name of 1 to 252 bytes and a value of at most 1024",
			func(_ *Job, t *Task) { t.Labels[0].Name = "" }},
		{at + "labels.app", "must be UTF-8 without zero bytes", func(_ *Job, t *Task) { t.Labels[0].Value = "\xff" }},
		{at + "labels.a", "must be ordered by name, each name once", func(_ *Job, t *Task) { t.Labels[1].Name = "a" }},
		{at + "labels", "must have at most 64 elements", func(_ *Job, t *Task) { t.Labels = make([]EnvVar, 65) }},
		{at + "spread_over", "must have at most 252 bytes",
			func(_ *Job, t *Task) { t.SpreadOver = strings.Repeat("a", 253) }},
	}
}

// TestProblemsAreAllTold checks that one fault does not hide another, in the order of the fields.
func TestProblemsAreAllTold(t *testing.T) {
	j := sound()
	j.Name, j.Type, j.Tasks[0].Instances, j.Tasks[0].User, j.Tasks[0].StopGraceMillis = "a b", 9, InstancesMax+1, "\x00",
		GraceMillisMax+1
	var paths []string
	for _, p := range j.Problems() {
		paths = append(paths, p.Path)
	}
	if got, want := strings.Join(paths, " "),
		"job type tasks[0].instances tasks[0].user tasks[0].stop_grace"; got != want {
		t.Errorf("problems at %s, want %s", got, want)
	}
}
