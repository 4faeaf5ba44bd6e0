package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"starling/terms"
	"starling/terms/rules"
)

// Plugin gives the members of a job what one framework, or one way to find each other, needs. See the package for when
// its methods are called.
type Plugin interface {
	// Name returns the plugin's name in job files.
	Name() string
	// OnJobAdd returns what is wrong with a job that asks for the plugin.
	OnJobAdd(job *terms.Job) error
	// OnInstanceCreate returns what a new instance gets: all its files, too.
	OnInstanceCreate(r *Roster, self *Self) (Environment, error)
	// OnJobUpdate returns all files that an instance is to have.
	OnJobUpdate(r *Roster, self *Self) ([]File, error)
}

// Environment is what an instance starts with.
type Environment struct {
	// Env is ordered by name, each name once.
	Env []terms.EnvVar
	// Files are ordered by path, each path once.
	Files []File
}

// File is a file for an instance.
type File struct {
	// Path is below the folder of the instance.
	Path    string
	Content []byte
	// Key stands behind the content. Only who writes the file knows it.
	Key Key
	// Secret files are for the user alone who runs the instance.
	Secret bool
}

// Key is one of the job's keys, which each machine derives for itself, in the format of OpenSSH.
type Key uint8

// The keys. Those of hosts are by which servers of the job are known, the others by which its members log in.
const (
	NoKey Key = iota
	LoginPrivate
	LoginPublic
	HostPrivate
	HostPublic
)

// ErrWaits tells that something is asked for that is not known before another instance has a node, such as its port: it
// may be there in the next version of the list.
var ErrWaits = errors.New("another instance has no node yet")

// valueBytesMax bounds the value of a variable: programs with longer ones cannot be started.
const valueBytesMax = 120 << 10

// Set is the plugins of a job, each once, in a fixed order.
type Set []Plugin

// kind is a plugin that a job may ask for. It brings those that it needs with it.
type kind struct {
	name  string
	needs []string
	build func(a *arguments) Plugin
}

// kinds lists all plugins that the rules have. Each comes behind those that it needs.
func kinds(in rules.Number) []kind {
	return rules.Known(in, []rules.Row[kind]{
		{Since: rules.First, Value: kind{"env", nil, newEnv}},
		{Since: rules.First, Value: kind{"svc", nil, newSvc}},
		{Since: rules.First, Value: kind{"ssh", []string{"svc"}, newSSH}},
		{Since: rules.First, Value: kind{"mpi", []string{"svc", "ssh"}, newMPI}},
		{Since: rules.First, Value: kind{"pytorch", []string{"svc"}, newPytorch}},
		{Since: rules.First, Value: kind{"ray", []string{"svc"}, newRay}},
		{Since: rules.First, Value: kind{"tensorflow", []string{"svc"}, newTensorflow}},
	})
}

// Names returns the names of all plugins that the rules have.
func Names(in rules.Number) []string {
	var all []string
	for _, k := range kinds(in) {
		all = append(all, k.name)
	}
	return all
}

// Arguments returns the names of all arguments of a plugin that the rules have.
func Arguments(name string, in rules.Number) []string {
	a := &arguments{plugin: name}
	for _, k := range kinds(in) {
		if k.name == name {
			k.build(a)
		}
	}
	slices.Sort(a.known)
	return a.known
}

// NewSet returns the plugins that are asked for and those that they need, or all that is wrong with the requests: each
// is a Fault. It is a question to the rules which plugins there are, so that all peers take the same jobs.
func NewSet(requests []terms.PluginRequest, in rules.Number) (Set, error) {
	known := kinds(in)
	var wrong []error
	for i, request := range requests {
		switch {
		case !slices.Contains(Names(in), request.Name):
			wrong = append(wrong, &Fault{Reason: fmt.Sprintf("plugin %q is not known: there are %s", request.Name,
				strings.Join(Names(in), ", ")), Request: i})
		case slices.ContainsFunc(requests[:i], func(r terms.PluginRequest) bool { return r.Name == request.Name }):
			wrong = append(wrong, &Fault{Plugin: request.Name, Reason: "is asked for twice", Request: i})
		}
	}
	var set Set
	for _, k := range known {
		a := &arguments{plugin: k.name}
		asked := false
		for i, request := range requests {
			asked = asked || request.Name == k.name || k.neededBy(request.Name, known)
			if request.Name == k.name && a.given == nil {
				a.given, a.request = request.Arguments, i
			}
		}
		if !asked {
			continue
		}
		set = append(set, k.build(a))
		wrong = append(wrong, a.problems()...)
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return set, nil
}

// neededBy tells whether a plugin brings this one with it.
func (k kind) neededBy(name string, known []kind) bool {
	return slices.ContainsFunc(known, func(other kind) bool {
		return other.name == name && slices.Contains(other.needs, k.name)
	})
}

// OnJobAdd returns all that is wrong with a job that asks for the plugins.
func (s Set) OnJobAdd(job *terms.Job) error {
	var wrong []error
	for _, p := range s {
		if err := p.OnJobAdd(job); err != nil {
			wrong = append(wrong, fmt.Errorf("plugin %s: %w", p.Name(), err))
		}
	}
	return errors.Join(wrong...)
}

// OnInstanceCreate returns what a new instance gets from all plugins.
func (s Set) OnInstanceCreate(r *Roster, self *Self) (Environment, error) {
	var all Environment
	if err := r.listed(self); err != nil {
		return all, err
	}
	for _, p := range s {
		environment, err := p.OnInstanceCreate(r, self)
		if err != nil {
			return Environment{}, fmt.Errorf("plugin %s: %w", p.Name(), err)
		}
		for _, v := range environment.Env {
			if len(v.Value) > valueBytesMax {
				return Environment{}, fmt.Errorf("plugin %s: %s would have %d bytes, a program takes at most %d: the job has too many instances for it",
					p.Name(), v.Name, len(v.Value), valueBytesMax)
			}
		}
		all.Env, all.Files = append(all.Env, environment.Env...), append(all.Files, environment.Files...)
	}
	slices.SortStableFunc(all.Env, func(a, b terms.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	sortFiles(all.Files)
	return all, nil
}

// OnJobUpdate returns all files that an instance is to have from all plugins.
func (s Set) OnJobUpdate(r *Roster, self *Self) ([]File, error) {
	if err := r.listed(self); err != nil {
		return nil, err
	}
	var all []File
	for _, p := range s {
		files, err := p.OnJobUpdate(r, self)
		if err != nil {
			return nil, fmt.Errorf("plugin %s: %w", p.Name(), err)
		}
		all = append(all, files...)
	}
	sortFiles(all)
	return all, nil
}

// listed returns an error for an instance that is not on the list.
func (r *Roster) listed(self *Self) error {
	if _, ok := r.position(self); !ok {
		return fmt.Errorf("%s is not a member of its job in version %d",
			terms.SlotName{Job: r.Job, Task: self.Task, Index: self.Index}, r.Version)
	}
	return nil
}

func sortFiles(files []File) {
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
}

// bare is a plugin that wants nothing of a job and has no files.
type bare struct{}

func (bare) OnJobAdd(*terms.Job) error                  { return nil }
func (bare) OnJobUpdate(*Roster, *Self) ([]File, error) { return nil, nil }
