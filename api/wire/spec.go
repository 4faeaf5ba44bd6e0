// Package wire turns values of the cluster into messages of the API, and messages into values.
//
// What comes from outside is not trusted: a message that says something that no value can hold gives problems with
// the paths at which they are, and a value that holds the rest.
package wire

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	starlingv1 "starling/api/v1"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/lifecycle"
)

// Spec returns the message of a job.
func Spec(spec *terms.Job) *starlingv1.JobSpec {
	m := &starlingv1.JobSpec{
		Name: string(spec.Name), Type: spec.Type.String(), Update: updateMessage(&spec.Update),
		Priority:    proto.Uint32(spec.Priority),
		Preemptible: preemptibleMessage(spec.Preemption), Revocable: spec.Revocable, Controller: spec.Controller,
		KillOnPreempt: spec.KillOnPreempt,
		MinAvailable:  spec.MinAvailable, After: texts(spec.After),
		MinSuccess: spec.MinSuccess, Policies: lifecycleMessages(spec.Policies), MaxRestarts: proto.Uint32(spec.MaxRestarts),
		KeepMillis: spec.KeepMillis, TaskScheduler: spec.TaskScheduler.String(), Percent: spec.Percent,
		Coverage: spec.Coverage.String(),
		Within:   spec.Within, Grow: spec.Grow.String(),
	}
	for _, q := range spec.Plugins {
		m.Plugins = append(m.Plugins, &starlingv1.PluginRequest{Name: q.Name, Arguments: Variables(q.Arguments)})
	}
	for i := range spec.Tasks {
		m.Tasks = append(m.Tasks, taskMessage(&spec.Tasks[i]))
	}
	return m
}

func texts[N ~string](names []N) (all []string) {
	for _, name := range names {
		all = append(all, string(name))
	}
	return all
}

func namesOf[N ~string](texts []string) (all []N) {
	for _, text := range texts {
		all = append(all, N(text))
	}
	return all
}

func taskMessage(t *terms.Task) *starlingv1.TaskSpec {
	m := &starlingv1.TaskSpec{
		Name:            string(t.Name),
		Instances:       t.Instances,
		MinAvailable:    t.MinAvailable,
		MaxRunning:      t.MaxRunning,
		Percent:         t.Percent,
		MaxRunMillis:    t.MaxRunMillis,
		After:           texts(t.After),
		Command:         t.Command,
		Env:             Variables(t.Env),
		WorkDir:         t.WorkDir,
		User:            t.User,
		Resources:       Resources(t.Resources),
		Placement:       t.Placement.String(),
		Labels:          Variables(t.Labels),
		PerNodeMax:      t.PerNodeMax,
		SpreadOver:      t.SpreadOver,
		StopGraceMillis: t.StopGraceMillis,
		Restart: &starlingv1.Restart{
			AttemptsMax: t.Restart.AttemptsMax, DelayMillis: t.Restart.DelayMillis,
			DelayMaxMillis: t.Restart.DelayMaxMillis, ResetMillis: t.Restart.ResetMillis,
		},
	}
	for _, d := range t.Devices {
		m.Devices = append(m.Devices, &starlingv1.DeviceRequest{Kind: d.Kind, Milli: uint32(d.Amount), Models: d.Models})
	}
	for _, port := range t.Ports {
		m.Ports = append(m.Ports, &starlingv1.PortRequest{Name: port.Name, Number: uint32(port.Number)})
	}
	m.Constraints = constraintMessages(t.Constraints)
	policyMessages(m, t)
	if t.StopDelayMillis > 0 {
		m.StopDelayMillis = new(uint32)
		if t.StopDelayMillis > terms.StopDelayLeast {
			*m.StopDelayMillis = t.StopDelayMillis
		}
	}
	return m
}

func constraintMessages(all []constraint.Constraint) []*starlingv1.Constraint {
	var messages []*starlingv1.Constraint
	for i := range all {
		c := &all[i]
		messages = append(messages, &starlingv1.Constraint{
			Attribute: c.Attribute, Label: c.Label, Within: c.Within, Operator: c.Operator.String(), Values: c.Values,
			Count: c.Count,
			All:   constraintMessages(c.All), Any: constraintMessages(c.Any), Soft: c.Soft, SoftTimeoutMillis: c.SoftTimeoutMillis,
		})
	}
	return messages
}

// Variables returns the messages of variables or attributes.
func Variables(all []terms.EnvVar) []*starlingv1.Variable {
	var messages []*starlingv1.Variable
	for _, one := range all {
		messages = append(messages, &starlingv1.Variable{Name: one.Name, Value: one.Value})
	}
	return messages
}

