// Package validate tells whether a job is one that the cluster takes: the one place where a whole job is checked. The
// job file, the API and the fold ask here, so that what one accepts the others do not refuse.
//
// What a job says of a subject of its own is checked beside its type, and asked for here: constraints, policies of a
// lifecycle, plugins.
package validate

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"starling/plugin"
	"starling/terms"
	"starling/terms/rules"
)

// Job returns everything that is wrong with a job, in the order of its fields; nothing for a job that the cluster
// takes. What it asks of plugins is looked at when all else is right. The fold asks with the rules in force, the job
// file and the API with those that their program knows.
func Job(job *terms.Job, in rules.Number) []terms.Problem {
	return (&problems{in: in}).all(job)
}

// all returns all problems of a job.
func (p *problems) all(job *terms.Job) []terms.Problem {
	if p.job(job); len(p.found) > 0 {
		return p.found
	}
	return plugin.RequestProblems(job, p.in)
}

// Submission returns everything that is wrong with a job that a user submits: all of Job, and what the fold takes
// because it always did, such as an instance that asks for so little that nothing would limit it.
func Submission(job *terms.Job) []terms.Problem {
	p := &problems{in: rules.Released, shown: terms.Shown}
	p.found = p.all(job)
	for i := range job.Tasks {
		p.path = "tasks[" + strconv.Itoa(i) + "].resources"
		asked := &job.Tasks[i].Resources
		if asked[terms.CPU] == 0 {
			p.add("cpu", "must be at least 1m, a thousandth of a core: it is the limit, too")
		}
		if asked[terms.Memory] >= 0 && asked[terms.Memory] < memoryBytesLeast {
			p.add("memory", "must be at least %s: it is the limit, too, and no program starts with less",
				terms.Memory.Text(memoryBytesLeast))
		}
	}
	return p.found
}

// memoryBytesLeast is the least memory that an instance is submitted with.
const memoryBytesLeast = 1 << 20

// problems collects problems with the paths at which they were found.
type problems struct {
	in    rules.Number
	path  string
	found []terms.Problem
	// shown is what a reason why a name is wrong becomes; nil for the same.
	shown func(reason, name string) string
}

func (p *problems) add(field, format string, args ...any) {
	path := p.path
	if field != "" && path != "" {
		path += "."
	}
	p.found = append(p.found, terms.Problem{Path: path + field, Reason: fmt.Sprintf(format, args...)})
}

// told returns a reason why a name, or one of a path, is wrong.
func (p *problems) told(reason, path string) string {
	for name := range strings.SplitSeq(path, "/") {
		if p.shown != nil {
			reason = p.shown(reason, name)
		}
	}
	return reason
}

func (p *problems) name(field, value string) {
	if reason := terms.NameProblem(value, false); reason != "" {
		p.add(field, "%s", p.told(reason, value))
	}
}

func (p *problems) text(field, value string) {
	if len(value) > terms.TextBytesMax {
		p.add(field, "must have at most %d bytes, has %d", terms.TextBytesMax, len(value))
	}
	if strings.ContainsRune(value, 0) || !utf8.ValidString(value) {
		p.add(field, "must be UTF-8 without zero bytes")
	}
}

func (p *problems) bounded(field string, value, low, high int64) {
	p.within(field, value, limits{low, high, digits})
}

// millis adds what is wrong with a time.
func (p *problems) millis(field string, value, low, high int64) {
	p.within(field, value, limits{low, high, terms.FormatDuration})
}

// limits are what a value must be within, and how it is written in job files.
type limits struct {
	low, high int64
	text      func(int64) string
}

func digits(n int64) string { return strconv.FormatInt(n, 10) }

// within adds what is wrong with a value that is outside.
func (p *problems) within(field string, value int64, l limits) {
	if p.in < rules.WrittenAmounts {
		l.text = digits
	}
	if value < l.low || value > l.high {
		p.add(field, "must be %s to %s, is %s", l.text(l.low), l.text(l.high), l.text(value))
	}
}
