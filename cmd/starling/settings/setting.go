package settings

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"
)

// setting is one value that the agent's user may choose: in the file under key, by the flag of the same name with "-"
// for ".", or by the variable STARLING_ and that name in capitals. A flag wins over a variable, and that over the file.
type setting struct {
	key   string
	shape shape
	help  string
	// set takes the texts: one for a scalar, one per element of a list, "name=value" for each pair.
	set func(*Agent, []string) error
}

// shape is how a setting looks in the file.
type shape uint8

const (
	scalar shape = iota
	list
	pairs
)

func (s shape) String() string {
	return [...]string{"a single value", "a list", "a mapping of names to values"}[s]
}

func (s *setting) flag() string {
	return strings.ReplaceAll(strings.ReplaceAll(s.key, ".", "-"), "_", "-")
}

func (s *setting) variable() string {
	return "STARLING_" + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// declare adds the flag of the setting; those of the root are there already.
func (s *setting) declare(command *cobra.Command) {
	if s.key == "address" {
		return
	}
	flags := command.Flags()
	switch {
	case s.shape == scalar:
		flags.String(s.flag(), "", s.help)
	default:
		flags.StringSlice(s.flag(), nil, s.help)
	}
}

// fromFlag returns the texts of the flag, nil if it was not given.
func (s *setting) fromFlag(command *cobra.Command) ([]string, error) {
	if !command.Flags().Changed(s.flag()) {
		return nil, nil
	}
	if s.shape == scalar {
		return []string{command.Flags().Lookup(s.flag()).Value.String()}, nil
	}
	return command.Flags().GetStringSlice(s.flag())
}

// fromText splits what a variable holds.
func (s *setting) fromText(text string) []string {
	if s.shape == scalar {
		return []string{text}
	}
	return strings.Split(text, ",")
}

// fromNode returns the texts of a node of the file.
func (s *setting) fromNode(node *yaml.Node) ([]string, error) {
	want := [...]yaml.Kind{scalar: yaml.ScalarNode, list: yaml.SequenceNode, pairs: yaml.MappingNode}[s.shape]
	if node.Kind != want || node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return nil, &placed{node, fmt.Sprintf("%s must be %s", s.key, s.shape)}
	}
	if s.shape == scalar {
		return []string{node.Value}, nil
	}
	var texts []string
	for i := 0; i < len(node.Content); i++ {
		element, prefix := node.Content[i], ""
		if s.shape == pairs {
			prefix = element.Value + "="
			i++
			element = node.Content[i]
		}
		if element.Kind != yaml.ScalarNode {
			return nil, &placed{element, fmt.Sprintf("%s must hold plain values", s.key)}
		}
		texts = append(texts, prefix+element.Value)
	}
	return texts, nil
}

// placed is a problem at a place of the file.
type placed struct {
	node   *yaml.Node
	reason string
}

func (p *placed) Error() string {
	return fmt.Sprintf("%d:%d: %s", p.node.Line, p.node.Column, p.reason)
}
