package validate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/rules"
)

type (
	job  = terms.Job
	task = terms.Task
)

// sound returns a job that the cluster takes, with something in every field.
func sound() *job {
	return &terms.Job{Name: "web", Type: terms.Stateless, Tasks: []terms.Task{{
		Name: "server", Instances: 3, Command: []string{"/bin/server", "-v"},
		Env:     []terms.EnvVar{{Name: "A", Value: "1"}, {Name: "B_2", Value: ""}},
		WorkDir: "/srv", User: "www", Resources: terms.Resources{500, 1 << 28, 1 << 30},
		Devices: []terms.DeviceRequest{{Kind: "fpga", Amount: 250},
			{Kind: "gpu", Amount: 2000, Models: []string{"A100", "H100"}}},
		Ports: []terms.PortRequest{{Name: "http", Number: 0}, {Name: "admin", Number: 8080}},
		Constraints: []constraint.Constraint{{Attribute: "zone", Operator: constraint.In, Values: []string{"a", "b"}},
			{Label: "app", Operator: constraint.Less, Values: []string{"web"}, Count: 3, Within: "rack", Soft: true,
				SoftTimeoutMillis: 1000}},
		Labels: []terms.EnvVar{{Name: "app", Value: "web"}, {Name: "tier", Value: ""}}, PerNodeMax: 2, SpreadOver: "rack",
		Placement: terms.Spread, StopGraceMillis: 5000,
		Restart: terms.Restart{AttemptsMax: 3, DelayMillis: 1000, DelayMaxMillis: 60000, ResetMillis: 600000},
	}}}
}

func TestSoundJobHasNoProblems(t *testing.T) {
	if found := Job(sound(), rules.Released); len(found) > 0 {
		t.Errorf("Job() = %v, want none", found)
	}
	bare := &terms.Job{Name: "b", Type: terms.Batch,
		Tasks: []terms.Task{{Name: "t", Command: []string{"true"}, Placement: terms.Pack}}}
	if found := Job(bare, rules.Released); len(found) > 0 {
		t.Errorf("Job() of a bare job = %v, want none", found)
	}
}

// problemCase breaks one rule of a sound job and tells what must be said.
type problemCase struct {
	path, reason string
	spoil        func(j *job, t *task)
}

func TestProblems(t *testing.T) {
	cases := slices.Concat(jobProblems(), taskProblems(), requestProblems(), hostPathProblems(), secretProblems())
	for _, c := range cases {
		j := sound()
		c.spoil(j, &j.Tasks[0])
		found := Job(j, rules.Released)
		if len(found) != 1 || found[0].Path != c.path || found[0].Reason != c.reason {
			t.Errorf("Job() = %q, want one: {%s %s}", found, c.path, c.reason)
		}
	}
}

func jobProblems() []problemCase {
	return []problemCase{
		{"job", "must not be empty", func(j *job, _ *task) { j.Name = "" }},
		{"type", `must be one of ["batch" "stateless" "stateful" "daemon"]`, func(j *job, _ *task) { j.Type = 0 }},
		{"type", `must be one of ["batch" "stateless" "stateful" "daemon"]`, func(j *job, _ *task) { j.Type = 5 }},
		{"tasks", "must have 1 to 64 tasks, has 0", func(j *job, _ *task) { j.Tasks = nil }},
		{"tasks", "must have 1 to 64 tasks, has 65", func(j *job, _ *task) { j.Tasks = make([]terms.Task, 65) }},
		{"tasks[1].name", "is also the name of tasks[0]: each task needs a name of its own",
			func(j *job, t *task) { j.Tasks = append(j.Tasks, *t) }},
		{"tasks", "must hold at most 524288 bytes of text, hold 524313: put large input into files", func(j *job, t *task) {
			*t = task{Name: "t", Placement: terms.Pack,
				Command: slices.Repeat([]string{strings.Repeat("x", terms.TextBytesMax-1)}, 8)}
			t.Command[0] += "y"
		}},
	}
}

