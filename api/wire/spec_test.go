package wire_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/command"
	"starling/jobspec"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/lifecycle"
	"starling/terms/rules"
	"starling/validate"
)

// fill gives every field of v a value that is not zero, so that a field that the conversion forgets is missed.
func fill(v reflect.Value, random *rand.Rand) {
	if v.Type() == reflect.TypeFor[[]constraint.Constraint]() {
		if random.IntN(6) == 0 {
			fillList(v, random)
		}
		return
	}
	highest := map[reflect.Type]uint64{
		reflect.TypeFor[terms.JobType](): uint64(terms.Daemon), reflect.TypeFor[terms.Placement](): uint64(terms.Defragment),
		reflect.TypeFor[constraint.Operator](): uint64(constraint.GreaterOrEqual),
		reflect.TypeFor[terms.Growth]():        uint64(terms.Fibonacci),
		reflect.TypeFor[terms.Survivor]():      uint64(terms.KeepLongest),
		reflect.TypeFor[terms.CheckKind]():     uint64(terms.CheckCommand),
		reflect.TypeFor[terms.Signal]():        uint64(terms.SignalUser2),
		reflect.TypeFor[terms.StopSignal]():    uint64(terms.StopWindowChange),
		reflect.TypeFor[terms.Preemption]():    uint64(terms.Preemptible),
		reflect.TypeFor[lifecycle.Event]():     uint64(lifecycle.Any),
		reflect.TypeFor[terms.TaskScheduler](): uint64(terms.TaskFixed),
		reflect.TypeFor[terms.Coverage]():      uint64(terms.CoverageOptional),
		reflect.TypeFor[terms.Method]():        uint64(len(terms.Methods()) - 1),
		reflect.TypeFor[terms.OnFailure]():     uint64(len(terms.OnFailures()) - 1),
		reflect.TypeFor[terms.Grow]():          uint64(terms.GrowWhole),
		reflect.TypeFor[lifecycle.Action]():    uint64(lifecycle.Complete),
	}
	if most, ok := highest[v.Type()]; ok {
		v.SetUint(1 + random.Uint64N(most))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), random)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), random)
		}
	case reflect.Slice:
		fillList(v, random)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", random.Uint32()))
	case reflect.Int64:
		v.SetInt(1 + random.Int64N(1<<62))
	case reflect.Uint16, reflect.Uint32:
		v.SetUint(1 + random.Uint64N(1<<(v.Type().Bits())-1))
	default:
		panic("fill knows no " + v.Type().String())
	}
}

func fillList(v reflect.Value, random *rand.Rand) {
	v.Set(reflect.MakeSlice(v.Type(), 1+random.IntN(3), 3))
	for i := range v.Len() {
		fill(v.Index(i), random)
	}
}

