package jobspec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/jobspec/meant"
	"starling/terms"
)

// form is one way to write values: how they are read and written, and what the schema and the reference say of it.
type form[V any] struct {
	// words say in a message what is wanted.
	words  string
	schema object
	read   func(*reader, place, *V)
	// write returns nil for a value that needs not be written.
	write func(*V) *yaml.Node
	// rows are the keys of a mapping, or of the mappings in a list.
	rows []row
}

// row is one key of a mapping, as the schema and the reference see it.
type row struct {
	name, doc, words string
	// batch, service and daemon are what stands for an absent key, as it could be written, in batch jobs, stateless and
	// stateful ones, and daemon jobs; all empty if nothing does.
	batch, service, daemon string
	required               bool
	schema                 object
	rows                   []row
}

// field is one key of the mapping that a T is written as.
type field[T any] struct {
	row
	read  func(*reader, place, *T)
	write func(*T) *yaml.Node
}

// bind makes a field of a form and the place in T where its value is kept.
func bind[T, V any](f form[V], at func(*T) *V) field[T] {
	return field[T]{
		row:   row{words: f.words, schema: f.schema, rows: f.rows},
		read:  func(r *reader, p place, into *T) { f.read(r, p, at(into)) },
		write: func(from *T) *yaml.Node { return f.write(at(from)) },
	}
}

// named gives the field its key, and one sentence that explains it.
func (f field[T]) named(name, doc string) field[T] {
	f.name, f.doc = name, doc
	return f
}

// must says that the key may not be absent.
func (f field[T]) must() field[T] {
	f.required = true
	return f
}

// or says what stands for an absent key, in the form in which it could be written.
func (f field[T]) or(text string) field[T] { return f.orByType(text, text, text) }

// orByType says what stands for an absent key in jobs of each type.
func (f field[T]) orByType(batch, service, daemon string) field[T] {
	f.batch, f.service, f.daemon = batch, service, daemon
	return f
}

// quiet leaves the key out where it would say what an absent one does.
func (f field[T]) quiet() field[T] {
	write := f.write
	f.write = func(from *T) *yaml.Node {
		if n := write(from); n != nil && n.Value != f.batch {
			return n
		}
		return nil
	}
	return f
}

// mapping is a mapping with known keys. After all are read, check sees which were given.
func mapping[T any](fields []field[T], check func(r *reader, p place, given map[string]place, into *T)) form[T] {
	f := form[T]{words: "a mapping with the keys " + strings.Join(names(fields), ", ")}
	for _, field := range fields {
		f.rows = append(f.rows, field.row)
	}
	f.schema = mappingSchema(f.rows)
	f.read = func(r *reader, p place, into *T) {
		given := map[string]place{}
		members, ok := r.members(p, f.words)
		for _, m := range members {
			r.note(m.value)
			given[m.name] = m.value
			if !hasName(fields, m.name) && !r.isFull() {
				likely := meant.Of(m.name, names(fields))
				if likely != "" {
					r.failed = append(r.failed, p.at(likely, nil).known)
				}
				r.fail(shortened(m.key), "unknown key%s",
					cmp.Or(meant.Words(likely), "; known are "+strings.Join(names(fields), ", ")))
			}
		}
		if !ok {
			return
		}
		for i := range fields {
			fields[i].readFrom(r, p, given, into)
		}
		if check != nil {
			check(r, p, given, into)
		}
	}
	f.write = func(from *T) *yaml.Node {
		n := &yaml.Node{Kind: yaml.MappingNode}
		for i := range fields {
			if value := fields[i].write(from); value != nil {
				n.Content = append(n.Content, scalar(fields[i].name), value)
			}
		}
		return n
	}
	return f
}

// readFrom reads the field from the mapping at p, or what stands for it if it was not given.
func (f *field[T]) readFrom(r *reader, p place, given map[string]place, into *T) {
	if value, ok := given[f.name]; ok {
		f.read(r, value, into)
		return
	}
	absent := p.at(f.name, &yaml.Node{Kind: yaml.ScalarNode, Line: p.node.Line, Column: p.node.Column})
	absent.node.Value = f.batch
	switch r.kind {
	case terms.Stateless, terms.Stateful:
		absent.node.Value = f.service
	case terms.Daemon:
		absent.node.Value = f.daemon
	}
	switch {
	case f.required && r.hasFailed(absent.known): // it was misspelt
	case f.required:
		r.fail(absent, "is missing: %s", strings.ToLower(f.doc[:1])+strings.TrimSuffix(f.doc[1:], "."))
	case absent.node.Value == allDefaults:
		absent.node.Kind = yaml.MappingNode
		f.read(r, absent, into)
	case absent.node.Value != "":
		f.read(r, absent, into)
	}
}