func taskProblems() []problemCase {
	const at = "tasks[0]."
	big := strings.Repeat("x", terms.TextBytesMax+1)
	return []problemCase{
		{at + "name", "must not be empty", func(_ *job, t *task) { t.Name = "" }},
		{at + "instances", "must be 0 to 1000000, is 1000001",
			func(_ *job, t *task) { t.Instances = terms.InstancesMax + 1 }},
		{at + "command", "must name a program", func(_ *job, t *task) { t.Command = nil }},
		{at + "command", "must name a program", func(_ *job, t *task) { t.Command[0] = "" }},
		{at + "command", "command and env must have at most 1024 elements each",
			func(_ *job, t *task) { t.Env = make([]terms.EnvVar, 1025) }},
		{at + "command[1]", "must be UTF-8 without zero bytes", func(_ *job, t *task) { t.Command[1] = "a\x00" }},
		{at + "command[1]", "must be UTF-8 without zero bytes", func(_ *job, t *task) { t.Command[1] = "\xff" }},
		{at + "command[1]", "must have at most 65536 bytes, has 65537", func(_ *job, t *task) { t.Command[1] = big }},
		{at + "env.A", "must be UTF-8 without zero bytes", func(_ *job, t *task) { t.Env[0].Value = "\x00" }},
		{at + "env.a-b", `is not a name of a variable: use letters, digits and "_"`,
			func(_ *job, t *task) { t.Env = []terms.EnvVar{{Name: "a-b", Value: ""}} }},
		{at + "env.1", `is not a name of a variable: use letters, digits and "_"`,
			func(_ *job, t *task) { t.Env = []terms.EnvVar{{Name: "1", Value: ""}} }},
		{at + "env", "the name of a variable must have 1 to 252 bytes", func(_ *job, t *task) { t.Env = []terms.EnvVar{{Name: "", Value: ""}} }},
		{at + "env.STARLING_JOB", "is reserved: Starling sets the variables that begin with STARLING_",
			func(_ *job, t *task) { t.Env = []terms.EnvVar{{Name: "STARLING_JOB", Value: ""}} }},
		{at + "env.A", "must be ordered by name, each name once",
			func(_ *job, t *task) { t.Env = []terms.EnvVar{{Name: "A", Value: ""}, {Name: "A", Value: ""}} }},
		{at + "work_dir", "must be an absolute path, or absent for a folder of the instance's own",
			func(_ *job, t *task) { t.WorkDir = "srv" }},
		{at + "work_dir", "must be UTF-8 without zero bytes", func(_ *job, t *task) { t.WorkDir = "/\x00" }},
		{at + "user", "must be UTF-8 without zero bytes", func(_ *job, t *task) { t.User = "\x00" }},
		{at + "resources.cpu", "must be 0 to 1000000, is -1m", func(_ *job, t *task) { t.Resources[terms.CPU] = -1 }},
		{at + "resources.memory", "must be 0 to 1024Pi, is 1152921504606846977B",
			func(_ *job, t *task) { t.Resources[terms.Memory] = terms.BytesMax + 1 }},
		{at + "resources.disk", "must be 0 to 1024Pi, is -5B", func(_ *job, t *task) { t.Resources[terms.Disk] = -5 }},
		{at + "placement", `must be "pack", "spread" or "defragment"`, func(_ *job, t *task) { t.Placement = 0 }},
		{at + "restart.delay", "must be 0 to 24h, is 24h1ms", func(_ *job, t *task) {
			t.Restart.DelayMillis, t.Restart.DelayMaxMillis = terms.DelayMillisMax+1, terms.DelayMillisMax
		}},
		{at + "restart.delay_max", "must be 1s to 24h, is 999ms",
			func(_ *job, t *task) { t.Restart.DelayMaxMillis = 999 }},
		{at + "restart.reset_after", "must be 0 to 24h, is 24h1ms",
			func(_ *job, t *task) { t.Restart.ResetMillis = terms.DelayMillisMax + 1 }},
		{at + "keep_volumes", "must be 0 to 87600h, is 87600h1ms",
			func(_ *job, t *task) { t.KeepVolumesMillis = terms.KeepVolumesMillisMax + 1 }},
		{at + "keep_volumes", "needs volumes", func(_ *job, t *task) { t.KeepVolumesMillis = 1 }},
		{at + "volumes_limit", "must be 0 to 1024Pi, is -1B", func(_ *job, t *task) { t.VolumesBytesMax = -1 }},
		{at + "volumes_limit", "needs volumes", func(_ *job, t *task) { t.VolumesBytesMax = 1 }},
		{at + "stop_signal", `must be one of ["default" "SIGTERM" "SIGINT" "SIGQUIT" "SIGHUP" "SIGUSR1" "SIGUSR2" "SIGWINCH"]`,
			func(_ *job, t *task) { t.StopSignal = terms.StopWindowChange + 1 }},
		{at + "stop_delay", "must be 0 to 1h, is 1h1ms",
			func(_ *job, t *task) { t.StopDelayMillis = terms.GraceMillisMax + 1 }},
		{at + "stop_grace", "must be 0 to 1h, is 1h1ms",
			func(_ *job, t *task) { t.StopGraceMillis = terms.GraceMillisMax + 1 }},
	}
}

