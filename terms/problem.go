package terms

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"starling/terms/constraint"
	"starling/terms/lifecycle"
)

// Limits of a job. They keep one entry's work and one job's rows bounded.
const (
	// TasksMax bounds the tasks of a job.
	TasksMax = 64
	// InstancesMax bounds the instances of a task.
	InstancesMax = 1_000_000
	// ArgumentsMax bounds the arguments of a command and the variables of an environment.
	ArgumentsMax = 1024
	// TextBytesMax bounds every text in a job, SpecBytesMax all of them together.
	TextBytesMax = 1 << 16
	SpecBytesMax = 1 << 19
	// CPUMillicoresMax, BytesMax bound resources: 1,000,000 cores, 1 EiB.
	CPUMillicoresMax = 1_000_000_000
	BytesMax         = 1 << 60
	// RequestsPerTaskMax bounds the ports, the device kinds and the constraints of a task, a constraint's values and the
	// models of a device.
	RequestsPerTaskMax = 64
	// DelayMillisMax and GraceMillisMax bound delays and graces: 24 hours and 1 hour.
	DelayMillisMax = 24 * 60 * 60 * 1000
	GraceMillisMax = 60 * 60 * 1000
	// KeepLeast is the shortest time for which a job is kept that has ended.
	KeepLeast = 1
	// StopDelayLeast is the shortest delay before a signal that a job can ask for.
	StopDelayLeast = 1
)

// Problem is one thing wrong with a job. Path leads to the field as job files name it: "tasks[0].resources.cpu".
type Problem struct{ Path, Reason string }

// problems collects problems with the paths at which they were found.
type problems struct {
	path  string
	found []Problem
}

func (p *problems) add(field, format string, args ...any) {
	path := p.path
	if field != "" && path != "" {
		path += "."
	}
	p.found = append(p.found, Problem{path + field, fmt.Sprintf(format, args...)})
}

func (p *problems) name(field, value string) {
	if reason := NameProblem(value, false); reason != "" {
		p.add(field, "%s", reason)
	}
}

func (p *problems) text(field, value string) {
	if len(value) > TextBytesMax {
		p.add(field, "must have at most %d bytes, has %d", TextBytesMax, len(value))
	}
	if strings.ContainsRune(value, 0) || !utf8.ValidString(value) {
		p.add(field, "must be UTF-8 without zero bytes")
	}
}

func (p *problems) bounded(field string, value, low, high int64) {
	if value < low || value > high {
		p.add(field, "must be %d to %d, is %d", low, high, value)
	}
}

// Problems returns everything that is wrong with the job, in the order of its fields; nothing for a job that the
// cluster takes. The job file, the API and the fold all ask here.
func (s *Job) Problems() []Problem {
	p := &problems{}
	if reason := s.Name.Problem(); reason != "" {
		p.add("job", "%s", reason)
	}
	if s.Type < Batch || s.Type > Daemon {
		p.add("type", "must be one of %q", JobTypes()[1:])
	}
	s.sharingProblems(p)
	s.schedulerProblems(p)
	s.followProblems(p)
	s.lifecycleProblems(p)
	p.path = "update"
	s.Update.problems(p, s.Type)
	p.path = ""
	s.pluginProblems(p)
	if len(s.Tasks) == 0 || len(s.Tasks) > TasksMax {
		p.add("tasks", "must have 1 to %d tasks, has %d", TasksMax, len(s.Tasks))
		return p.found
	}
	size := 0
	for i := range s.Tasks {
		t := &s.Tasks[i]
		p.path = "tasks[" + strconv.Itoa(i) + "]"
		t.problems(p)
		t.policyProblems(p, s.Type)
		t.sharingProblems(p, s.Type)
		lifecycle.Problems(t.Policies, s.Type == Batch, p.add)
		for k := range i {
			if s.Tasks[k].Name == t.Name {
				p.add("name", "is also the name of tasks[%d]: each task needs a name of its own", k)
				break
			}
		}
		size += t.size()
	}
	p.path = ""
	s.graphProblems(p)
	if size > SpecBytesMax {
		p.add("tasks", "must hold at most %d bytes of text, hold %d: put large input into files", SpecBytesMax, size)
	}
	return p.found
}

