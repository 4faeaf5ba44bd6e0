package starling_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
)

// module is the import path of the root.
const module = "starling"

// tree is the module's Go code, parsed once for all checks.
type tree struct {
	fset    *token.FileSet
	folders []*folder // ordered by path
}

// folder is one directory with Go files; "." is the root.
type folder struct {
	path  string
	files []*source
}

// source is one Go file.
type source struct {
	path      string
	lines     []string
	syntax    *ast.File
	test      bool
	generated bool
}

// breach is one place where a rule is broken, and what to write instead.
type breach struct {
	file   string
	line   int
	text   string // the line itself, trimmed: exemptions name it
	rule   string
	advice string
}

// exemption allows one line of one file to break one rule.
type exemption struct {
	file   string
	rule   string
	line   string // the text of the line, trimmed
	reason string
}

func (b breach) String() string {
	return fmt.Sprintf("%s:%d: %s: %s\n\t%s", b.file, b.line, b.rule, b.advice, b.text)
}

// top is the first element of a folder's path: the unit of the layers.
func (f *folder) top() string {
	first, _, _ := strings.Cut(f.path, "/")
	return first
}

// code lists the files that are neither tests nor generated.
func (f *folder) code() []*source {
	return slices.DeleteFunc(slices.Clone(f.files), func(s *source) bool { return s.test || s.generated })
}

// parseTree reads every Go file below fsys that the go command would see.
func parseTree(fsys fs.FS) (*tree, error) {
	tr := &tree{fset: token.NewFileSet()}
	folders := map[string]*folder{}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipFolder(name, entry.Name())
		}
		if path.Ext(name) != ".go" || strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "_") {
			return nil
		}
		file, err := parseSource(tr.fset, fsys, name)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if folders[dir] == nil {
			folders[dir] = &folder{path: dir}
			tr.folders = append(tr.folders, folders[dir])
		}
		folders[dir].files = append(folders[dir].files, file)
		return nil
	})
	slices.SortFunc(tr.folders, func(a, b *folder) int { return strings.Compare(a.path, b.path) })
	return tr, err
}

func skipFolder(name, base string) error {
	hidden := strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
	if name != "." && (hidden || base == "testdata" || name == "bin") {
		return fs.SkipDir
	}
	return nil
}

func parseSource(fset *token.FileSet, fsys fs.FS, name string) (*source, error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	syntax, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{
		path:      name,
		lines:     strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"),
		syntax:    syntax,
		test:      strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(syntax),
	}, nil
}

// breach makes a breach at n.
func (t *tree) breach(s *source, n ast.Node, rule, advice string) breach {
	line := t.fset.Position(n.Pos()).Line
	return breach{file: s.path, line: line, text: strings.TrimSpace(s.lines[line-1]), rule: rule, advice: advice}
}

// judge reports what is not exempt, and each exemption that nothing needs any more.
func judge(t *testing.T, found []breach, exempt []exemption) {
	t.Helper()
	used := make([]bool, len(exempt))
	for _, b := range found {
		at := slices.IndexFunc(exempt, func(e exemption) bool {
			return e.file == b.file && e.rule == b.rule && e.line == b.text
		})
		if at < 0 {
			t.Error(b)
			continue
		}
		used[at] = true
	}
	for i, e := range exempt {
		if !used[i] {
			t.Errorf("exemption of %s from %q is not needed any more: delete it", e.file, e.rule)
		}
		if e.reason == "" {
			t.Errorf("exemption of %s from %q gives no reason", e.file, e.rule)
		}
	}
}
