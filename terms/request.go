package terms

import (
	"slices"
	"strconv"
)

// PluginRequest asks for a plugin, which tells the members of a job about each other. Package plugin knows them all.
type PluginRequest struct {
	Name string
	// Arguments are ordered by name, each name once.
	Arguments []EnvVar
}

// PluginsMax bounds the plugins that a job asks for, and the arguments of each.
const PluginsMax = 16

func (q PluginRequest) equal(other PluginRequest) bool {
	return q.Name == other.Name && slices.Equal(q.Arguments, other.Arguments)
}

// pluginProblems adds what is wrong with the form of what the job asks of plugins; what they make of it they say
// themselves.
func (s *Job) pluginProblems(p *problems) {
	if len(s.Plugins) > PluginsMax {
		p.add("plugins", "must have at most %d elements, has %d", PluginsMax, len(s.Plugins))
		return
	}
	for i, q := range s.Plugins {
		field := "plugins[" + strconv.Itoa(i) + "]"
		p.name(field, q.Name)
		if len(q.Arguments) > PluginsMax {
			p.add(field, "must have at most %d arguments, has %d", PluginsMax, len(q.Arguments))
			return
		}
		for k, a := range q.Arguments {
			p.name(field+"."+a.Name, a.Name)
			p.text(field+"."+a.Name, a.Value)
			switch {
			case len(a.Value) > AttributeBytesMax:
				p.add(field+"."+a.Name, "must have at most %d bytes, has %d", AttributeBytesMax, len(a.Value))
			case k > 0 && q.Arguments[k-1].Name >= a.Name:
				p.add(field, "arguments must be ordered by name, each name once")
			}
		}
	}
	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.OnMembersChange > SignalUser2 {
			p.add("tasks["+strconv.Itoa(i)+"].on_members_change", "must be one of %q", Signals())
		}
	}
}

// Signal is what a running instance is sent when the files about its job's members have changed.
type Signal uint8

// The signals.
const (
	// NoSignal sends nothing: the instance looks at its files when it likes.
	NoSignal Signal = iota
	SignalHangUp
	SignalUser1
	SignalUser2
)

// Signals lists every signal's name in job files at its number.
func Signals() []string { return []string{"none", "SIGHUP", "SIGUSR1", "SIGUSR2"} }

// String returns the signal's name in job files.
func (s Signal) String() string { return Signals()[s] }
