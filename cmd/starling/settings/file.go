package settings

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"
)

// Read puts together what the flags, the environment, the file and the defaults say, in this order of
// precedence. The error tells everything that is wrong.
func Read(command *cobra.Command, file string) (*Agent, error) {
	c, err := defaults()
	if err != nil {
		return nil, err
	}
	settings := all()
	var problems []error
	if file != "" {
		problems = append(problems, c.readFile(file, settings)...)
	}
	for _, s := range settings {
		texts, err := s.fromFlag(command)
		// A variable that a flag overrides may say what is no setting: STARLING_ADDRESS is also where commands ask.
		if text := os.Getenv(s.variable()); text != "" && texts == nil {
			if err := s.set(c, s.fromText(text)); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", s.variable(), err))
			}
		}
		if err == nil && texts != nil {
			err = s.set(c, texts)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("--%s: %w", s.flag(), err))
		}
	}
	if len(problems) == 0 {
		problems = c.contradictions()
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return c, nil
}

// Declare adds the flags of all settings to a command.
func Declare(command *cobra.Command) {
	for _, s := range all() {
		s.declare(command)
	}
}

// contradictions lists what cannot be meant together.
func (c *Agent) contradictions() []error {
	var problems []error
	_, member := c.Members[string(c.Node)]
	switch {
	case len(c.Members) == 0 && len(c.Endpoints) == 0:
		problems = append(problems, fmt.Errorf("etcd: nothing says where the journal is\n"+
			"hint: list the nodes that form the quorum under etcd.members, or say with etcd.endpoints where it is;\n"+
			"for a cluster of this machine alone: --etcd-members %s=https://127.0.0.1:2380", c.Node))
	case !member && len(c.Endpoints) == 0:
		problems = append(problems, fmt.Errorf("etcd: node %s is none of etcd.members: it needs etcd.endpoints to join as a client", c.Node))
	case member && len(c.Endpoints) > 0:
		problems = append(problems, fmt.Errorf("etcd: node %s is one of etcd.members: drop etcd.endpoints, which are for nodes that are none", c.Node))
	}
	return problems
}

// readFile reads the one YAML file, and refuses what it does not know.
func (c *Agent) readFile(file string, settings []setting) []error {
	data, err := os.ReadFile(file)
	if err != nil {
		return []error{fmt.Errorf("read the configuration: %w", err)}
	}
	var document yaml.Node
	err = yaml.Load(data, &document)
	if err != nil {
		return []error{fmt.Errorf("%s: %w", file, err)}
	}
	reader := fileReader{config: c, settings: settings}
	if len(document.Content) == 1 {
		reader.mapping(document.Content[0], "")
	}
	for i, problem := range reader.problems {
		reader.problems[i] = fmt.Errorf("%s:%w", file, problem)
	}
	return reader.problems
}

// fileReader walks the file.
type fileReader struct {
	config   *Agent
	settings []setting
	problems []error
}

func (f *fileReader) problem(node *yaml.Node, format string, args ...any) {
	f.problems = append(f.problems, &placed{node, fmt.Sprintf(format, args...)})
}

// mapping reads the keys of a mapping, whose own key and a dot are the prefix.
func (f *fileReader) mapping(node *yaml.Node, prefix string) {
	if node.Kind != yaml.MappingNode {
		f.problem(node, "must be a mapping of keys to values")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		path := prefix + key.Value
		if seen[key.Value] {
			f.problem(key, "%s stands here twice", path)
			continue
		}
		seen[key.Value] = true
		at := slices.IndexFunc(f.settings, func(s setting) bool { return s.key == path })
		inside := slices.IndexFunc(f.settings, func(s setting) bool { return strings.HasPrefix(s.key, path+".") })
		switch {
		case at >= 0:
			f.value(&f.settings[at], value)
		case inside >= 0:
			f.mapping(value, path+".")
		default:
			f.problem(key, "unknown key %q%s", path, f.near(prefix, key.Value))
		}
	}
}

func (f *fileReader) value(s *setting, node *yaml.Node) {
	texts, err := s.fromNode(node)
	if err != nil {
		f.problems = append(f.problems, err)
		return
	}
	if err := s.set(f.config, texts); err != nil {
		f.problem(node, "%s: %v", s.key, err)
	}
}

// near says which key was probably meant. Cobra knows how to find what somebody meant to type.
func (f *fileReader) near(prefix, typed string) string {
	known := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, s := range f.settings {
		if rest, ok := strings.CutPrefix(s.key, prefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			known.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
		}
	}
	if meant := known.SuggestionsFor(typed); len(meant) > 0 {
		return fmt.Sprintf("; did you mean %q?", prefix+meant[0])
	}
	return ""
}