func requestProblems() []problemCase {
	const at = "tasks[0]."
	return []problemCase{
		{at + "ports", "ports and devices must have at most 64 elements each",
			func(_ *job, t *task) { t.Ports = make([]terms.PortRequest, 65) }},
		{at + "devices.", "the kind must not be empty",
			func(_ *job, t *task) { t.Devices = []terms.DeviceRequest{{Kind: "", Amount: 1}} }},
		{at + "devices.gpu", "must be a share of one device, 0.001 to 0.999, or 1 to 65536 whole devices",
			func(_ *job, t *task) { t.Devices[1].Amount = 0 }},
		{at + "devices.gpu", "must be a share of one device, 0.001 to 0.999, or 1 to 65536 whole devices",
			func(_ *job, t *task) { t.Devices[1].Amount = 1500 }},
		{at + "devices.gpu", "must be a share of one device, 0.001 to 0.999, or 1 to 65536 whole devices",
			func(_ *job, t *task) { t.Devices[1].Amount = 65537000 }},
		{at + "devices.gpu.models[0]", "must not be empty", func(_ *job, t *task) { t.Devices[1].Models[0] = "" }},
		{at + "devices.gpu.models[1]", "is there twice", func(_ *job, t *task) { t.Devices[1].Models[1] = "A100" }},
		{at + "devices.gpu.models", "must have at most 64 elements", func(_ *job, t *task) {
			t.Devices[1].Models = nil
			for i := range 65 {
				t.Devices[1].Models = append(t.Devices[1].Models, fmt.Sprintf("m%02d", i))
			}
		}},
		{at + "devices.fpga", "must be ordered by kind, each kind once", func(_ *job, t *task) {
			t.Devices = []terms.DeviceRequest{{Kind: "gpu", Amount: 1}, {Kind: "fpga", Amount: 1}}
		}},
		{at + "devices.a_b", "would set the same variable STARLING_DEVICES_A_B as a-b", func(_ *job, t *task) {
			t.Devices = []terms.DeviceRequest{{Kind: "a-b", Amount: 1}, {Kind: "a_b", Amount: 1}}
		}},
		{at + "ports[0].name", "must not be empty", func(_ *job, t *task) { t.Ports[0].Name = "" }},
		{at + "ports[1].name", "would set the same variable STARLING_PORT_HTTP as ports[0]",
			func(_ *job, t *task) { t.Ports[1].Name = "HTTP" }},
		{at + "ports[1].number", "is also the number of ports[0]", func(_ *job, t *task) { t.Ports[0].Number = 8080 }},
		{at + "constraints[0].operator", `must be one of ["=" "!=" "in" "not in" "exists" "not exists" "<" "<=" ">" ">="]`,
			func(_ *job, t *task) { t.Constraints[0].Operator = 0 }},
		{at + "constraints", "must have at most 64 elements with all that is within them, have 66", func(_ *job, t *task) {
			all := make([]constraint.Constraint, 33)
			for i := range all {
				all[i] = constraint.Constraint{Attribute: "a", Operator: constraint.Exists}
			}
			t.Constraints = []constraint.Constraint{{All: all}, {Any: all}}
		}},
		{at + "labels.", "must have a name of 1 to 252 bytes and a value of at most 1024",
			func(_ *job, t *task) { t.Labels[0].Name = "" }},
		{at + "labels.app", "must be UTF-8 without zero bytes", func(_ *job, t *task) { t.Labels[0].Value = "\xff" }},
		{at + "labels.a", "must be ordered by name, each name once", func(_ *job, t *task) { t.Labels[1].Name = "a" }},
		{at + "labels", "must have at most 64 elements", func(_ *job, t *task) { t.Labels = make([]terms.EnvVar, 65) }},
		{at + "spread_over", "must have at most 252 bytes",
			func(_ *job, t *task) { t.SpreadOver = strings.Repeat("a", 253) }},
	}
}

