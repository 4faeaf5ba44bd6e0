package jobspec

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"starling/plugin"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/lifecycle"
	"starling/terms/rules"
	"starling/validate"
)

// Format writes a specification as a document of a job file, from which Parse reads the same specification. The
// specification must have no Problems.
func Format(spec *terms.Job) []byte {
	root := jobForm().write(spec)
	compact(root)
	data, err := yaml.Dump(root, yaml.WithLineWidth(-1))
	if err != nil {
		panic("jobspec: a job cannot be written: " + err.Error()) // it is made of texts and numbers
	}
	return data
}

// TestFormatIsReadBack draws jobs and wants them back from what Format writes.
func TestFormatIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := jobs().Draw(t, "job")
		data := Format(&spec)
		documents, err := Parse("job.yaml", data)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if len(documents) != 1 || !documents[0].Spec.Equal(&spec) {
			t.Fatalf("got %+v, want %+v from\n%s", documents, spec, data)
		}
		if again := Format(&documents[0].Spec); !bytes.Equal(again, data) {
			t.Fatalf("got %s, want %s", again, data)
		}
	})
}

// jobs draws jobs that the cluster takes, with texts of all kinds.
func jobs() *rapid.Generator[terms.Job] {
	return rapid.Custom(func(t *rapid.T) terms.Job {
		pool := strings.Join(rapid.SliceOfN(namesDrawn(), 0, 3).Draw(t, "pool"), "/")
		spec := terms.Job{
			Name: terms.NewJobName(terms.PoolPath(pool), namesDrawn().Draw(t, "name")),
			Type: terms.JobType(rapid.IntRange(1, 4).Draw(t, "type")),
		}
		sharing(t, &spec)
		spec.Update = update(t, spec.Type)
		for _, name := range rapid.SliceOfNDistinct(namesDrawn(), 1, 3, rapid.ID).Draw(t, "tasks") {
			spec.Tasks = append(spec.Tasks, task(t, terms.TaskName(name)))
			policies(t, &spec.Tasks[len(spec.Tasks)-1], spec.Type)
			bounds(t, &spec.Tasks[len(spec.Tasks)-1], spec.Type)
			contained(t, &spec.Tasks[len(spec.Tasks)-1])
		}
		plugins(t, &spec)
		lifecycles(t, &spec)
		schedulers(t, &spec)
		orders(t, &spec)
		return spec
	}).Filter(func(spec terms.Job) bool { return len(validate.Job(&spec, rules.Released)) == 0 })
}

// orders draws what such a job and its tasks come after.
func orders(t *rapid.T, spec *terms.Job) {
	if spec.Type == terms.Daemon {
		return
	}
	for _, name := range sorted(rapid.SliceOfNDistinct(namesDrawn(), 0, 2, rapid.ID).Draw(t, "after")) {
		spec.After = append(spec.After, terms.JobName(name))
	}
	if spec.Type == terms.Batch && !spec.HasGang() && rapid.Bool().Draw(t, "in order") {
		for i := range spec.Tasks[1:] {
			spec.Tasks[i+1].After = []terms.TaskName{spec.Tasks[i].Name}
		}
	}
}

// sharing draws what such a job may say about its pool.
func sharing(t *rapid.T, spec *terms.Job) {
	spec.Priority = rapid.Uint32Range(0, terms.PriorityMax).Draw(t, "priority")
	if spec.Type == terms.Daemon {
		return
	}
	spec.MinAvailable = rapid.SampledFrom([]uint32{0, 0, 1, 5, terms.GangMax}).Draw(t, "gang")
	spec.Controller = rapid.Bool().Draw(t, "controller")
	spec.Preemption = rapid.SampledFrom([]terms.Preemption{terms.PreemptionByType, terms.Preemptible,
		terms.NonPreemptible}).Draw(t, "preemptible")
	spec.Revocable = !spec.NonPreemptible() && rapid.Bool().Draw(t, "revocable")
	spec.KillOnPreempt = !spec.NonPreemptible() && spec.Type == terms.Batch && rapid.Bool().Draw(t, "kill_on_preempt")
}

// schedulers draws how such a job divides virtual peers.
func schedulers(t *rapid.T, spec *terms.Job) {
	spec.TaskScheduler = rapid.SampledFrom([]terms.TaskScheduler{terms.NoScheduler, terms.TaskGreedy,
		terms.TaskPercentage}).Draw(t, "task_scheduler")
	if spec.Shares() {
		spec.Percent = rapid.Uint32Range(0, 100).Draw(t, "percent")
		spec.OnVirtualPeers()
	}
	if spec.TaskScheduler == terms.TaskPercentage {
		spec.Tasks[0].Percent = rapid.Uint32Range(0, 100).Draw(t, "percent of a task")
	}
}