// Devices returns the messages of what a node has of devices.
func Devices(all []terms.DeviceOffer) []*starlingv1.Device {
	var messages []*starlingv1.Device
	for _, one := range all {
		messages = append(messages, &starlingv1.Device{Kind: one.Kind, Count: one.Count, Model: one.Model})
	}
	return messages
}

// Resources returns the message of an amount.
func Resources(r terms.Resources) *starlingv1.Resources {
	return &starlingv1.Resources{CpuMillicores: r[terms.CPU], MemoryBytes: r[terms.Memory], DiskBytes: r[terms.Disk]}
}

// preemptibleMessage returns nil for a job that leaves it to its type whether it is preemptible.
func preemptibleMessage(p terms.Preemption) *bool {
	if p == terms.PreemptionByType {
		return nil
	}
	return new(p == terms.Preemptible)
}

func preemptionOf(m *starlingv1.JobSpec) terms.Preemption {
	switch {
	case m == nil || m.Preemptible == nil:
		return terms.PreemptionByType
	case m.GetPreemptible():
		return terms.Preemptible
	}
	return terms.NonPreemptible
}

// SpecOf returns the job of a message, and the problems that it has as a message. Whether the job is one that the
// cluster takes, package validate tells. A job that is absent is empty.
func SpecOf(m *starlingv1.JobSpec) (*terms.Job, []terms.Problem) {
	spec := &terms.Job{
		Name: terms.JobName(m.GetName()), Type: jobTypeOf(m.GetType()), Update: updateOf(m.GetUpdate()),
		Priority:   terms.PriorityDefault,
		Preemption: preemptionOf(m), Revocable: m.GetRevocable(), Controller: m.GetController(),
		KillOnPreempt: m.GetKillOnPreempt(), MinAvailable: m.GetMinAvailable(), After: namesOf[terms.JobName](m.GetAfter()),
		MinSuccess: m.GetMinSuccess(), Policies: lifecycleOf(m.GetPolicies()), MaxRestarts: lifecycle.RestartsDefault,
		KeepMillis:    m.GetKeepMillis(),
		TaskScheduler: terms.TaskScheduler(numberOf(m.GetTaskScheduler(), terms.TaskSchedulers())), Percent: m.GetPercent(),
		Coverage: terms.Coverage(numberOf(m.GetCoverage(), terms.Coverages())),
		Within:   m.GetWithin(), Grow: terms.Grow(numberOf(m.GetGrow(), terms.Grows())),
	}
	if m != nil && m.MaxRestarts != nil {
		spec.MaxRestarts = m.GetMaxRestarts()
	}
	if m != nil && m.Priority != nil {
		spec.Priority = m.GetPriority()
	}
	for _, one := range m.GetPlugins() {
		spec.Plugins = append(spec.Plugins,
			terms.PluginRequest{Name: one.GetName(), Arguments: variablesOf(one.GetArguments())})
	}
	problems := unknownFields(m.ProtoReflect(), "")
	slices.SortStableFunc(problems, func(a, b terms.Problem) int { return cmp.Compare(a.Path, b.Path) })
	for i, task := range m.GetTasks() {
		t, found := taskOf(task, "tasks["+strconv.Itoa(i)+"]")
		spec.Tasks = append(spec.Tasks, t)
		problems = append(problems, found...)
	}
	return spec, problems
}

