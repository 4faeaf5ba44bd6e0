package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"starling/api/client"
)

// answerWithin bounds how long a peer may take to answer what needs no waiting.
const answerWithin = 30 * time.Second

// The output formats.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// remote is what a command that talks to a peer works with.
type remote struct {
	*console
	// address is where the peer answers, format how answers are printed.
	address, format string
	documents       int
}

// flags declares the global flags.
func (r *remote) flags(root *cobra.Command) {
	root.PersistentFlags().StringVar(&r.address, "address", "",
		"`HOST:PORT` of a peer's API, to ask (several: with commas) or to listen on; also STARLING_ADDRESS (default "+client.DefaultAddress+")")
	root.PersistentFlags().StringVarP(&r.format, "output", "o", formatTable, "print answers as `FORMAT`: table, json or yaml")
	root.PersistentPreRunE = func(command *cobra.Command, _ []string) error {
		if r.format != formatTable && r.format != formatJSON && r.format != formatYAML {
			return usageError(command, fmt.Errorf("unknown output format %q: use table, json or yaml", r.format))
		}
		return nil
	}
	complete := cobra.FixedCompletions([]string{formatTable, formatJSON, formatYAML}, cobra.ShellCompDirectiveNoFileComp)
	if err := root.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err) // the flag was declared above
	}
}

// dial returns a client of the peers at the address: the flag's, the environment's, or the default.
func (r *remote) dial() (*client.Client, error) {
	addresses, err := client.Addresses(cmp.Or(r.address, os.Getenv("STARLING_ADDRESS")))
	if err != nil {
		return nil, &failure{exitUsage, err}
	}
	return client.New(addresses), nil
}

// show prints an answer in the chosen format; draw says how people see it.
func (r *remote) show(answer proto.Message, draw func() *table) error {
	if r.format == formatTable {
		t := draw()
		t.colour = r.outColour
		return t.write(r.out)
	}
	return r.write(answer, "  ")
}

// showNext prints one element of a stream: a line of JSON, or a document of YAML.
func (r *remote) showNext(answer proto.Message, line func() string) error {
	if r.format == formatTable {
		_, err := io.WriteString(r.out, line())
		return err
	}
	return r.write(answer, "")
}

// write prints JSON with the names of the API's description, or the same data as YAML.
func (r *remote) write(answer proto.Message, indent string) error {
	text, err := marshal(answer, indent)
	if err == nil && r.format == formatYAML {
		text, err = yamlOf(text)
		if r.documents > 0 {
			text = append([]byte("---\n"), text...)
		}
	}
	if err != nil {
		return fmt.Errorf("print %s: %w", answer.ProtoReflect().Descriptor().Name(), err)
	}
	r.documents++
	_, err = r.out.Write(text)
	return err
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

// plain drops the styles that came from JSON; the dumper quotes again what needs quotes.
func plain(node *yaml.Node) {
	node.Style = 0
	for _, child := range node.Content {
		plain(child)
	}
}

// answerContext bounds a request that needs no waiting.
func answerContext(command *cobra.Command) (context.Context, context.CancelFunc) {
	return context.WithTimeout(command.Context(), answerWithin)
}
