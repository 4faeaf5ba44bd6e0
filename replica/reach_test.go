package replica

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReconcileDecides puts a panic at the head of every function of package reconcile, of each in turn: it ends the
// stories, or the fold does not ask it.
func TestReconcileDecides(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the stories once more: not with -short")
	}
	folder := t.TempDir()
	functions := overlay(t, "../reconcile", folder)
	program := filepath.Join(folder, "stories")
	if out, err := exec.Command("go", "test", "-c", "-overlay", filepath.Join(folder, "overlay.json"), "-o", program,
		".").CombinedOutput(); err != nil {
		t.Fatalf("build the stories: %v\n%s", err, out)
	}
	for _, name := range append(functions, "none") {
		stories := exec.Command(program, "-test.run", "^TestStories$")
		stories.Env = append(os.Environ(), "PANIC_AT="+name)
		if out, err := stories.CombinedOutput(); (err == nil) != (name == "none") {
			t.Errorf("a panic in %s: the stories end with %v\n%s", name, err, out[:min(len(out), 500)])
		}
	}
}

// overlay writes the files of a package with a panic at the head of each function, for whoever asks for it by its name,
// and returns the names. The functions that only tests and other packages call begin with no panic: they are no part of
// a decision.
func overlay(t *testing.T, source, folder string) (functions []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(source, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		for i := len(file.Decls) - 1; i >= 0; i-- {
			f, ok := file.Decls[i].(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := fmt.Sprintf("%s:%d:%s", filepath.Base(path), set.Position(f.Pos()).Line, f.Name.Name)
			at := set.Position(f.Body.Lbrace).Offset + 1
			text = text[:at] + fmt.Sprintf("\nif panicAt == %q { panic(panicAt) }\n", name) + text[at:]
			functions = append(functions, name)
		}
		if filepath.Base(path) == "doc.go" {
			text += "\nimport \"os\"\n\nvar panicAt = os.Getenv(\"PANIC_AT\")\n"
		}
		absolute, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		replace[absolute] = filepath.Join(folder, filepath.Base(path))
		if err := os.WriteFile(replace[absolute], []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "overlay.json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	return functions
}
