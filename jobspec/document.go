package jobspec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"starling/jobspec/together"
	"starling/terms"
	"starling/validate"
)

// Limits of a file.
const (
	// FileBytesMax bounds a job file: no job that the cluster takes needs half as much.
	FileBytesMax = 1 << 20
	// PoolsBytesMax bounds a pools file: the largest tree takes half as much.
	PoolsBytesMax = 4 << 20
	// depthMax bounds how deep values are nested; job files need 6.
	depthMax = 50
)

// Document is one job of a job file.
type Document struct {
	Spec terms.Job
	// Line is where the job begins, from 1.
	Line int
}

// Parse reads a job file: YAML 1.2 (or JSON), one job a document. The error, if any, is of type Errors and holds
// everything that is wrong with all documents, at most the first hundred; file names the data in it. A job is returned
// behind those of the file that it comes after.
func Parse(file string, data []byte) ([]Document, error) {
	form := jobForm()
	var documents []Document
	found := eachDocument(file, data, FileBytesMax,
		func(r *reader, root *yaml.Node) { documents = append(documents, r.document(form, root)) })
	if len(found) == 0 {
		documents, found = ordered(file, documents)
	}
	switch {
	case len(found) > errorsMax:
		return nil, found[:errorsMax]
	case len(found) > 0:
		return nil, found
	case len(documents) == 0:
		return nil, Errors{{File: file, Line: 1, Column: 1, Reason: "holds no job: `starling init` writes files to begin with"}}
	}
	return documents, nil
}

// eachDocument gives the documents that are not empty to read, each with a reader of its own, and returns what is wrong
// with them.
func eachDocument(file string, data []byte, bytesMax int, read func(r *reader, root *yaml.Node)) Errors {
	if err := unreadable(file, data, bytesMax); err != nil {
		return Errors{err}
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(depthMax))))
	if err != nil {
		panic("jobspec: the options of the YAML loader are wrong: " + err.Error()) // they are constant
	}
	var found Errors
	for len(found) < errorsMax {
		var root yaml.Node
		err := loader.Load(&root)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return append(found, syntaxError(file, data, err))
		}
		if isEmpty(&root) {
			continue
		}
		r := &reader{file: file, places: map[string]place{}}
		read(r, root.Content[0])
		found = append(found, r.found.ordered()...)
	}
	return found
}

// document reads one document that is not empty.
func (r *reader) document(form form[terms.Job], node *yaml.Node) Document {
	root := place{node: node}
	d := Document{Line: node.Line}
	form.read(r, root, &d.Spec)
	r.problems(root, append(validate.Submission(&d.Spec), idle(&d.Spec)...))
	return d
}

// isEmpty tells whether nothing stands between two document markers.
func isEmpty(root *yaml.Node) bool {
	return len(root.Content) == 0 || isNull(root.Content[0]) && root.Content[0].Value == "" && root.Content[0].Anchor == ""
}

// ordered returns the documents in the order in which their jobs can be submitted, or what is wrong between them.
func ordered(file string, documents []Document) (all []Document, found Errors) {
	var jobs []together.Job
	for _, d := range documents {
		jobs = append(jobs, together.Job{Name: d.Spec.Name, After: d.Spec.After, Line: d.Line})
	}
	order, wrong := together.Order(jobs)
	for _, p := range append(together.Same(jobs), wrong...) {
		found = append(found, &Error{File: file, Line: jobs[p.Job].Line, Column: 1, Path: p.Path, Reason: p.Reason})
	}
	for _, i := range order {
		all = append(all, documents[i])
	}
	return all, found
}

// unreadable says why the data are no text that could be read at all; nil if they are.
func unreadable(file string, data []byte, bytesMax int) *Error {
	if len(data) > bytesMax {
		return &Error{File: file, Line: 1, Column: 1,
			Reason: fmt.Sprintf("is too large: it has %d bytes, at most %d are read; put large input into files of their own", len(data), bytesMax)}
	}
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		reason := ""
		switch {
		case c == utf8.RuneError && size == 1:
			reason = "is not UTF-8 from here on: save it in that encoding"
		case c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0xfffe || c == 0xffff:
			reason = fmt.Sprintf(`holds the control character %U: write it in double quotes as "\x%02x"`, c, c)
		}
		if reason != "" {
			line, column := positionOf(data[:i])
			return &Error{File: file, Line: line, Column: column, Reason: reason}
		}
		i += size
	}
	return nil
}

// positionOf returns the line and column that follow the text.
func positionOf(text []byte) (line, column int) {
	last := bytes.LastIndexByte(text, '\n') + 1
	return bytes.Count(text, []byte("\n")) + 1, utf8.RuneCount(text[last:]) + 1
}

