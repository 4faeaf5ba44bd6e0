package settings

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the document again")

const referenceHead = `# The agent's settings

Each setting is a key of one YAML file, a flag of ` + "`starling agent`" + `, and a variable: ` + "`etcd.listen`" + ` in the file is
` + "`--etcd-listen`" + ` and ` + "`STARLING_ETCD_LISTEN`" + `. A flag wins over a variable, that over the file, and that over the default; but what the
file says of ` + "`address`" + ` wins over ` + "`STARLING_ADDRESS`" + `, which tells commands whom to ask. The
file is ` + "`--config FILE`" + ` or ` + "`STARLING_CONFIG`" + `; packages start the agent with /etc/starling/agent.yaml. A key that is not
here is refused, with its line, and all that is wrong is told at once. An agent reads its settings when it starts; its
tasks go on while it starts again.

` + "```yaml" + `
node: b
address: 10.0.0.2:7460
join: [/etc/starling/join]        # what starling token create has printed; the first machine has none
etcd: {listen: "https://10.0.0.2:2379"}
attributes: {zone: cellar}
` + "```" + `

| key | value | |
|---|---|---|
`

// TestReference keeps docs/configuration.md as the table of settings says; -rewrite writes it.
func TestReference(t *testing.T) {
	const file = "../../../docs/configuration.md"
	var want bytes.Buffer
	want.WriteString(referenceHead)
	for _, s := range all() {
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", s.key, s.shape, strings.ReplaceAll(s.help, "|", `\|`))
	}
	if *rewrite {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s differs from the settings: run go test ./cmd/starling/settings -run TestReference -rewrite", file)
	}
}

// TestReferenceExample reads the file that the document shows.
func TestReferenceExample(t *testing.T) {
	_, example, _ := strings.Cut(referenceHead, "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	c, err := configOf(t, strings.Replace(example, "[/etc/starling/join]", `["10.0.0.1:7460"]`, 1))
	if err != nil || c.Node != "b" || c.Attributes["zone"] != "cellar" {
		t.Errorf("got %+v and %v", c, err)
	}
}
