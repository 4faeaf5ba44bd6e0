package command

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	flags "flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"starling/terms/codec"
	"starling/terms/rules"
)

var rewrite = flags.Bool("rewrite", false, "append what is new to the golden files")

// TestGolden holds the encoding of every kind against the bytes that journals already have.
func TestGolden(t *testing.T) {
	entries := samples()
	var lines []string
	for _, f := range forms(t, entries) {
		e := entries[f]
		_, later := entries[form{f.kind, f.version + 1}]
		if path := blankField(f.kind.String(), reflect.ValueOf(e.Commands[0])); path != "" && !later {
			t.Errorf("the sample has nothing in %s: fill it, so that its encoding is held too", path)
		}
		name := f.kind.String()
		if f.version > 1 {
			name += fmt.Sprintf(".%d", f.version)
		}
		data := Encode(e)
		e.Bytes = uint32(len(data))
		lines = append(lines, fmt.Sprintf("%s %x", name, data))
		if got, err := Decode(data, f.since()); err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%s is decoded as %+v, %v; want %+v", name, got, err, e)
		}
	}
	for _, line := range holdGolden(t, "testdata/entries.txt", lines) {
		name, digits, _ := strings.Cut(line, " ")
		data, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatalf("golden bytes of %s: %v", name, err)
		}
		e, err := Decode(data, rules.Released)
		if err != nil || len(e.Commands) != 1 || !bytes.Equal(Encode(e), data) {
			t.Errorf("the golden bytes of %s are decoded as %+v, %v", name, e, err)
			continue
		}
		if u, bad := e.Commands[0].(*Unreadable); bad {
			t.Errorf("the golden bytes of %s are not read any more: %s", name, u.Problem)
		}
	}
}

// forms returns all forms in their order; there must be a sample of each kind.
func forms(t *testing.T, entries map[form]*Entry) (all []form) {
	for kind := KindPrepareJoin; kind < kindEnd; kind++ {
		if entries[form{kind, 1}] == nil {
			t.Fatalf("there is no sample of %s: add one with something in every field", kind)
		}
		for f := (form{kind, 1}); entries[f] != nil; f.version++ {
			all = append(all, f)
		}
	}
	return all
}

// TestGoldenLimits holds what fields may be at most: a program that takes more than another drifts apart from it.
func TestGoldenLimits(t *testing.T) {
	entries := samples()
	last := map[Kind]string{}
	var lines []string
	for in := rules.First; in <= rules.Released; in++ {
		newest := map[Kind]string{}
		for _, f := range forms(t, entries) {
			if f.since() <= in {
				newest[f.kind] = limitsOf(entries[f].Commands[0], in)
			}
		}
		for kind := KindPrepareJoin; kind < kindEnd; kind++ {
			if now := newest[kind]; now != last[kind] {
				lines = append(lines, fmt.Sprintf("%s@%d%s", kind, in, now))
				last[kind] = now
			}
		}
	}
	holdGolden(t, "testdata/limits.txt", lines)
}

// bounded is how constants are called by which the terms are bounded.
var bounded = regexp.MustCompile("(Max|Least|Default|Unlimited)$")

// TestGoldenConstants holds the constants by which jobs, offers and pools are judged, as the source has them: one that
// is to change becomes a table with a row since a new number of the rules.
func TestGoldenConstants(t *testing.T) {
	paths, _ := filepath.Glob("../terms/*.go")
	more, _ := filepath.Glob("../terms/*/*.go")
	var lines []string
	for _, path := range append(paths, more...) {
		if !strings.HasSuffix(path, "_test.go") {
			lines = append(lines, constantsOf(t, path)...)
		}
	}
	holdGolden(t, "testdata/constants.txt", lines)
}

// constantsOf returns the constants of a file by which something is bounded.
func constantsOf(t *testing.T, path string) (lines []string) {
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		for i := 0; ok && i < min(len(spec.Names), len(spec.Values)); i++ {
			if bounded.MatchString(spec.Names[i].Name) {
				value := source[spec.Values[i].Pos()-file.FileStart : spec.Values[i].End()-file.FileStart]
				lines = append(lines, fmt.Sprintf("%s.%s %s", file.Name, spec.Names[i].Name, value))
			}
		}
		_, inFunction := n.(*ast.FuncDecl)
		return !inFunction
	})
	return lines
}