// size is at least what the task takes in an entry, but for a small constant.
func (t *Task) size() int {
	size := len(t.WorkDir) + len(t.User)
	for _, name := range t.After {
		size += len(name) + 4
	}
	for _, a := range t.Command {
		size += len(a) + 4
	}
	for _, e := range t.Env {
		size += len(e.Name) + len(e.Value) + 8
	}
	for _, d := range t.Devices {
		size += len(d.Kind) + 12
		for _, m := range d.Models {
			size += len(m) + 4
		}
	}
	for _, p := range t.Ports {
		size += len(p.Name) + 8
	}
	for _, c := range t.Checks {
		size += len(c.Port) + len(c.Path) + 32
		for _, a := range c.Command {
			size += len(a) + 4
		}
	}
	for _, v := range t.Volumes {
		size += len(v.Name) + 4
	}
	for i := range t.Constraints {
		t.Constraints[i].EachLeaf(func(c *constraint.Constraint) {
			size += len(c.Attribute) + len(c.Label) + len(c.Within) + 32
			for _, v := range c.Values {
				size += len(v) + 4
			}
		})
	}
	for _, l := range t.Labels {
		size += len(l.Name) + len(l.Value) + 8
	}
	for i := range t.Policies {
		size += 4*len(t.Policies[i].ExitCodes) + 16
	}
	return size + len(t.SpreadOver)
}

func (t *Task) problems(p *problems) {
	p.name("name", string(t.Name))
	p.bounded("instances", int64(t.Instances), 0, InstancesMax)
	if len(t.Command) == 0 || t.Command[0] == "" {
		p.add("command", "must name a program")
	}
	if len(t.Command) > ArgumentsMax || len(t.Env) > ArgumentsMax {
		p.add("command", "command and env must have at most %d elements each", ArgumentsMax)
		return
	}
	for i, argument := range t.Command {
		p.text("command["+strconv.Itoa(i)+"]", argument)
	}
	t.envProblems(p)
	p.text("work_dir", t.WorkDir)
	if t.WorkDir != "" && t.WorkDir[0] != '/' {
		p.add("work_dir", "must be an absolute path, or absent for a folder of the instance's own")
	}
	p.text("user", t.User)
	p.bounded("resources.cpu", t.Resources[CPU], 0, CPUMillicoresMax)
	p.bounded("resources.memory", t.Resources[Memory], 0, BytesMax)
	p.bounded("resources.disk", t.Resources[Disk], 0, BytesMax)
	t.requestProblems(p)
	t.ruleProblems(p)
	if t.Placement < Pack || t.Placement > Defragment {
		p.add("placement", `must be "pack", "spread" or "defragment"`)
	}
	p.bounded("restart.delay", int64(t.Restart.DelayMillis), 0, DelayMillisMax)
	p.bounded("restart.delay_max", int64(t.Restart.DelayMaxMillis), int64(min(t.Restart.DelayMillis, DelayMillisMax)),
		DelayMillisMax)
	p.bounded("restart.reset_after", int64(t.Restart.ResetMillis), 0, DelayMillisMax)
	p.bounded("stop_delay", int64(t.StopDelayMillis), 0, GraceMillisMax)
	p.bounded("stop_grace", int64(t.StopGraceMillis), 0, GraceMillisMax)
}

func (t *Task) envProblems(p *problems) {
	for i, e := range t.Env {
		field := "env." + e.Name
		p.text(field, e.Value)
		for k := range len(e.Name) {
			c := e.Name[k]
			letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
			if !letter && (k == 0 || c < '0' || c > '9') {
				p.add(field, `is no name of a variable: use letters, digits and "_"`)
				break
			}
		}
		switch {
		case e.Name == "" || len(e.Name) > NameBytesMax*4:
			p.add("env", "the name of a variable must have 1 to %d bytes", NameBytesMax*4)
		case len(e.Name) >= len("STARLING_") && e.Name[:len("STARLING_")] == "STARLING_":
			p.add(field, "is reserved: Starling sets the variables that begin with STARLING_")
		case i > 0 && t.Env[i-1].Name >= e.Name:
			p.add(field, "must be ordered by name, each name once")
		}
	}
}

