package jobspec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/terms"
)

// Change is one difference between two versions of a job.
type Change struct {
	// Path leads to it by keys of job files, with tasks by name: "tasks.server.resources.cpu".
	Path string
	// Old and New are the values as job files write them, "" if absent. Of texts of several lines only those that differ.
	Old, New string
	// Effect is what becomes of instances because of it.
	Effect Effect
}

// Effect is what a difference does to instances, in words.
type Effect string

// The effects.
const (
	// InPlace: what runs goes on.
	InPlace Effect = "in place"
	// MayReplace: instances are replaced whose nodes do not satisfy the new rules.
	MayReplace Effect = "may replace"
	// Replaces: all instances of the task are replaced.
	Replaces Effect = "replaces"
	// Starts and Stops: there are more instances, or fewer.
	Starts Effect = "starts"
	Stops  Effect = "stops"
)

// effectOf returns what a difference between two versions of a task does.
func effectOf(from, to *terms.Task, change terms.Difference) Effect {
	switch {
	case change.Change == terms.Replace:
		return Replaces
	case change.Change == terms.ByNode:
		return MayReplace
	case from.Instances < to.Instances && change.Key == "instances":
		return Starts
	case change.Key == "instances":
		return Stops
	}
	return InPlace
}

// Diff lists what differs from one version of a job to another, in the order of job files. Both must be valid.
func Diff(from, to *terms.Job) []Change {
	d := &comparison{effect: InPlace}
	old, new := jobForm().write(from), jobForm().write(to)
	oldTasks, newTasks := without(old, "tasks"), without(new, "tasks")
	replaces := from.ChangeTo(to) == terms.Replace
	for _, key := range keys(new, old) {
		if d.effect = InPlace; replaces && key == "plugins" {
			d.effect = Replaces
		}
		d.nodes(key, value(old, key), value(new, key))
	}
	d.effect = InPlace
	names := to.TaskNames()
	if kept := from.TaskNames(); len(kept) == len(names) && !slices.Equal(kept, names) && sameSet(kept, names) {
		d.add("tasks", strings.Join(kept, ", "), strings.Join(names, ", "))
	}
	for i := range to.Tasks {
		path := "tasks." + names[i]
		if k := slices.Index(from.TaskNames(), names[i]); k >= 0 {
			d.from, d.to = &from.Tasks[k], &to.Tasks[i]
			d.task(path, oldTasks.Content[k], newTasks.Content[i])
		} else {
			d.effect = Starts
			d.add(path, "", summary(&to.Tasks[i]))
		}
	}
	d.effect = Stops
	for i := range from.Tasks {
		if name := string(from.Tasks[i].Name); !slices.Contains(names, name) {
			d.add("tasks."+name, summary(&from.Tasks[i]), "")
		}
	}
	return d.changes
}

// comparison collects differences.
type comparison struct {
	changes []Change
	// effect is that of what is found now.
	effect Effect
	// from and to are the versions of the task that is compared.
	from, to *terms.Task
}

func (d *comparison) add(path, old, new string) {
	d.changes = append(d.changes, Change{Path: path, Old: old, New: new, Effect: d.effect})
}

func (d *comparison) task(path string, old, new *yaml.Node) {
	changed := d.from.Differences(d.to)
	for _, key := range keys(new, old) {
		d.effect = InPlace
		if at := slices.IndexFunc(changed, func(c terms.Difference) bool { return c.Key == key }); at >= 0 {
			d.effect = effectOf(d.from, d.to, changed[at])
		}
		d.nodes(path+"."+key, value(old, key), value(new, key))
	}
}

func (d *comparison) mappings(path string, old, new *yaml.Node) {
	for _, key := range keys(new, old) {
		d.nodes(joined(path, key), value(old, key), value(new, key))
	}
}

// nodes compares two values; either may be nil.
func (d *comparison) nodes(path string, old, new *yaml.Node) {
	switch {
	case old == nil || new == nil || old.Kind != new.Kind:
		d.add(path, inline(old), inline(new))
	case old.Kind == yaml.MappingNode:
		d.mappings(path, old, new)
	case old.Kind == yaml.SequenceNode && isList(old) && isList(new):
		for i := range max(len(old.Content), len(new.Content)) {
			d.nodes(fmt.Sprintf("%s[%d]", path, i), element(old, i), element(new, i))
		}
	case old.Kind == yaml.ScalarNode && old.Value != new.Value:
		a, b := differing(old.Value, new.Value)
		d.add(path, a, b)
	case old.Kind == yaml.SequenceNode && inline(old) != inline(new):
		d.add(path, inline(old), inline(new))
	}
}

// isList tells whether the elements have parts of their own, so that they are compared one by one.
func isList(n *yaml.Node) bool { return n.Content[0].Kind == yaml.MappingNode }

func element(n *yaml.Node, i int) *yaml.Node {
	if i < len(n.Content) {
		return n.Content[i]
	}
	return nil
}

// keys returns the keys of the first mapping, and those that only the second has.
func keys(first, second *yaml.Node) []string {
	var all []string
	for _, n := range []*yaml.Node{first, second} {
		for i := 0; i < len(n.Content); i += 2 {
			if key := n.Content[i].Value; !slices.Contains(all, key) {
				all = append(all, key)
			}
		}
	}
	return all
}

// value returns the value under a key, nil if there is none.
func value(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// without takes a key out of a mapping, and returns its value.
func without(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			taken := n.Content[i+1]
			n.Content = slices.Delete(n.Content, i, i+2)
			return taken
		}
	}
	return nil
}

// inline writes a value into one line.
func inline(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	var parts []string
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			parts = append(parts, n.Content[i].Value+": "+inline(n.Content[i+1]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		for _, child := range n.Content {
			parts = append(parts, inline(child))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if n.Value == "" || strings.ContainsAny(n.Value, "\n\"[]{},") {
		return strconv.Quote(n.Value)
	}
	return n.Value
}

// differing returns two texts without the lines at the begin and the end that they share.
func differing(old, new string) (string, string) {
	a, b := strings.Split(old, "\n"), strings.Split(new, "\n")
	for len(a) > 1 && len(b) > 1 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 1 && len(b) > 1 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return strings.Join(a, "\n"), strings.Join(b, "\n")
}

// summary says of a whole task what it runs.
func summary(t *terms.Task) string {
	return fmt.Sprintf("{instances: %d, command: %s}", t.Instances, inline(commandForm().write(&t.Command)))
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
