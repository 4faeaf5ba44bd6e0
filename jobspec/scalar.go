package jobspec

import (
	"fmt"
	"strconv"
	"strings"

	"starling/jobspec/meant"

	"go.yaml.in/yaml/v4"
)

// scalar returns a text as a node; it is quoted where another reader could take it for something else.
func scalar(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if strings.ContainsAny(text, "\u0085\u2028\u2029") {
		n.Style = yaml.DoubleQuotedStyle // which escapes them; else they end the line
	}
	return n
}

// textSchema is the schema of text. A reader of YAML that knows no schema takes 1.10 or yes for something else than a
// text; here it is one, letter by letter.
func textSchema(more ...pair) object {
	return append(object{{"type", []string{"string", "number", "boolean"}}}, more...)
}

// text is any text. What stands without quotes is taken letter by letter: 017, 1.10 and yes stay as they are.
func text[V ~string](words string, more ...pair) form[V] {
	return form[V]{
		words:  words,
		schema: textSchema(more...),
		read: func(r *reader, p place, into *V) {
			if r.expect(p, yaml.ScalarNode, words) {
				*into = V(p.node.Value)
			}
		},
		write: func(from *V) *yaml.Node { return scalar(string(*from)) },
	}
}

// optional is a form whose zero value needs not be written.
func optional[V comparable](f form[V]) form[V] {
	write := f.write
	f.write = func(from *V) *yaml.Node {
		var zero V
		if *from == zero {
			return nil
		}
		return write(from)
	}
	return f
}

// choice is one of the names; the value is the number of its name. Empty names are no choices.
func choice[V ~uint8](all []string) form[V] {
	var given []string
	for _, name := range all {
		if name != "" {
			given = append(given, name)
		}
	}
	words := "one of " + strings.Join(given, ", ")
	return form[V]{
		words:  words,
		schema: object{{"enum", given}},
		read: func(r *reader, p place, into *V) {
			if !r.expect(p, yaml.ScalarNode, words) {
				return
			}
			for i, name := range all {
				if name != "" && name == p.node.Value {
					*into = V(i)
					return
				}
			}
			if p.node.Style&yaml.FoldedStyle != 0 {
				r.fail(p, `must be %s: put > in quotes, without them it begins a folded text`, words)
				return
			}
			r.fail(p, "must be %s, is %s%s", words, quoted(p.node.Value), meant.Words(meant.Of(p.node.Value, given)))
		},
		write: func(from *V) *yaml.Node { return scalar(all[*from]) },
	}
}

// truthForm is true or false, and no other word for them: readers of YAML differ about yes and on.
func truthForm() form[bool] {
	return form[bool]{
		words:  "true or false",
		schema: object{{"type", "boolean"}},
		read: func(r *reader, p place, into *bool) {
			switch written := p.node.Value; {
			case !r.expect(p, yaml.ScalarNode, "true or false"):
			case isQuoted(p.node):
				r.fail(p, "must be true or false without quotes, is the text %s", quoted(written))
			case written != "true" && written != "false":
				r.fail(p, "must be true or false, is %s", quoted(written))
			default:
				*into = written == "true"
			}
		},
		write: func(from *bool) *yaml.Node {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(*from)}
		},
	}
}

// whole is a number from low to high in plain decimal digits.
func whole[V ~uint8 | ~uint16 | ~uint32 | ~int64](low, high uint32) form[V] {
	words := fmt.Sprintf("a whole number from %d to %d", low, high)
	return form[V]{
		words:  words,
		schema: object{{"type", "integer"}, {"minimum", low}, {"maximum", high}},
		read: func(r *reader, p place, into *V) {
			if !r.expect(p, yaml.ScalarNode, words) {
				return
			}
			digits := p.node.Value
			value, err := strconv.ParseUint(digits, 10, 32)
			switch {
			case isQuoted(p.node):
				r.fail(p, "must be %s without quotes, is the text %s", words, quoted(digits))
			case !isDigits(digits) || !isDecimal(digits):
				r.fail(p, "must be %s, is %s%s", words, numberWords(digits), numberHint(digits))
			case err != nil || value < uint64(low) || value > uint64(high):
				r.fail(p, "must be %s, is %s", words, numberWords(digits))
			default:
				*into = V(value)
			}
		},
		write: func(from *V) *yaml.Node {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatUint(uint64(*from), 10)}
		},
	}
}

// numberWords returns what was written where a number belongs, as it was written if it looks like one.
func numberWords(written string) string {
	if len(written) <= quantityBytesMax && strings.Trim(written, "+-0123456789_.eExXa") == "" {
		return written
	}
	return quoted(written)
}

// numberHint says what to write instead of a number that readers of YAML disagree about.
func numberHint(digits string) string {
	switch plain := strings.ReplaceAll(strings.TrimPrefix(digits, "+"), "_", ""); {
	case plain != digits && isDecimal(plain) && isDigits(plain):
		return ": write " + plain
	case len(plain) > 1 && isDigits(plain):
		return ": write it without leading zeros; some readers take them for octal"
	case len(plain) > 1 && plain[0] == '0' && strings.Trim(plain[1:], "0123456789abcdefABCDEFxo") == "":
		return ": write it in decimal digits"
	}
	return ""
}

// orWord lets a word stand for one value of a form.
func orWord[V comparable](word string, value V, f form[V]) form[V] {
	words := f.words + " or " + word
	return form[V]{
		words:  words,
		schema: object{{"anyOf", []object{f.schema, {{"enum", []string{word}}}}}},
		read: func(r *reader, p place, into *V) {
			switch written := p.node.Value; {
			case !r.expect(p, yaml.ScalarNode, words):
			case written == word:
				*into = value
			case strings.IndexAny(written, "+-0123456789") == 0:
				f.read(r, p, into)
			default:
				r.fail(p, "must be %s, is %s%s", words, quoted(written), meant.Words(meant.Of(written, []string{word})))
			}
		},
		write: func(from *V) *yaml.Node {
			if *from == value {
				return scalar(word)
			}
			return f.write(from)
		},
	}
}

// quantity is an amount that parse and format turn to and from text.
type quantity struct {
	words, pattern string
	parse          func(string) (int64, error)
	format         func(int64) string
	// bare is the schema of amounts that are numbers.
	bare object
}

func quantityForm[V ~int64 | ~uint32](q quantity) form[V] {
	return form[V]{
		words:  q.words,
		schema: object{{"anyOf", []object{q.bare, {{"type", "string"}, {"minLength", 1}, {"pattern", q.pattern}}}}},
		read: func(r *reader, p place, into *V) {
			if !r.expect(p, yaml.ScalarNode, q.words) {
				return
			}
			value, err := q.parse(p.node.Value)
			if err != nil {
				r.fail(p, "%s", err)
				return
			}
			*into = V(value)
		},
		write: func(from *V) *yaml.Node {
			n := scalar(q.format(int64(*from)))
			if isDecimal(n.Value) {
				n.Tag = "!!int"
			}
			return n
		},
	}
}