// lifecycles draws what becomes of such a job when something happens to it.
func lifecycles(t *rapid.T, spec *terms.Job) {
	spec.KeepMillis = rapid.SampledFrom([]uint32{0, 1, 3_600_000}).Draw(t, "keep")
	budget := rapid.SampledFrom([]uint32{0, 3, 4, terms.RestartsUnlimited})
	spec.MaxRestarts = budget.Draw(t, "max_restarts")
	for i := range spec.Tasks {
		spec.Tasks[i].MaxRestarts = budget.Draw(t, "max_restarts of a task")
	}
	all := rapid.SampledFrom([][]lifecycle.Policy{
		nil, {{On: []lifecycle.Event{lifecycle.Any}, Action: lifecycle.RestartJob}},
		{{ExitCodes: []uint32{3}, Action: lifecycle.RestartInstance, DelayMillis: 5},
			{On: []lifecycle.Event{lifecycle.InstanceEvicted}, Action: lifecycle.Abort}},
		{{ExitCodes: []uint32{1, 255}, Action: lifecycle.Terminate},
			{On: []lifecycle.Event{lifecycle.InstanceFailed, lifecycle.TaskFailed}, Action: lifecycle.RestartTask}},
	})
	if spec.Type != terms.Daemon {
		spec.Policies = all.Draw(t, "policies")
		spec.Tasks[0].Policies = all.Draw(t, "policies of a task")
	}
	if spec.Type == terms.Batch {
		spec.MinSuccess = rapid.Uint32Range(0, 2).Draw(t, "min_success")
	}
}

// plugins draws what a small job asks of plugins.
func plugins(t *rapid.T, spec *terms.Job) {
	for i := range spec.Tasks {
		if spec.Tasks[i].Instances > plugin.InstancesMax/3 {
			return
		}
		for k := range i {
			if terms.VariableName(string(spec.Tasks[k].Name)) == terms.VariableName(string(spec.Tasks[i].Name)) {
				return // plugins refuse tasks that would set the same variable
			}
		}
	}
	spec.Plugins = rapid.SampledFrom([][]terms.PluginRequest{
		nil, {{Name: "env"}}, {{Name: "env"}, {Name: "svc", Arguments: []terms.EnvVar{{Name: "hosts_env", Value: "false"}}}},
		{{Name: "pytorch", Arguments: []terms.EnvVar{{Name: "master", Value: string(spec.Tasks[0].Name)},
			{Name: "port", Value: "1"}}}},
	}).Draw(t, "plugins")
	if spec.Plugins != nil {
		spec.Tasks[0].OnMembersChange = terms.Signal(rapid.IntRange(0, 3).Draw(t, "on_members_change"))
	}
}

// bounds draws how many instances of a task may run, and how long.
func bounds(t *rapid.T, spec *terms.Task, kind terms.JobType) {
	if kind == terms.Batch {
		spec.MaxRunning = rapid.Uint32Range(0, 3).Draw(t, "max_running")
		spec.MaxRunMillis = rapid.Uint32().Draw(t, "max_run_time")
	}
	if kind != terms.Daemon {
		spec.MinAvailable = min(spec.Instances, rapid.Uint32Range(0, 2).Draw(t, "min_available"))
	}
}