func (t *Task) requestProblems(p *problems) {
	if max(len(t.Ports), len(t.Devices)) > RequestsPerTaskMax {
		p.add("ports", "ports and devices must have at most %d elements each", RequestsPerTaskMax)
		return
	}
	for i := range t.Devices {
		d := &t.Devices[i]
		field := "devices." + d.Kind
		if reason := NameProblem(d.Kind, false); reason != "" {
			p.add(field, "the kind %s", reason)
		}
		d.problems(p, field)
		if i > 0 && t.Devices[i-1].Kind >= d.Kind {
			p.add(field, "must be ordered by kind, each kind once")
		}
		for k := range i {
			if VariableName(t.Devices[k].Kind) == VariableName(d.Kind) {
				p.add(field, "would set the same variable STARLING_DEVICES_%s as %s", VariableName(d.Kind), t.Devices[k].Kind)
			}
		}
	}
	for i, port := range t.Ports {
		field := "ports[" + strconv.Itoa(i) + "]"
		p.name(field+".name", port.Name)
		for k := range i {
			if VariableName(t.Ports[k].Name) == VariableName(port.Name) {
				p.add(field+".name", "would set the same variable STARLING_PORT_%s as ports[%d]", VariableName(port.Name), k)
			}
			if port.Number != 0 && t.Ports[k].Number == port.Number {
				p.add(field+".number", "is also the number of ports[%d]", k)
			}
		}
	}
}

func (t *Task) ruleProblems(p *problems) {
	leaves := 0
	for i := range t.Constraints {
		t.Constraints[i].Problems("constraints["+strconv.Itoa(i)+"]", p.add)
		t.Constraints[i].EachLeaf(func(*constraint.Constraint) { leaves++ })
	}
	if leaves > RequestsPerTaskMax {
		p.add("constraints", "must have at most %d elements with all that is within them, have %d", RequestsPerTaskMax,
			leaves)
	}
	t.labelProblems(p)
	p.text("spread_over", t.SpreadOver)
	if len(t.SpreadOver) > constraint.NameBytesMax {
		p.add("spread_over", "must have at most %d bytes", constraint.NameBytesMax)
	}
}

func (q *DeviceRequest) problems(p *problems, field string) {
	if q.Amount == 0 || !q.Share() && q.Amount%WholeDevice != 0 || q.Amount > DevicesMax*WholeDevice {
		p.add(field, "must be a share of one device, 0.001 to 0.999, or 1 to %d whole devices", DevicesMax)
	}
	if len(q.Models) > RequestsPerTaskMax {
		p.add(field+".models", "must have at most %d elements", RequestsPerTaskMax)
	}
	for i, model := range q.Models {
		at := field + ".models[" + strconv.Itoa(i) + "]"
		p.name(at, model)
		if slices.Contains(q.Models[:i], model) {
			p.add(at, "is there twice")
		}
	}
}

func (t *Task) labelProblems(p *problems) {
	if len(t.Labels) > RequestsPerTaskMax {
		p.add("labels", "must have at most %d elements", RequestsPerTaskMax)
		return
	}
	for i, l := range t.Labels {
		field := "labels." + l.Name
		p.text(field, l.Name+l.Value)
		switch {
		case l.Name == "" || len(l.Name) > constraint.NameBytesMax || len(l.Value) > AttributeBytesMax:
			p.add(field, "must have a name of 1 to %d bytes and a value of at most %d", constraint.NameBytesMax,
				AttributeBytesMax)
		case i > 0 && t.Labels[i-1].Name >= l.Name:
			p.add(field, "must be ordered by name, each name once")
		}
	}
}

// VariableName returns a name in the form in which it is part of an environment variable's: "http-2" gives "HTTP_2".
func VariableName(name string) string {
	return strings.ReplaceAll(strings.ToUpper(name), "-", "_")
}