// syntaxError says where the text is not YAML, and what to write instead where the mistake is a common one.
func syntaxError(file string, data []byte, err error) *Error {
	found := &Error{File: file, Line: 1, Column: 1, Reason: "is not YAML: " + err.Error()}
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		return found
	}
	if load.Mark.Line > 0 {
		found.Line, found.Column = load.Mark.Line, max(load.Mark.Column, 1)
	}
	found.Reason = "is not YAML: " + load.Message
	if load.ContextMsg != "" {
		found.Reason += fmt.Sprintf(" %s at line %d", load.ContextMsg, max(load.ContextMark.Line, 1))
	}
	if hint := syntaxHint(characterAt(data, found.Line, found.Column), load); hint != "" {
		found.Reason += ": " + hint
	}
	return found
}

func syntaxHint(c rune, load *yaml.LoadError) string {
	switch {
	case strings.Contains(load.Message, "Unicode character escape"):
		return `write the character itself, or as "\U0001F600" with eight digits`
	case strings.Contains(load.ContextMsg, "block scalar"):
		return `a text that begins with ">" or "|" needs quotes`
	case c == '\t':
		return "indent with spaces, not with tabs"
	case c != 0 && strings.ContainsRune("@`%>|", c):
		return fmt.Sprintf("a text that begins with %q needs quotes", string(c))
	case strings.Contains(load.Message, "mapping values are not allowed"):
		return `a text with ": " in it needs quotes; a key stands in a line of its own`
	case strings.Contains(load.Message, "could not find expected ':'"):
		return "a key needs a colon and a space behind it"
	}
	return ""
}

// characterAt returns the character at a position, 0 if there is none.
func characterAt(data []byte, line, column int) rune {
	for ; line > 1; line-- {
		_, after, found := bytes.Cut(data, []byte("\n"))
		if !found {
			return 0
		}
		data = after
	}
	for ; column > 1 && len(data) > 0; column-- {
		_, size := utf8.DecodeRune(data)
		data = data[size:]
	}
	c, _ := utf8.DecodeRune(data)
	if c == utf8.RuneError {
		return 0
	}
	return c
}

// idle tells what in a job file would do nothing. The cluster takes such jobs, so this is only about files: who writes
// a setting there expects something of it.
func idle(spec *terms.Job) []terms.Problem {
	var found []terms.Problem
	add := func(path, why string) { found = append(found, terms.Problem{Path: path, Reason: why}) }
	if spec.Percent > 0 && !spec.Shares() {
		add("percent", "does nothing without a task_scheduler: it is a part of the virtual peers of the pool, and only such jobs have any")
	}
	for i := range spec.Tasks {
		t, path := &spec.Tasks[i], "tasks["+strconv.Itoa(i)+"]."
		if t.Percent > 0 && spec.TaskScheduler != terms.TaskPercentage {
			add(path+"percent", "does nothing without task_scheduler: percentage")
		}
		if t.OnMembersChange != terms.NoSignal && len(spec.Plugins) == 0 {
			add(path+"on_members_change", "does nothing without plugins, such as svc: there are no files about the members that could change")
		}
	}
	for i := range spec.Tasks {
		if at, word := unexpanded(spec.Tasks[i].Command); at >= 0 {
			add(fmt.Sprintf("tasks[%d].command[%d]", i, at), word+" is not replaced in a list: write the command as one text, "+
				"which a shell reads, or [sh, -c, …]")
		}
	}
	return found
}

// unexpanded finds an argument that names a variable of instances which nothing replaces: no shell is told to read it.
func unexpanded(command []string) (at int, word string) {
	shell, variable := regexp.MustCompile(`^-[a-z]*c$`), regexp.MustCompile(`\$\{?STARLING_\w+\}?`)
	for i, argument := range command {
		if shell.MatchString(argument) {
			break
		}
		if word := variable.FindString(argument); word != "" {
			return i, word
		}
	}
	return -1, ""
}

// Command returns the job that runs one program once: batch, one task "main", one instance, no second try here or
// elsewhere, and the defaults of job files for the rest.
func Command(name string, argv []string) terms.Job {
	var task terms.Task
	taskForm().read(&reader{places: map[string]place{}}, place{node: &yaml.Node{Kind: yaml.MappingNode}}, &task)
	task.Name, task.Command, task.Restart.AttemptsMax, task.Reschedule.AttemptsMax = "main", argv, 0, 0
	return terms.Job{
		Name: terms.JobName(name), Type: terms.Batch, Priority: terms.PriorityDefault, Tasks: []terms.Task{task},
	}
}