func task(t *rapid.T, name terms.TaskName) terms.Task {
	spec := terms.Task{
		Name: name, Instances: rapid.Uint32Range(0, terms.InstancesMax).Draw(t, "instances"),
		Command: rapid.SliceOfN(texts(), 0, 3).Draw(t, "command"), User: texts().Draw(t, "user"),
		Placement: terms.Placement(rapid.IntRange(1, 2).Draw(t, "placement")),
		Resources: terms.Resources{rapid.Int64Range(1, terms.CPUMillicoresMax).Draw(t, "cpu"),
			rapid.Int64Range(1<<20, terms.BytesMax).Draw(t, "memory"), rapid.Int64Range(0, 1<<20).Draw(t, "disk") << 10},
		DiskBytesMax:    rapid.Int64Range(0, 1<<20).Draw(t, "disk_limit") << 10,
		StopDelayMillis: rapid.Uint32Range(0, terms.GraceMillisMax).Draw(t, "before"),
		StopSignal:      terms.StopSignal(rapid.IntRange(0, int(terms.StopWindowChange)).Draw(t, "signal")),
		StopGraceMillis: rapid.Uint32Range(0, terms.GraceMillisMax).Draw(t, "grace"),
		Restart: terms.Restart{
			AttemptsMax:    rapid.OneOf(rapid.Just(uint32(terms.RestartsUnlimited)), rapid.Uint32()).Draw(t, "attempts"),
			DelayMillis:    rapid.Uint32Range(0, 5000).Draw(t, "delay"),
			DelayMaxMillis: rapid.Uint32Range(5000, terms.DelayMillisMax).Draw(t, "most"),
			ResetMillis:    rapid.Uint32Range(0, terms.DelayMillisMax).Draw(t, "reset"),
		},
	}
	if rapid.Bool().Draw(t, "shell") {
		spec.Command = []string{"/bin/sh", "-c", texts().Draw(t, "script")}
	}
	spec.Command = append([]string{"/p" + texts().Draw(t, "program")},
		spec.Command...)[rapid.IntRange(0, 1).Draw(t, "from"):]
	if rapid.Bool().Draw(t, "folder") {
		spec.WorkDir = "/" + texts().Draw(t, "work_dir")
	}
	for _, name := range sorted(rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Z_][A-Z0-9_]{0,8}`), 0, 3,
		rapid.ID).Draw(t, "env")) {
		spec.Env = append(spec.Env, terms.EnvVar{Name: name, Value: texts().Draw(t, "value")})
	}
	for _, kind := range sorted(rapid.SliceOfNDistinct(namesDrawn(), 0, 2, rapid.ID).Draw(t, "devices")) {
		amount := rapid.OneOf(rapid.Uint32Range(1, 999),
			rapid.Map(rapid.Uint32Range(1, 1<<16), func(n uint32) uint32 { return n * 1000 })).Draw(t, "amount")
		spec.Devices = append(spec.Devices, terms.DeviceRequest{Kind: kind, Amount: terms.Millidevices(amount),
			Models: rapid.SliceOfNDistinct(namesDrawn(), 0, 2, rapid.ID).Draw(t, "models")})
	}
	for _, name := range rapid.SliceOfNDistinct(namesDrawn(), 0, 3, rapid.ID).Draw(t, "ports") {
		spec.Ports = append(spec.Ports, terms.PortRequest{Name: name, Number: rapid.Uint16().Draw(t, "port")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "constraints") {
		spec.Constraints = append(spec.Constraints, constraintDrawn(t, constraint.DepthMax))
	}
	for _, name := range sorted(rapid.SliceOfNDistinct(namesDrawn(), 0, 2, rapid.ID).Draw(t, "labels")) {
		spec.Labels = append(spec.Labels, terms.EnvVar{Name: name, Value: texts().Draw(t, "value")})
	}
	spec.PerNodeMax = rapid.Uint32Range(0, 3).Draw(t, "per machine")
	spec.SpreadOver = texts().Draw(t, "spread over")
	return spec
}

func update(t *rapid.T, kind terms.JobType) terms.UpdatePolicy {
	healthy := rapid.Uint32Range(0, 1000).Draw(t, "min_healthy")
	u := terms.UpdatePolicy{
		BatchSize: rapid.Uint32Range(0, 3).Draw(t, "batch_size"), AutoPromote: rapid.Bool().Draw(t, "auto_promote"),
		MinHealthyMillis:       healthy,
		HealthyDeadlineMillis:  rapid.SampledFrom([]uint32{0, healthy + 1, 2000}).Draw(t, "healthy_deadline"),
		ProgressDeadlineMillis: rapid.SampledFrom([]uint32{0, 2001, terms.DelayMillisMax}).Draw(t, "progress_deadline"),
		AttemptsMax:            rapid.SampledFrom([]uint32{0, 1, terms.RestartsUnlimited}).Draw(t, "update attempts"),
		FailuresMax:            rapid.SampledFrom([]uint32{0, 1, terms.RestartsUnlimited}).Draw(t, "failures"),
		Rollback:               rapid.Bool().Draw(t, "rollback"), StartPaused: rapid.Bool().Draw(t, "start_paused"),
		SameNode: rapid.Bool().Draw(t, "same_machine"),
	}
	if kind == terms.Stateless {
		u.Canaries = rapid.Uint32Range(0, 2).Draw(t, "canaries")
	}
	return u
}

// contained draws what the task runs in.
func contained(t *rapid.T, spec *terms.Task) {
	if !rapid.Bool().Draw(t, "container") {
		return
	}
	c := &spec.Container
	c.Image = rapid.SampledFrom([]string{"web", "registry.example:5000/team/web:1.2"}).Draw(t, "image")
	c.PullSecret = rapid.SampledFrom([]string{"", "registry"}).Draw(t, "pull_secret")
	c.Arguments = rapid.SliceOfN(texts(), 0, 2).Draw(t, "args")
	c.ReadOnly = rapid.Bool().Draw(t, "read_only")
	c.Capabilities = rapid.SampledFrom([][]string{nil, {"NET_ADMIN"}, {"SYS_TIME", "KILL"}}).Draw(t, "capabilities")
	if rapid.Bool().Draw(t, "memory") {
		c.Mounts = append(c.Mounts, terms.Mount{Path: "/tmp/" + texts().Draw(t, "path")})
	}
	for i, v := range spec.Volumes {
		c.Mounts = append(c.Mounts, terms.Mount{Path: "/volume" + strconv.Itoa(i), Volume: v.Name,
			ReadOnly: rapid.Bool().Draw(t, "mount")})
	}
	if rapid.Bool().Draw(t, "image's") {
		spec.Command = nil
	}
	spec.AskForNodes()
}

// policies draws what a task of such a job may say about failures, health and what it keeps.
func policies(t *rapid.T, spec *terms.Task, kind terms.JobType) {
	if kind == terms.Daemon {
		spec.Instances = 1
	} else {
		spec.Reschedule.AttemptsMax = rapid.SampledFrom([]uint32{0, 2, terms.RestartsUnlimited}).Draw(t, "reschedule")
	}
	spec.Reschedule.IntervalMillis = rapid.Uint32Range(1, 7*terms.DelayMillisMax).Draw(t, "interval")
	spec.Reschedule.DelayMillis, spec.Reschedule.DelayMaxMillis = 10, rapid.Uint32Range(10, 20).Draw(t, "reschedule max")
	spec.Reschedule.Growth = terms.Growth(rapid.IntRange(0, 2).Draw(t, "growth"))
	switch lost := rapid.Bool().Draw(t, "lost"); {
	case kind == terms.Stateful:
		spec.Disconnect.StopAfterMillis = rapid.Uint32Range(1, 5000).Draw(t, "stop_after")
	case lost:
		spec.Disconnect.LostAfterMillis = rapid.Uint32Range(0, 5000).Draw(t, "lost_after")
	default:
		spec.Disconnect.StopAfterMillis = rapid.Uint32Range(0, 5000).Draw(t, "stop_after")
	}
	spec.Disconnect.Wait = rapid.Bool().Draw(t, "wait")
	spec.Disconnect.Keep = terms.Survivor(rapid.IntRange(0, 2).Draw(t, "keep"))
	if kind == terms.Stateful {
		for _, name := range rapid.SliceOfNDistinct(namesDrawn(), 0, 2, rapid.ID).Draw(t, "volumes") {
			spec.Volumes = append(spec.Volumes, terms.Volume{Name: name})
		}
	}
	for _, name := range rapid.SliceOfNDistinct(namesDrawn(), 0, 2, terms.VariableName).Draw(t, "host_paths") {
		if !slices.Contains(spec.Volumes, terms.Volume{Name: name}) {
			spec.HostPaths = append(spec.HostPaths, terms.HostPath{Name: name, ReadOnly: rapid.Bool().Draw(t, "read_only")})
		}
	}
	for _, name := range rapid.SliceOfNDistinct(namesDrawn(), 0, 2, terms.VariableName).Draw(t, "secrets") {
		path := rapid.SampledFrom([]string{"", "below/" + name}).Draw(t, "secret's path")
		if path != "" && spec.Container.Image != "" {
			path = "/secrets/" + path
		}
		spec.Secrets = append(spec.Secrets, terms.SecretUse{Name: name, Path: path,
			OnChange: terms.Signal(rapid.IntRange(0, int(terms.SignalUser2)).Draw(t, "on_change")),
			Version:  rapid.SampledFrom([]uint32{0, 3}).Draw(t, "secret's version"),
			Vault: rapid.SampledFrom([]terms.VaultSecret{{}, {Mount: "secret", Path: "team/" + name},
				{Mount: "kv/2", Path: name, Field: "key", Role: "web"}}).Draw(t, "vault")})
	}
	for _, name := range rapid.SliceOfNDistinct(namesDrawn(), 0, 2, terms.VariableName).Draw(t, "id_tokens") {
		spec.IDTokens = append(spec.IDTokens, terms.IDToken{Name: name, Audience: "for " + name,
			LifeMillis: rapid.Uint32Range(terms.IDTokenLifeLeast, terms.IDTokenLifeMax).Draw(t, "life")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "checks") {
		spec.Checks = append(spec.Checks, check(t, spec.Ports))
	}
}

func check(t *rapid.T, ports []terms.PortRequest) terms.Check {
	c := terms.Check{
		Kind: terms.CheckCommand, IntervalMillis: rapid.Uint32Range(100, 5000).Draw(t, "check interval"),
		TimeoutMillis: rapid.Uint32Range(1, 5000).Draw(t, "timeout"),
		FailuresMax:   rapid.Uint32Range(0, 3).Draw(t, "check failures"),
	}
	if len(ports) > 0 {
		c.Kind = terms.CheckKind(rapid.IntRange(1, 3).Draw(t, "kind"))
		c.Port = rapid.SampledFrom(ports).Draw(t, "check port").Name
	}
	switch c.Kind {
	case terms.CheckHTTP:
		c.Path = "/" + texts().Draw(t, "path")
	case terms.CheckCommand:
		c.Command = []string{"p", texts().Draw(t, "argument")}
	}
	return c
}

func constraintDrawn(t *rapid.T, depth int) constraint.Constraint {
	some := func(n int) []constraint.Constraint {
		parts := make([]constraint.Constraint, n)
		for i := range parts {
			parts[i] = constraintDrawn(t, depth-1)
		}
		return parts
	}
	c := constraint.Constraint{}
	switch subject := rapid.IntRange(0, 5).Draw(t, "subject"); {
	case subject == 0 && depth > 3:
		c.All = some(2)
	case subject == 1 && depth > 3:
		c.Any = some(1)
	case subject == 2:
		c.Label, c.Within = "l"+texts().Draw(t, "label"), texts().Draw(t, "within")
		c.Operator, c.Count = constraint.Operator(rapid.SampledFrom([]int{1, 2, 7, 8, 9, 10}).Draw(t, "operator")),
			rapid.Uint32().Draw(t, "count")
		c.Values = []string{texts().Draw(t, "value")}
	default:
		c.Attribute, c.Operator = "a"+texts().Draw(t, "attribute"),
			constraint.Operator(rapid.IntRange(1, 10).Draw(t, "operator"))
		c.Values = valuesDrawn(t, c.Operator)
	}
	if depth == constraint.DepthMax && rapid.Bool().Draw(t, "soft") {
		c.Soft, c.SoftTimeoutMillis = true, rapid.Uint32Range(0, constraint.SoftTimeoutMillisMax).Draw(t, "timeout")
	}
	return c
}

func valuesDrawn(t *rapid.T, operator constraint.Operator) []string {
	switch operator {
	case constraint.Exists, constraint.NotExists:
		return nil
	case constraint.In, constraint.NotIn:
		return rapid.SliceOfN(texts(), 1, 3).Draw(t, "values")
	case constraint.Equal, constraint.NotEqual:
		return []string{texts().Draw(t, "value")}
	}
	return []string{rapid.SampledFrom([]string{"0", "-3", "+4", "017"}).Draw(t, "number")}
}

func namesDrawn() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_-]{0,10}`),
		rapid.SampledFrom([]string{"null", "true", "017", "no", "1e3", "main"}))
}

// texts draws texts, many of which YAML could take for something else.
func texts() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", " ", "null", "~", "true", "no", "017", "1_000", "1e3", "0x1f", ".inf", "2026-03-01", "=", "<<", "!=", ">", "|",
		"@x", "`", "%", "- a",
		"a: b", "a #b", "#", "*a", "&a", "!a", "{", "[", "'", `"`, `\`, "a\nb", "a\nb\n", "\n", "\n\n a", "  a\nb", "a\n\n",
		"\ta", "a\t", "\r\n", "é😀",
		"\u0085", "\u2028", "\ufeff", "\x7f", "\x01", "---", "...", "? a", ": a", ",", "a ", " a",
		strings.Repeat("long ", 60), "\u00a0",
	})).Filter(func(s string) bool { return !strings.Contains(s, "\x00") })
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