func randomSpec(random *rand.Rand) *terms.Job {
	spec := &terms.Job{}
	fill(reflect.ValueOf(spec).Elem(), random)
	for _, q := range spec.Plugins {
		slices.SortFunc(q.Arguments, func(a, b terms.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	}
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		slices.SortFunc(t.Env, func(a, b terms.EnvVar) int { return strings.Compare(a.Name, b.Name) })
		for i := range t.Checks {
			slices.SortFunc(t.Checks[i].Headers, func(a, b terms.EnvVar) int { return strings.Compare(a.Name, b.Name) })
		}
		slices.SortFunc(t.Labels, func(a, b terms.EnvVar) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(t.Devices, func(a, b terms.DeviceRequest) int { return strings.Compare(a.Kind, b.Kind) })
	}
	return spec
}

func TestSpecComesBack(t *testing.T) {
	for seed := range uint64(500) {
		spec := randomSpec(rand.New(rand.NewPCG(seed, 0)))
		got, problems := wire.SpecOf(wire.Spec(spec))
		if len(problems) > 0 || !reflect.DeepEqual(got, spec) {
			t.Fatalf("seed %d: got %+v (%v), want %+v", seed, got, problems, spec)
		}
	}
}

// fillMessage gives every field of m a value that is not zero. Names grow, so that what is sorted stays in its place.
func fillMessage(m protoreflect.Message, next func() int) {
	fillMessageTo(m, next, 6)
}

// fillMessageTo fills messages within each other down to a depth.
func fillMessageTo(m protoreflect.Message, next func() int, depth int) {
	if depth == 0 {
		return
	}
	words := map[protoreflect.FullName]string{
		"JobSpec.type": "batch", "JobSpec.task_scheduler": "greedy", "JobSpec.coverage": "optional", "JobSpec.grow": "whole",
		"TaskSpec.placement": "spread", "Constraint.operator": "not in", "Reschedule.growth": "fibonacci",
		"LifecyclePolicy.on": "task_failed", "LifecyclePolicy.action": "complete",
		"TaskSpec.on_members_change": "SIGHUP", "SecretUse.on_change": "SIGUSR1", "TaskSpec.stop_signal": "SIGQUIT",
		"Disconnect.keep": "replacement", "Check.kind": "command", "Check.method": "POST", "Check.on_failure": "unready",
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		one := func() protoreflect.Value {
			switch field.Kind() {
			case protoreflect.StringKind:
				if word, ok := words[protoreflect.FullName(strings.TrimPrefix(string(field.FullName()), "starling.v1."))]; ok {
					return protoreflect.ValueOfString(word)
				}
				return protoreflect.ValueOfString(fmt.Sprintf("s%06d", next()))
			case protoreflect.Uint32Kind:
				return protoreflect.ValueOfUint32(uint32(next()))
			case protoreflect.BoolKind:
				return protoreflect.ValueOfBool(true)
			case protoreflect.Int64Kind:
				return protoreflect.ValueOfInt64(int64(next()))
			}
			panic("fillMessage knows no " + field.Kind().String())
		}
		switch {
		case field.IsList() && field.Message() != nil:
			for range 2 {
				fillMessageTo(m.Mutable(field).List().AppendMutable().Message(), next, depth-1)
			}
		case field.IsList():
			m.Mutable(field).List().Append(one())
		case field.Message() != nil:
			fillMessageTo(m.Mutable(field).Message(), next, depth-1)
		default:
			m.Set(field, one())
		}
	}
}

func TestMessageComesBack(t *testing.T) {
	n := 0
	message := &starlingv1.JobSpec{}
	fillMessage(message.ProtoReflect(), func() int { n++; return n })
	spec, problems := wire.SpecOf(message)
	if got := wire.Spec(spec); len(problems) > 0 || !proto.Equal(got, message) {
		t.Errorf("got %v (%v), want %v", got, problems, message)
	}
}

func TestSpecOf(t *testing.T) {
	task := func(change func(*starlingv1.TaskSpec)) *starlingv1.JobSpec {
		m := &starlingv1.TaskSpec{Name: "t", Instances: 1, Command: []string{"true"}}
		change(m)
		return &starlingv1.JobSpec{Name: "j", Type: "batch", Tasks: []*starlingv1.TaskSpec{m}}
	}
	unknown := []byte{0xfa, 0x01, 0x01, 'x'} // field 31, one byte
	cases := []struct {
		name string
		spec *starlingv1.JobSpec
		want string // the problems, of the message and then of the job
	}{
		{"smallest", task(func(*starlingv1.TaskSpec) {}), ""},
		{"absent", nil, `job must not be empty; type must be one of ["batch" "stateless" "stateful" "daemon"]; tasks must have 1 to 64 tasks, has 0`},
		{"empty task", &starlingv1.JobSpec{Name: "j", Type: "batch", Tasks: []*starlingv1.TaskSpec{nil}},
			"tasks[0].name must not be empty; tasks[0].command must name a program"},
		{"type", &starlingv1.JobSpec{Name: "j", Type: "bach", Tasks: task(func(*starlingv1.TaskSpec) {}).Tasks},
			`type must be one of ["batch" "stateless" "stateful" "daemon"]`},
		{"placement", task(func(m *starlingv1.TaskSpec) { m.Placement = "stack" }),
			`tasks[0].placement must be "pack", "spread" or "defragment"`},
		{"words", task(func(m *starlingv1.TaskSpec) {
			m.Reschedule = &starlingv1.Reschedule{Growth: "linear"}
			m.Disconnect = &starlingv1.Disconnect{Keep: "both"}
			m.Checks = []*starlingv1.Check{{Kind: "ping", IntervalMillis: 1000, TimeoutMillis: 1000}}
		}),
			`tasks[0].reschedule.growth must be one of ["constant" "exponential" "fibonacci"]; ` +
				`tasks[0].disconnect.keep must be one of ["original" "replacement" "longest-running"]; ` +
				`tasks[0].checks[0] must have one of ["http" "tcp" "command" "grpc"]`},
		{"operator", task(func(m *starlingv1.TaskSpec) {
			m.Constraints = []*starlingv1.Constraint{{Attribute: "a", Operator: "~"}}
		}),
			`tasks[0].constraints[0].operator must be one of ["=" "!=" "in" "not in" "exists" "not exists" "<" "<=" ">" ">="]`},
		{"port number", task(func(m *starlingv1.TaskSpec) {
			m.Ports = []*starlingv1.PortRequest{{Name: "p",
				Number: 65536}}
		}),
			"tasks[0].ports[0].number must be at most 65535, is 65536"},
		{"env is sorted", task(func(m *starlingv1.TaskSpec) { m.Env = []*starlingv1.Variable{{Name: "B"}, {Name: "A"}} }),
			""},
		{"env twice", task(func(m *starlingv1.TaskSpec) { m.Env = []*starlingv1.Variable{{Name: "A"}, {Name: "A"}} }),
			"tasks[0].env.A must be ordered by name, each name once"},
		{"newer field", task(func(m *starlingv1.TaskSpec) {
			m.Restart = &starlingv1.Restart{}
			m.Restart.ProtoReflect().SetUnknown(unknown)
		}), "tasks[0].restart holds a field that this peer does not know: it runs an older program than the client; update it"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			spec, problems := wire.SpecOf(c.spec)
			var got []string
			for _, p := range append(problems, validate.Job(spec, rules.Released)...) {
				got = append(got, p.Path+" "+p.Reason)
			}
			if text := strings.Join(got, "; "); text != c.want {
				t.Errorf("got %s\nwant %s", text, c.want)
			}
		})
	}
}

func TestPriorityOf(t *testing.T) {
	for _, c := range []struct {
		sent *uint32
		want uint32
	}{{nil, terms.PriorityDefault}, {proto.Uint32(0), 0}, {proto.Uint32(100), 100}} {
		if got, _ := wire.SpecOf(&starlingv1.JobSpec{Priority: c.sent}); got.Priority != c.want {
			t.Errorf("got %d for %v, want %d", got.Priority, c.sent, c.want)
		}
	}
}

// TestResourcesDefault has a message and a job file mean the same when they say nothing of resources.
func TestResourcesDefault(t *testing.T) {
	file, err := jobspec.Parse("file", []byte("job: a\ntasks: [{command: b}]"))
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := wire.SpecOf(&starlingv1.JobSpec{Tasks: []*starlingv1.TaskSpec{{}}})
	if got, want := spec.Tasks[0].Resources, file[0].Spec.Tasks[0].Resources; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzSpecOf(f *testing.F) {
	for seed := range uint64(3) {
		data, err := proto.Marshal(wire.Spec(randomSpec(rand.New(rand.NewPCG(seed, 0)))))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		message := &starlingv1.JobSpec{}
		if proto.Unmarshal(data, message) != nil {
			return
		}
		spec, problems := wire.SpecOf(message)
		if len(problems) > 0 || len(validate.Job(spec, rules.Released)) > 0 {
			return
		}
		again, problems := wire.SpecOf(wire.Spec(spec))
		if len(problems) > 0 || !again.Equal(spec) {
			t.Errorf("got %+v (%v), want %+v", again, problems, spec)
		}
		// What is accepted must be what every peer can read.
		entry := &command.Entry{Writer: "a~1", Seq: 1, Commands: []command.Command{&command.SubmitJob{Spec: *spec}}}
		if _, err := command.Decode(command.Encode(entry), rules.First); err != nil {
			t.Errorf("accepted, and then: %v", err)
		}
	})
}

// TestSmallJobs lists what is sent of a job that says little. A peer whose program is older refuses a field that it
// does not know: one that is added is sent when it says something, and does not come into this list.
func TestSmallJobs(t *testing.T) {
	spec := terms.Job{Name: "web", Tasks: []terms.Task{{Name: "main", Instances: 1, Command: []string{"true"}}}}
	var sent []string
	wire.Spec(&spec).ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		sent = append(sent, string(f.Name()))
		return true
	})
	wire.Spec(&spec).GetTasks()[0].ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		sent = append(sent, "tasks."+string(f.Name()))
		return true
	})
	slices.Sort(sent)
	want := []string{"grow", "max_restarts", "name", "priority", "tasks", "tasks.command", "tasks.disconnect",
		"tasks.instances", "tasks.max_restarts", "tasks.name", "tasks.on_members_change", "tasks.placement",
		"tasks.reschedule", "tasks.resources", "tasks.restart", "type", "update"}
	if !slices.Equal(sent, want) {
		t.Errorf("sent are %q, want %q", sent, want)
	}
}
