package jobspec

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/plugin"
	"starling/terms"
	"starling/terms/rules"
)

// pluginForm is the name of a plugin, or a mapping from it to its arguments.
func pluginForm() form[terms.PluginRequest] {
	words := "the name of a plugin (" + strings.Join(plugin.Names(rules.Released), ", ") +
		"), or a mapping from it to its arguments"
	given := argumentsForm()
	name := object{{"enum", plugin.Names(rules.Released)}}
	return form[terms.PluginRequest]{
		words: words,
		schema: object{{"anyOf", []object{name, {
			{"type", "object"}, {"minProperties", 1}, {"maxProperties", 1}, {"propertyNames", name},
			{"additionalProperties", given.schema},
		}}}},
		read: func(r *reader, p place, into *terms.PluginRequest) {
			if p.node.Kind != yaml.MappingNode {
				text[string](words).read(r, p, &into.Name)
				return
			}
			members, ok := r.members(p, words)
			if ok && len(members) != 1 {
				r.fail(p, "must have one key, the name of a plugin, has %d: begin each plugin with a dash", len(members))
				return
			}
			for _, m := range members {
				into.Name, m.value.known = m.name, p.known
				given.read(r, m.value, &into.Arguments)
			}
		},
		write: func(from *terms.PluginRequest) *yaml.Node {
			if len(from.Arguments) == 0 {
				return scalar(from.Name)
			}
			return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar(from.Name), given.write(&from.Arguments)}}
		},
	}
}

func argumentsForm() form[[]terms.EnvVar] {
	return entries[terms.EnvVar, string]{
		words: "a mapping from arguments to values", keys: object{{"pattern", namePattern}}, most: terms.PluginsMax,
		each:  argumentForm(),
		split: func(e *terms.EnvVar) (*string, *string) { return &e.Name, &e.Value },
		known: func(_ int, name string) (string, string) { return "." + name, "." + name }, sorted: true,
	}.form()
}

// argumentForm is a value that its plugin reads: a number or true needs no quotes.
func argumentForm() form[string] {
	f := anyText()
	f.words = "a text, a number, true or false"
	f.schema = object{{"type", []string{"string", "integer", "boolean"}}}
	f.read = func(r *reader, p place, into *string) {
		if r.expect(p, yaml.ScalarNode, f.words) {
			*into = p.node.Value
		}
	}
	return f
}
