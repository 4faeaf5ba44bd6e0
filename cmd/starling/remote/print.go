package remote

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
)

// ForPeople tells whether answers are printed for people, and not for programs.
func (r *Remote) ForPeople() bool { return r.format == formatTable || r.format == formatWide }

// Tables prints tables for people, as wide as the terminal, or as they are if that was asked for.
func (r *Remote) Tables(tables ...*console.Table) error {
	return r.Console.Tables(r.format == formatWide, tables...)
}

// Confirm lets the user say yes to what the text says.
func (r *Remote) Confirm(text string) error {
	if !r.ErrLive {
		return exit.Fail(exit.Usage, "%s? nobody is here to say so\nhint: --yes does it without a question", text)
	}
	fmt.Fprintf(r.Err, "%s? [y/N] ", console.PrintableLines(text))
	line, _ := bufio.NewReader(r.In).ReadString('\n') // the end of the input is no
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return exit.Fail(exit.Failed, "nothing was done")
	}
	return nil
}

// Show prints an answer in the chosen format; draw says how people see it.
func (r *Remote) Show(answer proto.Message, draw func() *console.Table) error {
	if r.TellMoment(answer); r.ForPeople() {
		return r.Tables(draw())
	}
	return r.write(answer, "  ")
}

// ShowData prints what no peer answered in the chosen format; draw prints it for people.
func (r *Remote) ShowData(data any, draw func() error) error {
	if r.ForPeople() {
		return draw()
	}
	text, err := json.MarshalIndent(data, "", "  ")
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return r.PrintJSON(append(text, '\n'))
}

// Taken is what a peer answers that has taken a change of a job.
type Taken interface {
	proto.Message
	// GetJob returns the job's name.
	GetJob() string
}

// ShowTaken prints what a peer has taken: for people the job's name.
func (r *Remote) ShowTaken(answer Taken) error {
	return r.ShowNext(answer, func() string { return answer.GetJob() + "\n" })
}

// ShowAnswer prints an answer that says nothing to people.
func (r *Remote) ShowAnswer(answer proto.Message) error {
	return r.ShowNext(answer, func() string { return "" })
}

// ShowNext prints one element of a stream: a line of JSON, or a document of YAML.
func (r *Remote) ShowNext(answer proto.Message, line func() string) error {
	if r.TellMoment(answer); r.ForPeople() {
		return r.Print(line())
	}
	return r.write(answer, "")
}

// write prints JSON with the names of the API's description, or the same data as YAML.
func (r *Remote) write(answer proto.Message, indent string) error {
	text, err := marshal(answer, indent)
	if err != nil {
		return fmt.Errorf("print %s: %w", answer.ProtoReflect().Descriptor().Name(), err)
	}
	return r.PrintJSON(text)
}

// PrintJSON prints a line or a document of JSON, or the same data as YAML.
func (r *Remote) PrintJSON(text []byte) (err error) {
	if r.format == formatYAML {
		if text, err = yamlOf(text); err != nil {
			return fmt.Errorf("print as YAML: %w", err)
		}
		if r.documents > 0 {
			text = append([]byte("---\n"), text...)
		}
	}
	r.documents++
	_, err = r.Out.Write(text)
	return err
}

// PrintYAML prints a document of YAML as it is, or the same data as JSON.
func (r *Remote) PrintYAML(text []byte) error {
	if r.format == formatYAML {
		_, err := r.Out.Write(text)
		return err
	}
	var data any
	if err := yaml.Load(text, &data); err != nil {
		return err
	}
	return r.ShowData(data, nil)
}

// marshal returns JSON that is the same for the same answer; protojson varies its spaces on purpose.
func marshal(answer proto.Message, indent string) ([]byte, error) {
	raw, err := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(answer)
	if err != nil {
		return nil, err
	}
	text := bytes.Buffer{}
	if indent == "" {
		err = json.Compact(&text, raw)
	} else {
		err = json.Indent(&text, raw, "", indent)
	}
	text.WriteByte('\n')
	return text.Bytes(), err
}

// yamlOf turns JSON into YAML of the same data in the same order.
func yamlOf(text []byte) ([]byte, error) {
	var node yaml.Node
	if err := yaml.Load(text, &node); err != nil {
		return nil, err
	}
	plain(&node)
	return yaml.Dump(&node)
}

// words11 are texts, in small letters, that mean something else to readers of YAML 1.1.
func words11() []string { return strings.Fields("= << y n yes no on off") }

// plain drops the styles that came from JSON; the dumper quotes again what needs quotes.
func plain(node *yaml.Node) {
	node.Style = 0
	if node.Kind == yaml.ScalarNode && slices.Contains(words11(), strings.ToLower(node.Value)) {
		node.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		plain(child)
	}
}