// limitsOf asks what each number of a command may be at most, by cutting the body there and going on with the largest.
func limitsOf(one Command, in rules.Number) (limits string) {
	c, f := &codec.Coder{Writing: true}, formOf(one)
	f.code(c, one)
	body := c.Data
	for at := range body {
		cut := binary.AppendUvarint(slices.Clone(body[:at]), math.MaxUint64)
		c := &codec.Coder{Data: cut, In: in}
		f.code(c, blank(f))
		var most uint64
		if _, err := fmt.Sscanf(c.Failure, "holds 18446744073709551615 where at most %d is allowed", &most); err == nil {
			limits += fmt.Sprintf(" %d", most)
		}
	}
	return limits
}

// holdGolden compares lines "name value" with those of a golden file, which may only grow: beside it lies one with a
// hash of each line and all before it. It returns the lines of the file.
func holdGolden(t *testing.T, path string, lines []string) []string {
	t.Helper()
	held, sums := linesOf(t, path), linesOf(t, path+".sums")
	names := map[string]string{}
	if bad := altered(held, sums); bad > 0 {
		t.Fatalf("line %d of %s is not what it was: golden lines are for ever, and new ones come at the end.\n"+
			"Take it back; a command that changes gets a new version, a limit a row since a new number of the rules.", bad, path)
	}
	for _, line := range held {
		name, _, _ := strings.Cut(line, " ")
		names[name] = line
	}
	for _, line := range lines {
		name, _, _ := strings.Cut(line, " ")
		switch was, known := names[name]; {
		case !known && *rewrite:
			held = append(held, line)
		case !known:
			t.Errorf("%s has no line for %s: append it with -rewrite", path, name)
		case was != line:
			t.Errorf("%s: this is\n%s\nand journals have\n%s\nThat is for ever: a command that changes gets a new version, "+
				"a limit a row since a new number of the rules.", path, line, was)
		}
	}
	for i := len(sums); *rewrite && i < len(held); i++ {
		sums = append(sums, chain(held[:i+1]))
	}
	if len(sums) != len(held) {
		t.Errorf("%s has %d lines of which %d are sealed: seal the new ones with -rewrite", path, len(held), len(sums))
	}
	if *rewrite && !t.Failed() {
		writeLines(t, path, held)
		writeLines(t, path+".sums", sums)
	}
	return held
}

// altered returns the number of the first line that is not what it was when it was sealed, 0 if all are.
func altered(held, sums []string) int {
	for i, sum := range sums {
		if i == len(held) || sum != chain(held[:i+1]) {
			return i + 1
		}
	}
	return 0
}

// chain is the hash of the lines.
func chain(lines []string) string {
	h := fnv.New64a()
	for _, line := range lines {
		fmt.Fprintln(h, line)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

func linesOf(t *testing.T, path string) []string {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[:strings.Count(string(text), "\n")]
}

func writeLines(t *testing.T, path string, lines []string) {
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestGoldenFilesOnlyGrow changes a file in every way that is forbidden, and in the one that is not.
func TestGoldenFilesOnlyGrow(t *testing.T) {
	sums := []string{chain([]string{"a 1"}), chain([]string{"a 1", "b 2"})}
	for _, c := range []struct {
		name string
		held []string
		want int
	}{
		{"as it was", []string{"a 1", "b 2"}, 0},
		{"with a line more", []string{"a 1", "b 2", "c 3"}, 0},
		{"changed", []string{"a 1", "b 3"}, 2},
		{"reordered", []string{"b 2", "a 1"}, 1},
		{"with a line between", []string{"a 1", "c 3", "b 2"}, 2},
		{"cut", []string{"a 1"}, 2},
	} {
		if got := altered(c.held, sums); got != c.want {
			t.Errorf("%s: line %d is refused, want %d", c.name, got, c.want)
		}
	}
}
