package starling_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// layers lists every first-level folder with Go code, bottom first. A folder imports only lower rows and what lies
// below its own top folder. e2e stands outside: it may import anything and nobody imports it.
var layers = [][]string{
	{"terms", "journal", "examples", "docs"},
	{"cluster", "trust"},
	{"command", "ring", "schedule", "reconcile", "driver", "secret", "plugin"},
	{"rollout", "validate", "rights"},
	{"replica", "jobspec"},
	{"peer", "api", "dns", "archive"},
	{"sim", "web", "conformance"},
	{"cmd"},
}

// binary is the folder whose own folders have layers, too, by the same rule.
const binary = "cmd/starling"

// binaryLayers lists the folders of the binary, bottom first; the binary itself is above them.
var binaryLayers = [][]string{
	{"exit"},
	{"usage", "console"},
	{"remote"},
	{"target", "files", "host", "dialog", "settings", "recorded"},
	{"jobs", "logs", "tasks", "pools", "peers", "past", "agent", "users", "page", "simulation", "doctor", "manual"},
}

// layerExemptions are imports that the layers forbid and a reason allows.
var layerExemptions []exemption

// purityExemptions are lines of the pure core that the law forbids and a reason allows.
var purityExemptions []exemption

func TestLayers(t *testing.T) {
	tr, err := parseTree(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	judge(t, layerBreaches(tr), layerExemptions)
}

func TestPurity(t *testing.T) {
	tr, err := parseTree(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	found, err := purityBreaches(tr)
	if err != nil {
		t.Fatal(err)
	}
	judge(t, found, purityExemptions)
}

// layerBreaches lists the imports that do not point downwards. Test files may import what they need.
func layerBreaches(tr *tree) []breach {
	level := levels()
	var found []breach
	for _, f := range tr.folders {
		for _, s := range f.files {
			if s.test {
				continue
			}
			unit := f.top()
			if strings.HasPrefix(f.path, binary) {
				unit = f.path
			}
			if _, known := level[unit]; !known && f.path != "." && f.top() != "e2e" {
				found = append(found, tr.breach(s, s.syntax.Name, "layer",
					unit+" has no layer: add it to the layers in architecture_test.go and to ARCHITECTURE.md"))
				continue
			}
			found = append(found, importBreaches(tr, f, s, level)...)
		}
	}
	return found
}

// levels numbers the rows of both tables.
func levels() map[string]int {
	level := map[string]int{binary: len(binaryLayers)}
	for i, row := range layers {
		for _, name := range row {
			level[name] = i
		}
	}
	for i, row := range binaryLayers {
		for _, name := range row {
			level[binary+"/"+name] = i
		}
	}
	return level
}

func importBreaches(tr *tree, f *folder, s *source, level map[string]int) []breach {
	var found []breach
	for _, spec := range s.syntax.Imports {
		to, ours := ourFolder(spec.Path.Value)
		toTop, _, _ := strings.Cut(to, "/")
		from, within := f.top(), strings.HasPrefix(f.path, binary) && strings.HasPrefix(to, binary)
		if within {
			from, toTop = f.path, to
		}
		advice := ""
		switch {
		case !ours || !within && toTop == f.top() && f.path != ".":
		case f.path == "." || to == ".":
			advice = "the root holds no code and is imported by nobody: move it into a package"
		case toTop == "e2e":
			advice = "nobody imports e2e: move what is shared into a lower package"
		case f.top() == "e2e":
		case level[toTop] >= level[from]:
			advice = f.path + " may not import " + to + ": imports go downwards and never within a row; " +
				"move what is shared into a lower row, or let the importer declare the small interface it needs"
		}
		if advice != "" {
			found = append(found, tr.breach(s, spec, "layer", advice))
		}
	}
	return found
}

// ourFolder turns a quoted import path into a folder of this module.
func ourFolder(quoted string) (string, bool) {
	name, err := strconv.Unquote(quoted)
	if err != nil {
		return "", false
	}
	if name == module {
		return ".", true
	}
	return strings.CutPrefix(name, module+"/")
}

func TestLayersCatchBreaches(t *testing.T) {
	cases := []struct{ name, file, imports, want string }{
		{"downward", "replica/a.go", "starling/cluster", ""},
		{"own folder", "journal/etcd/a.go", "starling/journal", ""},
		{"standard library", "cluster/a.go", "net/http", ""},
		{"e2e imports anything", "e2e/demo/a.go", "starling/cmd/starling", ""},
		{"upward", "cluster/a.go", "starling/command", "may not import command"},
		{"the value above its terms", "terms/pool/a.go", "starling/cluster", "may not import cluster"},
		{"within a row", "command/a.go", "starling/ring", "may not import ring"},
		{"within a row, below", "schedule/place/a.go", "starling/reconcile", "may not import reconcile"},
		{"ports within a row", "peer/a.go", "starling/api/v1", "may not import api/v1"},
		{"into e2e", "cmd/starling/a.go", "starling/e2e/demo", "nobody imports e2e"},
		{"root imports", "a.go", "starling/cluster", "the root holds no code"},
		{"root imported", "cluster/a.go", "starling", "the root holds no code"},
		{"below the binary", "cmd/starling/jobs/a.go", "starling/cmd/starling/exit", ""},
		{"group by group", "cmd/starling/jobs/a.go", "starling/cmd/starling/pools", "may not import cmd/starling/pools"},
		{"no layer in the binary", "cmd/starling/flags/a.go", "fmt", "cmd/starling/flags has no layer"},
		{"no layer", "queue/a.go", "fmt", "queue has no layer"},
		{"test files are free", "cluster/a_test.go", "starling/sim", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tr, err := parseTree(fstest.MapFS{
				c.file: {Data: []byte("package x\n\nimport _ \"" + c.imports + "\"\n")},
			})
			if err != nil {
				t.Fatal(err)
			}
			checkPlanted(t, layerBreaches(tr), c.want)
		})
	}
}

// checkPlanted compares what was found with the one breach that was planted; an empty want means none.
func checkPlanted(t *testing.T, found []breach, want string) {
	t.Helper()
	if want == "" && len(found) > 0 {
		t.Errorf("got %v, want no breach", found)
	}
	if want != "" && (len(found) != 1 || !strings.Contains(found[0].String(), want)) {
		t.Errorf("got %v, want one breach with %q", found, want)
	}
}
