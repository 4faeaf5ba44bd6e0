// Package wire turns values of the cluster into messages of the API, and messages into values.
//
// What comes from outside is not trusted: a message that says something that no value can hold gives problems with
// the paths at which they are, and a value that holds the rest.
package wire

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	starlingv1 "starling/api/v1"
	"starling/terms"
	"starling/terms/lifecycle"
)

// Spec returns the message of a job.
func Spec(spec *terms.Job) *starlingv1.JobSpec {
	m := &starlingv1.JobSpec{}
	put(reflect.ValueOf(m).Elem(), reflect.ValueOf(spec).Elem())
	for _, t := range m.Tasks {
		if t.Container.GetImage() == "" { // nothing that older peers do not know
			t.Container = nil
		}
		switch *t.StopDelayMillis {
		case 0:
			t.StopDelayMillis = nil
		case terms.StopDelayLeast:
			*t.StopDelayMillis = 0
		}
	}
	return m
}

// Variables returns the messages of variables or attributes.
func Variables(all []terms.EnvVar) []*starlingv1.Variable { return messages[starlingv1.Variable](all) }

// Devices returns the messages of what a node has of devices.
func Devices(all []terms.DeviceOffer) []*starlingv1.Device { return messages[starlingv1.Device](all) }

// Resources returns the message of an amount.
func Resources(r terms.Resources) *starlingv1.Resources {
	return &starlingv1.Resources{CpuMillicores: r[terms.CPU], MemoryBytes: r[terms.Memory], DiskBytes: r[terms.Disk]}
}

// ResourcesOf returns the amount of a message.
func ResourcesOf(m *starlingv1.Resources) terms.Resources {
	return terms.Resources{
		terms.CPU: m.GetCpuMillicores(), terms.Memory: m.GetMemoryBytes(), terms.Disk: m.GetDiskBytes(),
	}
}

// resourcesDefault is what a task asks for that says nothing of it, as in job files.
var resourcesDefault = terms.Resources{terms.CPU: 500, terms.Memory: 256 << 20}

// SpecOf returns the job of a message, and the problems that it has as a message. Whether the job is one that the
// cluster takes, package validate tells. A job that is absent is empty.
func SpecOf(m *starlingv1.JobSpec) (*terms.Job, []terms.Problem) {
	spec := &terms.Job{Priority: terms.PriorityDefault, MaxRestarts: lifecycle.RestartsDefault}
	problems := unknownFields(m.ProtoReflect(), "")
	slices.SortStableFunc(problems, func(a, b terms.Problem) int { return cmp.Compare(a.Path, b.Path) })
	for _, p := range take(reflect.ValueOf(spec).Elem(), reflect.ValueOf(m)) {
		problems = append(problems, terms.Problem{Path: strings.TrimPrefix(p.Path, "."), Reason: p.Reason})
	}
	for i, task := range m.GetTasks() {
		if task != nil && task.StopDelayMillis != nil {
			spec.Tasks[i].StopDelayMillis = max(task.GetStopDelayMillis(), terms.StopDelayLeast)
		}
		if task != nil && task.Resources == nil {
			spec.Tasks[i].Resources = resourcesDefault
		}
	}
	return spec, problems
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