// TestProblemsAreAllTold checks that one fault does not hide another, in the order of the fields.
func TestProblemsAreAllTold(t *testing.T) {
	j := sound()
	j.Name, j.Type, j.Tasks[0].Instances, j.Tasks[0].User, j.Tasks[0].StopGraceMillis = "a b", 9,
		terms.InstancesMax+1, "\x00",
		terms.GraceMillisMax+1
	var paths []string
	for _, p := range Job(j, rules.Released) {
		paths = append(paths, p.Path)
	}
	if got, want := strings.Join(paths, " "),
		"job type tasks[0].instances tasks[0].user tasks[0].stop_grace"; got != want {
		t.Errorf("problems at %s, want %s", got, want)
	}
}

func secretProblems() []problemCase {
	const at, own = "tasks[0].", "must not be within %s, which every container has from its machine"
	const plain = `must be the path of a file, without "." and "..", and without a slash too many`
	container := func(t *task, paths ...string) {
		t.Container.Image, t.Container.Mounts = "web", []terms.Mount{{Path: "/memory/here"}, {Path: "/data/", Volume: "data"}}
		t.Volumes = []terms.Volume{{Name: "data"}}
		for i, path := range paths {
			t.Secrets = append(t.Secrets, terms.SecretUse{Name: fmt.Sprint("s", i), Path: path})
		}
		t.AskForNodes()
	}
	cases := []problemCase{
		{at + "secrets[0].path", `must not begin with "/" without a container: what a process reads is below the folder of its secrets`,
			func(_ *job, t *task) { t.Secrets = []terms.SecretUse{{Name: "db", Path: "/etc/db"}} }},
	}
	for path, reason := range map[string]string{"..": plain, "../a": plain, "a/../../b": plain, "/a/..": plain, "/": plain,
		".": plain, "a//b": plain, "//a": plain, "/a/": plain, "/../a": plain, "a\x00": "must be UTF-8 without zero bytes",
		"/proc/1/environ": fmt.Sprintf(own, "/proc"), "/dev": fmt.Sprintf(own, "/dev"),
		"/etc/hosts": fmt.Sprintf(own, "/etc/hosts"),
		"/sys/db":    fmt.Sprintf(own, "/sys"), "/memory": "must not be within container.mounts[0], or above it",
		"/memory/here": "must not be within container.mounts[0], or above it",
		"/data/db":     "must not be within container.mounts[1], or above it",
	} {
		cases = append(cases, problemCase{at + "secrets[0].path", reason, func(j *job, t *task) {
			j.Type, t.Disconnect.StopAfterMillis = terms.Stateful, 1000
			container(t, path)
		}})
	}
	for _, path := range []string{"/run/db", "/run/db/key", "/run"} {
		cases = append(cases, problemCase{at + "secrets[1].path", "must not be the path of secrets[0], or be above or below it",
			func(j *job, t *task) {
				j.Type, t.Disconnect.StopAfterMillis = terms.Stateful, 1000
				container(t, "/run/db", path)
			}})
	}
	const path = `must be as in "team/db": without "." and "..", and without a slash too many`
	for _, c := range []struct {
		key, problem string
		of           terms.VaultSecret
	}{
		{"path", path, terms.VaultSecret{Mount: "kv", Field: "key"}},
		{"path", path, terms.VaultSecret{Mount: "kv", Path: "/team"}},
		{"path", path, terms.VaultSecret{Mount: "kv", Path: "../sys/seal"}},
		{"path", path, terms.VaultSecret{Mount: "kv", Path: "a//b"}},
		{"mount", path, terms.VaultSecret{Mount: "kv/..", Path: "a"}},
		{"mount", "must be UTF-8 without zero bytes", terms.VaultSecret{Mount: "k\x00", Path: "a"}},
		{"role", "must have at most 512 bytes, has 513",
			terms.VaultSecret{Mount: "kv", Path: "a", Role: strings.Repeat("r", 513)}},
	} {
		cases = append(cases, problemCase{at + "secrets[0].vault." + c.key, c.problem, func(_ *job, t *task) {
			t.Secrets = []terms.SecretUse{{Name: "db", Vault: c.of}}
			t.AskForNodes()
		}})
	}
	return cases
}

