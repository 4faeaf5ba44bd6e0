package jobspec

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/terms/constraint"
)

// constraintPointer is where the schema describes constraints, so that one may hold others.
const constraintPointer = "#/definitions/constraint"

// constraintForm is a constraint wherever one may stand. What is in it is read by constraintTable.
func constraintForm() form[constraint.Constraint] {
	var made *form[constraint.Constraint]
	table := func() *form[constraint.Constraint] {
		if made == nil {
			made = new(constraintTable())
		}
		return made
	}
	return form[constraint.Constraint]{
		words: "a constraint", schema: object{{"$ref", constraintPointer}},
		read:  func(r *reader, p place, into *constraint.Constraint) { table().read(r, p, into) },
		write: func(from *constraint.Constraint) *yaml.Node { return table().write(from) },
	}
}

// constraintTable are the keys of a constraint.
func constraintTable() form[constraint.Constraint] {
	type spec = constraint.Constraint
	values := func(c *spec) *[]string { return &c.Values }
	value := bind(oneValue(), values).named("value", "What the attribute is compared with, or the value of the label.")
	value.write = func(c *spec) *yaml.Node {
		if len(c.Values) != 1 || c.Operator == constraint.In || c.Operator == constraint.NotIn {
			return nil
		}
		return scalar(c.Values[0])
	}
	many := bind(list(anyText(), 0, constraint.ValuesMax), values).
		named("values", "What it is compared with, for the operators in and not in.")
	writeMany := many.write
	many.write = func(c *spec) *yaml.Node {
		if value.write(c) != nil {
			return nil
		}
		return writeMany(c)
	}
	count := bind(whole[uint32](0, 1<<32-1), func(c *spec) *uint32 { return &c.Count }).
		named("count", "What the number of instances with the label is compared with.")
	writeCount := count.write
	count.write = func(c *spec) *yaml.Node {
		if c.Label == "" {
			return nil
		}
		return writeCount(c)
	}
	name := optional(text[string]("a name", pair{"minLength", 1}))
	f := mapping([]field[spec]{
		bind(name, func(c *spec) *string { return &c.Attribute }).
			named("attribute", "The attribute of the machine that is asked for."),
		bind(name, func(c *spec) *string { return &c.Label }).
			named("label", "Instead: the label whose instances are counted, of all jobs."),
		bind(name, func(c *spec) *string { return &c.Within }).
			named("within", "They are counted on all machines that have the same value of this attribute; without it on the machine itself."),
		bind(optional(choice[constraint.Operator](constraint.Operators())),
			func(c *spec) *constraint.Operator { return &c.Operator }).
			named("operator", "How it is compared; the four orders compare whole numbers. Write != > and >= in quotes."),
		value, many, count,
		bind(list(constraintForm(), 1, constraint.PartsMax), func(c *spec) *[]spec { return &c.All }).
			named("all", "Instead: constraints that must all hold."),
		bind(list(constraintForm(), 1, constraint.PartsMax), func(c *spec) *[]spec { return &c.Any }).
			named("any", "Instead: constraints of which one must hold."),
		bind(softForm(), func(c *spec) *spec { return c }).
			named("soft", "How long instances wait for it; after that it is only preferred. Without it they wait for ever."),
	}, checkConstraint)
	f.schema = append(f.schema, pair{"oneOf", []object{
		{{"required", []string{"attribute", "operator"}}}, {{"required", []string{"label", "value", "operator", "count"}}},
		{{"required", []string{"all"}}}, {{"required", []string{"any"}}},
	}}, pair{"not", object{{"required", []string{"value", "values"}}}})
	return f
}

// softForm is how long a constraint holds; that it is there makes the constraint soft.
func softForm() form[constraint.Constraint] {
	timeout := func(c *constraint.Constraint) *uint32 { return &c.SoftTimeoutMillis }
	f := bind(durationForm(constraint.SoftTimeoutMillisMax), timeout)
	return form[constraint.Constraint]{
		words: f.words, schema: f.schema,
		read: func(r *reader, p place, into *constraint.Constraint) {
			into.Soft = true
			f.read(r, p, into)
		},
		write: func(from *constraint.Constraint) *yaml.Node {
			if !from.Soft {
				return nil
			}
			return f.write(from)
		},
	}
}

// checkConstraint holds together the keys of a constraint.
func checkConstraint(r *reader, p place, given map[string]place, _ *constraint.Constraint) {
	needs := []string{}
	switch subject, failed := constraintSubject(r, p, given); {
	case subject == "" && !failed:
		r.fail(p, "needs one of attribute, label, all and any")
	case subject == "attribute":
		needs = []string{"operator"}
	case subject == "label":
		needs = []string{"operator", "value", "count"}
	}
	for _, key := range needs {
		if _, ok := given[key]; !ok && !r.hasFailed(p.at(key, nil).known) {
			r.fail(p.at(key, p.node), "is missing: an attribute goes with operator, a label with operator, value and count")
		}
	}
	one, isOne := given["value"]
	if _, isMany := given["values"]; isOne && isMany {
		r.fail(one, "is given beside values: give one of them")
	}
	if r.hasFailed(p.known + ".value") {
		r.failed = append(r.failed, p.known+".values")
	}
}

// constraintSubject returns which of the keys that say what a constraint is about is given, "" if none is; failed tells
// that one could not be read.
func constraintSubject(r *reader, p place, given map[string]place) (subject string, failed bool) {
	for _, key := range []string{"attribute", "label", "all", "any"} {
		at, ok := given[key]
		switch {
		case !ok:
			failed = failed || r.hasFailed(p.at(key, nil).known)
		case at.node.Kind == yaml.ScalarNode && at.node.Value == "" && !r.hasFailed(at.known):
			r.fail(at, "must not be empty")
			failed = true
		case subject != "":
			r.fail(at, "is given beside %s: give one of attribute, label, all and any", subject)
		default:
			subject = key
		}
	}
	return subject, failed
}

// oneValue is a list of one element, written without brackets.
func oneValue() form[[]string] {
	return form[[]string]{
		words:  "a text",
		schema: textSchema(),
		read: func(r *reader, p place, into *[]string) {
			all, first := p, p
			all.known = strings.TrimSuffix(p.known, "value") + "values"
			first.known = all.known + "[0]"
			r.note(all)
			r.note(first)
			*into = make([]string, 1)
			anyText().read(r, p, &(*into)[0])
		},
	}
}
