package trace

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"starling/terms"
	"starling/terms/rules"
)

// gpu is the kind of all devices in a trace.
const gpu = "gpu"

// mebibyte is the unit of memory in a trace.
const mebibyte = 1 << 20

// Machine is what one machine has.
type Machine struct {
	Name      terms.NodeName
	Resources terms.Resources
	GPUs      uint32
	Model     string
}

// Task is what one task asks for. Its name is the trace's and need be none that a job may have.
type Task struct {
	Name string
	Shape
}

// Shape is what tasks that ask for the same have in common.
type Shape struct {
	Resources terms.Resources
	// GPU is a share of one device or a number of whole ones, in thousandths; 0 is none.
	GPU terms.Millidevices
	// Models are those of which it may be, with "|" between them; "" is any.
	Models string
}

// ReadMachines reads machines from CSV; file is its name in errors, which tell line, position and column.
func ReadMachines(file string, from io.Reader) ([]Machine, error) {
	t := newTable(file, from, columns{needed: []string{"sn", "cpu_milli", "memory_mib", "gpu"},
		allowed: []string{"model"}})
	var all []Machine
	for t.next() {
		m := Machine{Name: terms.NodeName(t.name("sn")), Resources: t.resources(),
			GPUs: uint32(t.number("gpu", terms.DevicesMax)), Model: t.text("model")}
		if reason := terms.NameProblem(string(m.Name), true); reason != "" {
			t.wrong("sn", "%s", reason)
		}
		all = append(all, m)
	}
	return rows(t, all)
}

// ReadTasks reads tasks from CSV in the same way.
func ReadTasks(file string, from io.Reader) ([]Task, error) {
	t := newTable(file, from, columns{
		needed:  []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"},
		allowed: []string{"gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"}})
	var all []Task
	for t.next() {
		all = append(all, Task{t.name("name"), Shape{Resources: t.resources(), GPU: t.devices(), Models: t.models()}})
	}
	return rows(t, all)
}

// rows returns what was read, if there is anything and nothing was wrong.
func rows[T any](t *table, all []T) ([]T, error) {
	if t.err == nil && len(all) == 0 {
		t.err = fmt.Errorf("%s: has no row below its header", t.file)
	}
	if t.err != nil {
		return nil, t.err
	}
	return all, nil
}

func (t *table) resources() terms.Resources {
	var r terms.Resources
	r[terms.CPU] = t.number("cpu_milli", terms.CPUMillicoresMax)
	r[terms.Memory] = t.number("memory_mib", terms.BytesMax/mebibyte) * mebibyte
	return r
}

// devices returns what a row asks for: gpu_milli is the share of one device, and must be whole for several.
func (t *table) devices() terms.Millidevices {
	count := terms.Millidevices(t.number("num_gpu", terms.DevicesMax))
	part := terms.Millidevices(t.number("gpu_milli", int64(terms.WholeDevice)))
	switch {
	case count == 0 && part != 0:
		t.wrong("gpu_milli", "must be 0 where num_gpu is 0, is %d", part)
	case count == 1 && part == 0:
		t.wrong("gpu_milli", "must be above 0 where num_gpu is 1")
	case count > 1 && part != terms.WholeDevice:
		t.wrong("gpu_milli", "must be %d where num_gpu is %d, is %d: several devices are given whole", terms.WholeDevice,
			count, part)
	}
	return count * part
}

// models returns the models that a row allows, each once and in order, so that equal sets are equal texts.
func (t *table) models() string {
	text := t.text("gpu_spec")
	if text == "" {
		return ""
	}
	all := strings.Split(text, "|")
	slices.Sort(all)
	all = slices.Compact(all)
	if all[0] == "" {
		t.wrong("gpu_spec", `must be models with "|" between them, is %q`, text)
	}
	return strings.Join(all, "|")
}

// request returns what a task of the shape asks of devices.
func (s *Shape) request() []terms.DeviceRequest {
	if s.GPU == 0 {
		return nil
	}
	q := terms.DeviceRequest{Kind: gpu, Amount: s.GPU}
	if s.Models != "" {
		q.Models = strings.Split(s.Models, "|")
	}
	return []terms.DeviceRequest{q}
}

// offer returns what the machine volunteers.
func (m *Machine) offer() terms.Offer {
	o := terms.Offer{Capacity: m.Resources, Rules: rules.Released}
	if m.GPUs > 0 {
		o.Devices = []terms.DeviceOffer{{Kind: gpu, Model: m.Model, Count: m.GPUs}}
	}
	return o
}