// TestSecretsLieSideBySide gives paths that are none of the ways to be wrong.
func TestSecretsLieSideBySide(t *testing.T) {
	j := sound()
	j.Tasks[0].Container = terms.Container{Image: "web", Mounts: []terms.Mount{{Path: "/memory"}}}
	for i, path := range []string{"", "", "tls/key", "tls/key2", "/tls/key", "/memory/key", "/etc/hosts2", "..a"} {
		j.Tasks[0].Secrets = append(j.Tasks[0].Secrets, terms.SecretUse{Name: fmt.Sprint("s", i), Path: path})
	}
	j.Tasks[0].AskForNodes()
	if found := Job(j, rules.Released); len(found) > 0 {
		t.Errorf("Job() = %v, want none", found)
	}
}

func hostPathProblems() []problemCase {
	const at = "tasks[0]."
	return []problemCase{
		{at + "constraints", "must have that attribute host_path.data exists, because of host_paths",
			func(_ *job, t *task) { t.HostPaths = []terms.HostPath{{Name: "data"}} }},
		{at + "host_paths[1].name", "would set the same variable STARLING_HOST_PATH_A_B as host_paths[0]",
			func(_ *job, t *task) { t.HostPaths = []terms.HostPath{{Name: "a-b"}, {Name: "a_b"}}; t.AskForNodes() }},
		{at + "host_paths", "must have at most 8 elements, has 9",
			func(_ *job, t *task) { t.HostPaths = make([]terms.HostPath, 9) }},
		{at + "host_paths[0].name", "is also the name of one of the task's volumes", func(j *job, t *task) {
			j.Type, t.Disconnect.StopAfterMillis = terms.Stateful, 1000
			t.Volumes, t.HostPaths = []terms.Volume{{Name: "data"}}, []terms.HostPath{{Name: "data"}}
			t.AskForNodes()
		}},
	}
}

// TestRareDevices holds that number 17 of the rules writes amounts as job files do, and keeps slack for revocable jobs.
func TestRareDevices(t *testing.T) {
	slack, late := sound(), sound()
	slack.Tasks[0].Devices = []terms.DeviceRequest{{Kind: terms.Slack, Amount: terms.WholeDevice}}
	late.Tasks[0].StopGraceMillis = 3_600_001
	revocable := *slack
	revocable.Revocable, revocable.Preemption = true, terms.Preemptible
	for _, c := range []struct {
		job  *job
		in   rules.Number
		want string
	}{
		{slack, rules.Slack - 1, ""},
		{slack, rules.Slack,
			"tasks[0].devices.slack needs revocable: true, for it is what others were promised, who may want it back"},
		{&revocable, rules.Slack, ""},
		{late, rules.WrittenAmounts - 1, "tasks[0].stop_grace must be 0 to 3600000, is 3600001"},
		{late, rules.WrittenAmounts, "tasks[0].stop_grace must be 0 to 1h, is 1h1ms"},
	} {
		got := ""
		for _, p := range Job(c.job, c.in) {
			got += p.Path + " " + p.Reason
		}
		if got != c.want {
			t.Errorf("under rules %d: %q, want %q", c.in, got, c.want)
		}
	}
}

// TestLettersAreShown tells users the letter of a name that is not ASCII; what the fold keeps stays as it was.
func TestLettersAreShown(t *testing.T) {
	job := &terms.Job{Name: "a/é"}
	reasonOf := func(problems []terms.Problem) string { return problems[0].Path + " " + problems[0].Reason }
	if got := reasonOf(Submission(job)); !strings.HasSuffix(got, "'é' is not allowed at position 1") {
		t.Errorf("a user is told %q", got)
	}
	if got := reasonOf(Job(job, rules.Released)); !strings.HasSuffix(got, "'Ã' is not allowed at position 1") {
		t.Errorf("the fold says %q", got)
	}
}
