// Package domain gives the instances of jobs their names in DNS, and tells what a name means.
//
// In the zone starling, 3.worker.train.ml.starling is instance 3 of task worker of job train in pool ml, and
// worker.train.ml.starling all instances of the task, and train.ml.starling all of the job. The path of a pool stands
// in the order of DNS, the narrowest first: a/b is b.a. Jobs of the default pool are named without it, or with it:
// worker.train.starling, worker.train.default.starling.
//
// A first label that is a number is an instance's. So a task whose own name is a number has names of its instances
// alone.
package domain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"starling/terms"
)

// Zone is what all names end with: "starling".
type Zone string

// DefaultZone is the zone unless another is chosen.
const DefaultZone Zone = "starling"

// ZoneBytesMax bounds a zone: the longest name of an instance fits before it into the 253 bytes of a name in DNS.
const ZoneBytesMax = 50

// Problem returns what is wrong with the zone, or "".
func (z Zone) Problem() string {
	if z == "" || len(z) > ZoneBytesMax {
		return fmt.Sprintf("must have 1 to %d characters, has %d", ZoneBytesMax, len(z))
	}
	for label := range strings.SplitSeq(string(z), ".") {
		if reason := terms.NameProblem(label, false); reason != "" {
			return fmt.Sprintf("label %q %s", label, reason)
		}
		if label != lower(label) || strings.Contains(label, "_") || strings.HasSuffix(label, "-") {
			return fmt.Sprintf(`label %q must be of lower-case letters, digits and "-", and end with a letter or digit`, label)
		}
	}
	return ""
}

// Name is what a name means: the instances of a task, or one of them.
type Name struct {
	Job  terms.JobName
	Task terms.TaskName
	// One tells that the instance with this number is meant, and not all.
	One   bool
	Index uint32
}

// Name returns the full name, without a dot at its end.
func (z Zone) Name(n Name) string {
	var labels []string
	if n.One {
		labels = append(labels, strconv.FormatUint(uint64(n.Index), 10))
	}
	labels = append(labels, string(n.Task))
	path := strings.Split(string(n.Job), "/")
	slices.Reverse(path)
	return strings.Join(append(append(labels, path...), string(z)), ".")
}

// Within returns what stands before the zone, in lower case, as names in DNS have no case; ok is false for names of
// other zones. A dot at the end of a full name may be there or not.
func (z Zone) Within(full string) (name string, ok bool) {
	full = lower(strings.TrimSuffix(full, "."))
	if full == string(z) {
		return "", true
	}
	return strings.CutSuffix(full, "."+string(z))
}

// Parse returns what a name without its zone means; ok is false if no task can have it.
func Parse(name string) (n Name, ok bool) {
	if first, rest, more := strings.Cut(name, "."); more {
		if index, err := strconv.ParseUint(first, 10, 32); err == nil && strconv.FormatUint(index, 10) == first {
			n.One, n.Index, name = true, uint32(index), rest
		}
	}
	task, job, more := strings.Cut(name, ".")
	n.Task = terms.TaskName(task)
	n.Job, ok = Path(job)
	if !more || !ok || terms.NameProblem(task, false) != "" {
		return Name{}, false
	}
	return n, true
}

// Path returns the name of the job, or the path of the pool, that a name without its zone may be: names of tasks lie
// below it. ok is false if there cannot be one.
func Path(name string) (path terms.JobName, ok bool) {
	labels := strings.Split(name, ".")
	slices.Reverse(labels)
	own := len(labels) - 1
	path = terms.NewJobName(terms.PoolPath(strings.Join(labels[:own], "/")), labels[own])
	return path, path.Problem() == "" && !strings.Contains(name, "/")
}

// lower returns a text with its ASCII letters in lower case, which are the only ones that DNS treats so.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