// allDefaults stands for an absent mapping whose keys have defaults.
const allDefaults = "{}"

func names[T any](fields []field[T]) []string {
	all := make([]string, len(fields))
	for i := range fields {
		all[i] = fields[i].name
	}
	return all
}

func hasName[T any](fields []field[T], name string) bool {
	for i := range fields {
		if fields[i].name == name {
			return true
		}
	}
	return false
}

// list is a list of low to high values of one form.
func list[V any](each form[V], low, high int) form[[]V] {
	return form[[]V]{
		words:  fmt.Sprintf("a list of %d to %d elements", low, high),
		schema: object{{"type", "array"}, {"items", each.schema}, {"minItems", low}, {"maxItems", high}},
		rows:   each.rows,
		read: func(r *reader, p place, into *[]V) {
			if !r.expect(p, yaml.SequenceNode, "a list") {
				return
			}
			if n := len(p.node.Content); n < low || n > high {
				r.fail(p, "must have %d to %d elements, has %d", low, high, n)
				return
			}
			for i, node := range p.node.Content {
				at := p.element(i, node)
				r.note(at)
				var value V
				each.read(r, at, &value)
				*into = append(*into, value)
			}
		},
		write: func(from *[]V) *yaml.Node {
			if len(*from) == 0 {
				return nil
			}
			n := &yaml.Node{Kind: yaml.SequenceNode}
			for i := range *from {
				n.Content = append(n.Content, each.write(&(*from)[i]))
			}
			return n
		},
	}
}

// entries is a mapping from names to values, kept as a list of E. Split leads to the two parts of one.
type entries[E, V any] struct {
	// words say what is wanted, keys is the schema of a name, most bounds their number.
	words string
	keys  object
	most  int
	each  form[V]
	split func(*E) (name *string, value *V)
	// numbered returns the paths by which the cluster names the name and the value of entry i, relative to the list's own;
	// such entries stay in the order of the file. Without it they are in the order of their names, which are the paths.
	numbered func(i int) (ofName, ofValue string)
}

// variables is a mapping from names to texts.
func variables(words string, keys object, most int, each form[string]) form[[]terms.EnvVar] {
	return entries[terms.EnvVar, string]{words: words, keys: keys, most: most, each: each,
		split: func(e *terms.EnvVar) (*string, *string) { return &e.Name, &e.Value }}.form()
}

func (e entries[E, V]) form() form[[]E] {
	return form[[]E]{
		words: e.words,
		schema: object{{"type", "object"}, {"maxProperties", e.most}, {"propertyNames", e.keys},
			{"additionalProperties", e.each.schema}},
		rows:  e.each.rows,
		read:  e.read,
		write: e.write,
	}
}

func (e entries[E, V]) read(r *reader, p place, into *[]E) {
	members, _ := r.members(p, e.words)
	if len(members) > e.most {
		r.fail(p, "must have at most %d keys, has %d", e.most, len(members))
		return
	}
	if e.numbered == nil {
		slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	}
	for i, m := range members {
		ofName, ofValue := "."+m.name, "."+m.name
		if e.numbered != nil {
			ofName, ofValue = e.numbered(i)
		}
		m.key.known, m.value.known = p.known+ofName, p.known+ofValue
		r.note(m.key)
		r.note(m.value)
		var one E
		name, value := e.split(&one)
		*name = m.name
		e.each.read(r, m.value, value)
		*into = append(*into, one)
	}
}

func (e entries[E, V]) write(from *[]E) *yaml.Node {
	if len(*from) == 0 {
		return nil
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := range *from {
		name, value := e.split(&(*from)[i])
		n.Content = append(n.Content, scalar(*name), e.each.write(value))
	}
	return n
}
