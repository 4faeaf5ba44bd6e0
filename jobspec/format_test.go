package jobspec

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"starling/cluster"
)

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
func jobs() *rapid.Generator[cluster.JobSpec] {
	return rapid.Custom(func(t *rapid.T) cluster.JobSpec {
		spec := cluster.JobSpec{Name: cluster.JobName(namesDrawn().Draw(t, "name")), Type: cluster.JobType(rapid.IntRange(1, 2).Draw(t, "type"))}
		for _, name := range rapid.SliceOfNDistinct(namesDrawn(), 1, 3, rapid.ID).Draw(t, "tasks") {
			spec.Tasks = append(spec.Tasks, task(t, cluster.TaskName(name)))
		}
		return spec
	}).Filter(func(spec cluster.JobSpec) bool { return len(spec.Problems()) == 0 })
}

func task(t *rapid.T, name cluster.TaskName) cluster.TaskSpec {
	spec := cluster.TaskSpec{
		Name: name, Instances: rapid.Uint32Range(0, cluster.InstancesMax).Draw(t, "instances"),
		Command: rapid.SliceOfN(texts(), 0, 3).Draw(t, "command"), User: texts().Draw(t, "user"),
		Placement: cluster.Placement(rapid.IntRange(1, 2).Draw(t, "placement")),
		Resources: cluster.Resources{rapid.Int64Range(0, cluster.CPUMillicoresMax).Draw(t, "cpu"),
			rapid.Int64Range(0, cluster.BytesMax).Draw(t, "memory"), rapid.Int64Range(0, 1<<20).Draw(t, "disk") << 10},
		StopGraceMillis: rapid.Uint32Range(0, cluster.GraceMillisMax).Draw(t, "grace"),
		Restart: cluster.Restart{
			AttemptsMax: rapid.OneOf(rapid.Just(uint32(cluster.RestartsUnlimited)), rapid.Uint32()).Draw(t, "attempts"),
			DelayMillis: rapid.Uint32Range(0, 5000).Draw(t, "delay"), DelayMaxMillis: rapid.Uint32Range(5000, cluster.DelayMillisMax).Draw(t, "most"),
			ResetMillis: rapid.Uint32Range(0, cluster.DelayMillisMax).Draw(t, "reset"),
		},
	}
	if rapid.Bool().Draw(t, "shell") {
		spec.Command = []string{"/bin/sh", "-c", texts().Draw(t, "script")}
	}
	spec.Command = append([]string{"/p" + texts().Draw(t, "program")}, spec.Command...)[rapid.IntRange(0, 1).Draw(t, "from"):]
	if rapid.Bool().Draw(t, "folder") {
		spec.WorkDir = "/" + texts().Draw(t, "work_dir")
	}
	for _, name := range sorted(rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Z_][A-Z0-9_]{0,8}`), 0, 3, rapid.ID).Draw(t, "env")) {
		spec.Env = append(spec.Env, cluster.EnvVar{Name: name, Value: texts().Draw(t, "value")})
	}
	for _, kind := range sorted(rapid.SliceOfNDistinct(namesDrawn(), 0, 2, rapid.ID).Draw(t, "devices")) {
		amount := rapid.OneOf(rapid.Uint32Range(1, 999), rapid.Map(rapid.Uint32Range(1, 1<<16), func(n uint32) uint32 { return n * 1000 })).Draw(t, "amount")
		spec.Devices = append(spec.Devices, cluster.DeviceRequest{Kind: kind, Amount: cluster.Millidevices(amount),
			Models: rapid.SliceOfNDistinct(namesDrawn(), 0, 2, rapid.ID).Draw(t, "models")})
	}
	for _, name := range rapid.SliceOfNDistinct(namesDrawn(), 0, 3, rapid.ID).Draw(t, "ports") {
		spec.Ports = append(spec.Ports, cluster.PortRequest{Name: name, Number: rapid.Uint16().Draw(t, "port")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "constraints") {
		spec.Constraints = append(spec.Constraints, constraint(t))
	}
	return spec
}

func constraint(t *rapid.T) cluster.Constraint {
	c := cluster.Constraint{Attribute: "a" + texts().Draw(t, "attribute"), Operator: cluster.Operator(rapid.IntRange(1, 10).Draw(t, "operator"))}
	switch c.Operator {
	case cluster.Exists, cluster.NotExists:
	case cluster.In, cluster.NotIn:
		c.Values = rapid.SliceOfN(texts(), 1, 3).Draw(t, "values")
	case cluster.Equal, cluster.NotEqual:
		c.Values = []string{texts().Draw(t, "value")}
	default:
		c.Values = []string{rapid.SampledFrom([]string{"0", "-3", "+4", "017"}).Draw(t, "number")}
	}
	return c
}

func namesDrawn() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_-]{0,10}`), rapid.SampledFrom([]string{"null", "true", "017", "no", "1e3", "main"}))
}

// texts draws texts, many of which YAML could take for something else.
func texts() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", " ", "null", "~", "true", "no", "017", "1_000", "1e3", "0x1f", ".inf", "2026-03-01", "=", "<<", "!=", ">", "|", "@x", "`", "%", "- a",
		"a: b", "a #b", "#", "*a", "&a", "!a", "{", "[", "'", `"`, `\`, "a\nb", "a\nb\n", "\n", "\n\n a", "  a\nb", "a\n\n", "\ta", "a\t", "\r\n", "é😀",
		"\u0085", "\u2028", "\ufeff", "\x7f", "\x01", "---", "...", "? a", ": a", ",", "a ", " a", strings.Repeat("long ", 60), "\u00a0",
	})).Filter(func(s string) bool { return !strings.Contains(s, "\x00") })
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
