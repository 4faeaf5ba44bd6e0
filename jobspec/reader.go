package jobspec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/terms"
)

// errorsMax bounds the errors that are kept of a document and of a file; nobody reads more.
const errorsMax = 100

// reader takes one document apart and notes what is wrong with it.
type reader struct {
	file  string
	found Errors
	// kind is the job's type, once it is read: defaults depend on it.
	kind terms.JobType
	// places leads from paths as terms.Problem writes them to where the file says it.
	places map[string]place
	// failed are the places that could not be read; the cluster's complaints about them say nothing new.
	failed []string
}

// place is a value in the file.
type place struct {
	node *yaml.Node
	// shown is the path as the file writes it, known the path as terms.Problem does.
	shown, known string
}

// at returns the place of the value under a key.
func (p place) at(key string, node *yaml.Node) place {
	return place{node: node, shown: joined(p.shown, key), known: joined(p.known, key)}
}

// element returns the place of an element of a list.
func (p place) element(i int, node *yaml.Node) place {
	number := fmt.Sprintf("[%d]", i)
	return place{node: node, shown: p.shown + number, known: p.known + number}
}

func joined(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (r *reader) note(p place) {
	if _, ok := r.places[p.known]; !ok {
		r.places[p.known] = p
	}
}

// isFull tells that enough is wrong with the document.
func (r *reader) isFull() bool { return len(r.found) >= errorsMax }

func (r *reader) fail(p place, format string, args ...any) {
	if r.isFull() {
		return
	}
	r.failed = append(r.failed, p.known)
	r.complain(p, fmt.Sprintf(format, args...))
}

func (r *reader) complain(p place, reason string) {
	if !r.isFull() {
		r.found = append(r.found, &Error{File: r.file, Line: p.node.Line, Column: p.node.Column, Path: p.shown,
			Reason: reason})
	}
}

// plain refuses what makes a value mean something else than what stands there: anchors, aliases and tags.
func (r *reader) plain(p place) bool {
	n := p.node
	switch {
	case n.Kind == yaml.AliasNode:
		r.fail(p, "aliases are not supported: write the value of *%s out", n.Value)
	case n.Anchor != "":
		r.fail(p, "anchors are not supported: remove &%s", n.Anchor)
	case n.Kind == yaml.ScalarNode && n.Style&yaml.TaggedStyle != 0 && strings.HasPrefix(n.Tag, "!="):
		r.fail(p, `put != in quotes: without them a "!" begins a tag`)
	case n.Style&yaml.TaggedStyle != 0 || n.Tag == "!":
		r.fail(p, "tags are not supported: remove %s; to have a text taken as text, put it in quotes", n.Tag)
	default:
		return true
	}
	return false
}

// isNull tells whether nothing was written, or a plain null.
func isNull(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || isQuoted(n) {
		return false
	}
	switch n.Value {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

func isQuoted(n *yaml.Node) bool {
	return n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
}

// expect checks that the value is of a kind; words say what is wanted.
func (r *reader) expect(p place, kind yaml.Kind, words string) bool {
	switch {
	case !r.plain(p):
	case isNull(p.node):
		r.fail(p, "has no value: write %s, or remove it", words)
	case p.node.Kind != kind:
		r.fail(p, "must be %s, is %s", words, kindWords(p.node))
	default:
		return true
	}
	return false
}

func kindWords(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping of keys to values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	}
	return quoted(n.Value)
}

// member is a key of a mapping and its value; both places have the value's path.
type member struct {
	name       string
	key, value place
}

// members takes a mapping apart. Keys that are there twice, or are no texts, are wrong and left out.
func (r *reader) members(p place, words string) (all []member, ok bool) {
	if !r.expect(p, yaml.MappingNode, words) {
		return nil, false
	}
	first := map[string]int{}
	for i := 0; i+1 < len(p.node.Content) && !r.isFull(); i += 2 {
		key, value := p.node.Content[i], p.node.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			r.failKey(place{key, p.shown, p.known})
			continue
		}
		m := member{name: key.Value, key: p.at(key.Value, key), value: p.at(key.Value, value)}
		if !r.plain(m.key) {
			continue
		}
		if line, twice := first[m.name]; twice {
			r.fail(shortened(m.key), "is there twice: its first place is line %d", line)
			continue
		}
		first[m.name] = key.Line
		if isNull(value) && value.Anchor == "" && value.Style&yaml.TaggedStyle == 0 {
			m.value.node = positioned(value, key)
		}
		all = append(all, m)
	}
	return all, true
}

func (r *reader) failKey(p place) {
	switch {
	case p.node.Kind == yaml.AliasNode || p.node.Anchor != "":
		r.plain(p)
	case p.node.Tag == "!!merge":
		r.fail(p, "merge keys are not supported: write the keys of << out")
	default:
		r.fail(p, "a key must be a text, is %s", kindWords(p.node))
	}
}

// positioned returns n at the place of another node: a value that is not there has no place of its own.
func positioned(n, at *yaml.Node) *yaml.Node {
	clone := *n
	clone.Line, clone.Column = at.Line, at.Column
	return &clone
}

// shortened cuts a path that a message cannot bear.
func shortened(p place) place {
	const bytesMax = 200
	if len(p.shown) > bytesMax {
		p.shown = strings.ToValidUTF8(p.shown[:bytesMax], "") + "..."
	}
	return p
}

// problems adds what the cluster has to say, where the file says it.
func (r *reader) problems(root place, all []terms.Problem) {
	for _, problem := range all {
		if !r.hasFailed(problem.Path) {
			at := r.place(root, problem.Path)
			r.complain(shortened(at), problem.Reason)
		}
	}
}

// hasFailed tells whether the path, something above or something below it could not be read.
func (r *reader) hasFailed(path string) bool {
	for _, failed := range r.failed {
		if isWithin(failed, path) || isWithin(path, failed) {
			return true
		}
	}
	return false
}

// isWithin tells whether path is that of outer or of a part of it.
func isWithin(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || outer == "" || rest[0] == '.' || rest[0] == '[')
}

// place returns where the file says what the path names: the value itself, or the nearest around it.
func (r *reader) place(root place, path string) place {
	if at, ok := r.places[path]; ok {
		return at
	}
	for outer := path; ; {
		end := strings.LastIndexAny(outer, ".[")
		if end < 0 {
			return place{node: root.node, shown: path}
		}
		outer = outer[:end]
		if at, ok := r.places[outer]; ok {
			return place{node: at.node, shown: at.shown + path[len(outer):]}
		}
	}
}

// Error is one thing wrong with a job file, at the place where it can be put right.
type Error struct {
	File string
	// Line and Column count from 1; a column is a character.
	Line, Column int
	// Path leads to the value as the file writes it: "tasks[0].resources.cpu". It is empty for what is no value.
	Path   string
	Reason string
}

// Error returns "file:line:column: path: reason".
func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", e.File, e.Line, e.Column, e.Path, e.Reason)
}

// Errors is everything that is wrong with a job file, ordered by position.
type Errors []*Error

// Error returns a line for each.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// ordered sorts by position.
func (e Errors) ordered() Errors {
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return e
}
