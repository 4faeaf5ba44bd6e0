package plugin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"starling/terms"
)

// arguments reads the arguments of one plugin, and gathers what is wrong with them.
type arguments struct {
	plugin  string
	request int
	given   []terms.EnvVar
	known   []string
	wrong   []error
}

// value returns what is given for a name; given is false for what the job leaves to the plugin.
func (a *arguments) value(name string) (value string, given bool) {
	a.known = append(a.known, name)
	at := slices.IndexFunc(a.given, func(one terms.EnvVar) bool { return one.Name == name })
	if at < 0 {
		return "", false
	}
	return a.given[at].Value, true
}

// refuse notes that a value is not allowed.
func (a *arguments) refuse(name, allowed, value string) {
	a.fault(name, fmt.Sprintf("must be %s, is %q", allowed, value))
}

func (a *arguments) fault(name, reason string) {
	a.wrong = append(a.wrong, &Fault{Plugin: a.plugin, Argument: name, Reason: reason, Request: a.request})
}

// task reads the name of a task.
func (a *arguments) task(name string, unless terms.TaskName) role {
	value, given := a.value(name)
	if !given {
		return role{name, unless}
	}
	if reason := terms.NameProblem(value, false); reason != "" {
		a.refuse(name, "the name of a task, which "+reason, value)
	}
	return role{name, terms.TaskName(value)}
}

// number reads a number from 1 to 65535.
func (a *arguments) number(name string, unless uint16) uint16 {
	value, given := a.value(name)
	if !given {
		return unless
	}
	number, ok := positive(value)
	if !ok {
		a.refuse(name, "a number from 1 to 65535", value)
	}
	return number
}

// port reads the number of a port, or the name of one that the job asks for.
func (a *arguments) port(name string, unless uint16) portChoice {
	value, given := a.value(name)
	if !given {
		return portChoice{argument: name, number: unless}
	}
	if number, ok := positive(value); ok {
		return portChoice{argument: name, number: number}
	}
	if digits := strings.Trim(value, "0123456789") == ""; digits || terms.NameProblem(value, false) != "" {
		a.refuse(name, "a number from 1 to 65535 or the name of a port of the job", value)
	}
	return portChoice{argument: name, name: value}
}

// positive reads a number from 1 to 65535.
func positive(text string) (uint16, bool) {
	number, err := strconv.ParseUint(text, 10, 16)
	return uint16(number), err == nil && number > 0
}

// truth reads true or false.
func (a *arguments) truth(name string, unless bool) bool {
	switch value, given := a.value(name); {
	case !given:
		return unless
	case value != "true" && value != "false":
		a.refuse(name, "true or false", value)
		return unless
	default:
		return value == "true"
	}
}

// problems returns all that is wrong, once the plugin has read what it knows.
func (a *arguments) problems() []error {
	slices.Sort(a.known)
	allowed := "it has none"
	if len(a.known) > 0 {
		allowed = "there are " + strings.Join(a.known, ", ")
	}
	for i, one := range a.given {
		switch {
		case !slices.Contains(a.known, one.Name):
			a.fault(one.Name, "is not known: "+allowed)
		case slices.ContainsFunc(a.given[:i], func(other terms.EnvVar) bool { return other.Name == one.Name }):
			a.fault(one.Name, "is given twice")
		}
	}
	return a.wrong
}

// role is a task by the argument that chooses it.
type role struct {
	argument string
	task     terms.TaskName
}

// missing returns an error if the job has no such task.
func (r role) missing(job *terms.Job) error {
	var have []string
	for i := range job.Tasks {
		if job.Tasks[i].Name == r.task {
			return nil
		}
		have = append(have, string(job.Tasks[i].Name))
	}
	return fmt.Errorf("argument %s: must be a task of the job, is %q: there are %s", r.argument, r.task,
		strings.Join(have, ", "))
}

// portChoice is a port by its number, or by the name that it has in the job file.
type portChoice struct {
	argument string
	name     string
	number   uint16
}

// missing returns an error if a task of the job does not ask for the port that is named.
func (c portChoice) missing(job *terms.Job, task terms.TaskName) error {
	for i := range job.Tasks {
		t := &job.Tasks[i]
		if t.Name != task || c.name == "" ||
			slices.ContainsFunc(t.Ports, func(p terms.PortRequest) bool { return p.Name == c.name }) {
			continue
		}
		return fmt.Errorf("argument %s: must be a number or a port of task %s, is %q: add it to the task's ports",
			c.argument, task, c.name)
	}
	return nil
}

// of returns the number of a member's port; ok is false if it is not known yet.
func (c portChoice) of(m *Member) (number uint16, ok bool) {
	if c.name == "" {
		return c.number, true
	}
	at := slices.IndexFunc(m.Ports, func(p Port) bool { return p.Name == c.name })
	if at < 0 {
		return 0, false
	}
	return m.Ports[at].Number, true
}

// waits returns the error for a port that is not known yet.
func (c portChoice) waits(m *Member) error {
	return fmt.Errorf("where %s is found is not known: %w", m.Name, ErrWaits)
}
