package command

import (
	"bytes"
	"encoding/hex"
	flags "flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"starling/terms/rules"
)

var rewrite = flags.Bool("rewrite", false, "write the golden files anew")

// TestGolden holds the encoding of every kind against the bytes that journals already have.
func TestGolden(t *testing.T) {
	entries := samples()
	if *rewrite {
		writeGolden(t, entries)
	}
	golden := goldenBytes(t)
	for kind := KindPrepareJoin; kind < kindEnd; kind++ {
		e := entries[kind]
		if e == nil {
			t.Errorf("there is no sample of %s: add one with something in every field", kind)
			continue
		}
		if path := blankField(kind.String(), reflect.ValueOf(e.Commands[0])); path != "" {
			t.Errorf("the sample has nothing in %s: fill it, so that its encoding is held too", path)
		}
		data := Encode(e)
		want, known := golden[kind.String()]
		if !known {
			t.Errorf("%s has no golden bytes; for a new kind add this line to testdata/entries.txt:\n%s %x", kind, kind, data)
			continue
		}
		if !bytes.Equal(data, want) {
			t.Errorf("%s is encoded as\n%x\nand journals hold it as\n%x\n"+
				"An encoding is for ever: give the changed command a kind of its own and keep this one as it was.", kind, data, want)
		}
		if got, err := Decode(want, rules.First); err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%s is decoded as %+v, %v; want %+v", kind, got, err, e)
		}
		delete(golden, kind.String())
	}
	for name := range golden {
		t.Errorf("there are golden bytes of %s, which is no kind any more: a program must read all that journals hold", name)
	}
}

func writeGolden(t *testing.T, entries map[Kind]*Entry) {
	var text bytes.Buffer
	for kind := KindPrepareJoin; kind < kindEnd; kind++ {
		fmt.Fprintf(&text, "%s %x\n", kind, Encode(entries[kind]))
	}
	if err := os.WriteFile("testdata/entries.txt", text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// goldenBytes reads the lines "name bytes".
func goldenBytes(t *testing.T) map[string][]byte {
	text, err := os.ReadFile("testdata/entries.txt")
	if err != nil {
		t.Fatal(err)
	}
	golden := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		name, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		data, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatalf("golden bytes of %s: %v", name, err)
		}
		golden[name] = data
	}
	return golden
}