func taskOf(m *starlingv1.TaskSpec, path string) (terms.Task, []terms.Problem) {
	t := terms.Task{
		Name:            terms.TaskName(m.GetName()),
		Instances:       m.GetInstances(),
		MinAvailable:    m.GetMinAvailable(),
		MaxRunning:      m.GetMaxRunning(),
		Percent:         m.GetPercent(),
		MaxRunMillis:    m.GetMaxRunMillis(),
		After:           namesOf[terms.TaskName](m.GetAfter()),
		Command:         m.GetCommand(),
		WorkDir:         m.GetWorkDir(),
		User:            m.GetUser(),
		Resources:       resourcesOf(m.GetResources()),
		Placement:       placementOf(m.GetPlacement()),
		Labels:          variablesOf(m.GetLabels()),
		PerNodeMax:      m.GetPerNodeMax(),
		SpreadOver:      m.GetSpreadOver(),
		Env:             variablesOf(m.GetEnv()),
		Constraints:     constraintsOf(m.GetConstraints()),
		StopGraceMillis: m.GetStopGraceMillis(),
		Restart: terms.Restart{
			AttemptsMax: m.GetRestart().GetAttemptsMax(), DelayMillis: m.GetRestart().GetDelayMillis(),
			DelayMaxMillis: m.GetRestart().GetDelayMaxMillis(), ResetMillis: m.GetRestart().GetResetMillis(),
		},
	}
	for _, one := range m.GetDevices() {
		t.Devices = append(t.Devices, terms.DeviceRequest{
			Kind: one.GetKind(), Amount: terms.Millidevices(one.GetMilli()), Models: one.GetModels(),
		})
	}
	slices.SortStableFunc(t.Devices, func(a, b terms.DeviceRequest) int { return cmp.Compare(a.Kind, b.Kind) })
	policiesOf(&t, m)
	if m != nil && m.StopDelayMillis != nil {
		t.StopDelayMillis = max(m.GetStopDelayMillis(), terms.StopDelayLeast)
	}
	var problems []terms.Problem
	for i, one := range m.GetPorts() {
		if one.GetNumber() > math.MaxUint16 {
			problems = append(problems, terms.Problem{
				Path:   fmt.Sprintf("%s.ports[%d].number", path, i),
				Reason: fmt.Sprintf("must be at most %d, is %d", math.MaxUint16, one.GetNumber()),
			})
		}
		t.Ports = append(t.Ports, terms.PortRequest{Name: one.GetName(), Number: uint16(one.GetNumber())})
	}
	return t, problems
}

// variablesOf returns the variables or labels of messages, in the order of their names.
func variablesOf(messages []*starlingv1.Variable) []terms.EnvVar {
	var all []terms.EnvVar
	for _, one := range messages {
		all = append(all, terms.EnvVar{Name: one.GetName(), Value: one.GetValue()})
	}
	slices.SortStableFunc(all, func(a, b terms.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func constraintsOf(messages []*starlingv1.Constraint) []constraint.Constraint {
	var all []constraint.Constraint
	for _, one := range messages {
		all = append(all, constraint.Constraint{
			Attribute: one.GetAttribute(), Label: one.GetLabel(), Within: one.GetWithin(),
			Operator: operatorOf(one.GetOperator()),
			Values:   one.GetValues(), Count: one.GetCount(), All: constraintsOf(one.GetAll()), Any: constraintsOf(one.GetAny()),
			Soft: one.GetSoft(), SoftTimeoutMillis: one.GetSoftTimeoutMillis(),
		})
	}
	return all
}

func resourcesOf(m *starlingv1.Resources) terms.Resources {
	return terms.Resources{
		terms.CPU: m.GetCpuMillicores(), terms.Memory: m.GetMemoryBytes(), terms.Disk: m.GetDiskBytes(),
	}
}

// jobTypeOf returns 0, which package validate names, for a word that is none.
func jobTypeOf(word string) terms.JobType {
	return terms.JobType(max(slices.Index(terms.JobTypes(), word), 0))
}

// placementOf returns 0, which package validate names, for a word that is none.
func placementOf(word string) terms.Placement {
	if word == "" {
		return terms.Pack
	}
	return terms.Placement(max(slices.Index(terms.Placements(), word), 0))
}

// operatorOf returns 0, which package validate names, for a word that is none.
func operatorOf(word string) constraint.Operator {
	return constraint.Operator(max(slices.Index(constraint.Operators(), word), 0))
}

// unknownFields lists the fields that a newer client has sent and this program does not know: passing over one could
// drop a constraint.
func unknownFields(m protoreflect.Message, path string) []terms.Problem {
	var problems []terms.Problem
	if len(m.GetUnknown()) > 0 {
		problems = append(problems, terms.Problem{
			Path:   path,
			Reason: "holds a field that this peer does not know: it runs an older program than the client; update it",
		})
	}
	prefix := path
	if prefix != "" {
		prefix += "."
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		name := prefix + string(field.Name())
		switch {
		case field.Message() == nil:
		case field.IsList():
			for i := range value.List().Len() {
				problems = append(problems, unknownFields(value.List().Get(i).Message(), name+"["+strconv.Itoa(i)+"]")...)
			}
		default:
			problems = append(problems, unknownFields(value.Message(), name)...)
		}
		return true
	})
	return problems
}

// Problems returns the messages of problems.
func Problems(all []terms.Problem) []*starlingv1.Problem {
	var messages []*starlingv1.Problem
	for _, one := range all {
		messages = append(messages, &starlingv1.Problem{Path: one.Path, Reason: one.Reason})
	}
	return messages
}
