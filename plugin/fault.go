package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"starling/terms"
	"starling/terms/rules"
)

// Fault is one thing wrong with what a job asks of a plugin.
type Fault struct {
	// Plugin and Argument say of which; either may be empty.
	Plugin, Argument string
	Reason           string
	// Request is the number of the request.
	Request int
}

// Error returns the fault in a line.
func (f *Fault) Error() string {
	text := f.Reason
	if f.Argument != "" {
		text = "argument " + f.Argument + ": " + text
	}
	if f.Plugin != "" {
		text = "plugin " + f.Plugin + ": " + text
	}
	return text
}

// InstancesMax bounds the instances of a job with plugins: each has a list of all of them.
const InstancesMax = 10_000

// RequestProblems returns what is wrong with what a job asks of plugins, whose all else is right: see package validate.
func RequestProblems(job *terms.Job, in rules.Number) []terms.Problem {
	if len(job.Plugins) == 0 {
		return nil
	}
	set, err := NewSet(job.Plugins, in)
	if err != nil {
		return faults(err)
	}
	var all []terms.Problem
	for _, p := range set {
		if err := p.OnJobAdd(job); err != nil {
			all = append(all, terms.Problem{Path: pathOf(job, p, kinds(in)),
				Reason: fmt.Sprintf("plugin %s: %v", p.Name(), err)})
		}
	}
	instances := uint64(0)
	for i := range job.Tasks {
		instances += uint64(job.Tasks[i].Instances)
	}
	if instances > InstancesMax {
		all = append(all, terms.Problem{Path: "plugins", Reason: fmt.Sprintf(
			"must be absent in a job of more than %d instances, has %d: each would have a list of all", InstancesMax,
			instances)})
	}
	return all
}

// faults returns the problems of the errors that NewSet has joined.
func faults(err error) (all []terms.Problem) {
	parts := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		parts = joined.Unwrap()
	}
	for _, part := range parts {
		var f *Fault
		if !errors.As(part, &f) {
			continue
		}
		path := "plugins[" + strconv.Itoa(f.Request) + "]"
		if f.Argument != "" {
			path += "." + f.Argument
		}
		all = append(all, terms.Problem{Path: path, Reason: f.Reason})
	}
	return all
}

// pathOf returns the path of the request that brings a plugin.
func pathOf(job *terms.Job, p Plugin, known []kind) string {
	at := slices.IndexFunc(job.Plugins, func(q terms.PluginRequest) bool { return q.Name == p.Name() })
	for i := range job.Plugins {
		for _, k := range known {
			if at < 0 && k.name == p.Name() && k.neededBy(job.Plugins[i].Name, known) {
				at = i
			}
		}
	}
	return "plugins[" + strconv.Itoa(max(at, 0)) + "]"
}
