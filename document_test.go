package starling_test

import (
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

// Limits of the documents: ARCHITECTURE.md is the story on two pages, a decision is read at once.
const (
	storyLinesMax    = 110
	decisionLinesMin = 10
	decisionLinesMax = 40
	columnsMax       = 120
)

const decisions = "docs/decisions"

var (
	decisionName  = regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	decisionParts = []string{"\nDate: 20", "\n**Decision.** ", "\n**Reason.** ", "\n**Not taken.** ",
		"\n**What follows.** "}
	// goName matches what a document writes as code and means as a name of the tree: a path, or names joined by dots.
	goName = regexp.MustCompile("`([A-Za-z_]\\w*(?:[./][A-Za-z_]\\w*)*)`")
	link   = regexp.MustCompile(`\]\(([^):#]+)\)`)
)

func TestDocuments(t *testing.T) {
	judge(t, documentBreaches(t, os.DirFS(".")), nil)
}

func documentBreaches(t *testing.T, fsys fs.FS) []breach {
	t.Helper()
	tr, err := parseTree(fsys)
	if err != nil {
		t.Fatal(err)
	}
	found, err := decisionBreaches(fsys)
	if err != nil {
		t.Fatal(err)
	}
	story, err := storyBreaches(fsys, tr)
	if err != nil {
		t.Fatal(err)
	}
	return append(found, story...)
}

// storyBreaches checks that ARCHITECTURE.md is short, and that what it names is there.
func storyBreaches(fsys fs.FS, tr *tree) ([]breach, error) {
	const name = "ARCHITECTURE.md"
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	var found []breach
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) > storyLinesMax {
		found = append(found, breach{name, len(lines), "", "story lines",
			fmt.Sprintf("the story has at most %d lines: reasons belong into %s", storyLinesMax, decisions)})
	}
	named := names(tr)
	for i, line := range lines {
		for _, code := range goName.FindAllStringSubmatch(line, -1) {
			last := path.Base(strings.ReplaceAll(code[1], ".", "/"))
			if _, err := fs.Stat(fsys, code[1]); err != nil && !named[last] {
				found = append(found, breach{name, i + 1, line, "name",
					code[1] + " is not a name in the code: write what it is called now, or no backquotes"})
			}
		}
	}
	return append(found, lineBreaches(fsys, name, lines)...), nil
}

// names returns every name that the code has, and every folder's.
func names(tr *tree) map[string]bool {
	all := map[string]bool{}
	for _, f := range tr.folders {
		all[path.Base(f.path)] = true
		for _, s := range f.files {
			ast.Inspect(s.syntax, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					all[id.Name] = true
				}
				return true
			})
		}
	}
	return all
}

// decisionBreaches checks that each decision has all its parts and a line in the list, and the list no others.
func decisionBreaches(fsys fs.FS) ([]breach, error) {
	list, err := fs.ReadFile(fsys, decisions+"/README.md")
	if err != nil {
		return nil, err
	}
	files, err := fs.ReadDir(fsys, decisions)
	if err != nil {
		return nil, err
	}
	found := lineBreaches(fsys, decisions+"/README.md", strings.Split(string(list), "\n"))
	before := ""
	for _, file := range files {
		name := decisions + "/" + file.Name()
		if file.Name() == "README.md" {
			continue
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		found = append(found, lineBreaches(fsys, name, lines)...)
		number := decisionName.FindStringSubmatch(file.Name())
		if number == nil || number[1] == before {
			found = append(found, breach{name, 1, lines[0], "decision name",
				"a decision is called NNNN-title.md, and no other has its number"})
			continue
		}
		before = number[1]
		title, titled := strings.CutPrefix(lines[0], "# "+number[1]+". ")
		if row := fmt.Sprintf("- [%s](%s) %s\n", number[1], file.Name(), title); !titled ||
			!strings.Contains(string(list), row) {
			found = append(found, breach{name, 1, lines[0], "decision title",
				"begin with \"# NNNN. Title\", and list it in README.md beside: " + row})
		}
		for _, part := range decisionParts {
			if !strings.Contains(string(text), part) {
				found = append(found, breach{name, 1, lines[0], "decision part", "write " + strings.TrimSpace(part)})
			}
		}
		if len(lines) < decisionLinesMin || len(lines) > decisionLinesMax {
			found = append(found, breach{name, len(lines), "", "decision lines",
				fmt.Sprintf("a decision has %d to %d lines, not %d", decisionLinesMin, decisionLinesMax, len(lines))})
		}
	}
	return found, nil
}

// lineBreaches checks the width of lines, and that what they link to is there.
func lineBreaches(fsys fs.FS, name string, lines []string) []breach {
	var found []breach
	for i, line := range lines {
		if utf8.RuneCountInString(line) > columnsMax {
			found = append(found, breach{name, i + 1, line, "columns", fmt.Sprintf("break the line at %d columns", columnsMax)})
		}
		for _, to := range link.FindAllStringSubmatch(line, -1) {
			if _, err := fs.Stat(fsys, path.Join(path.Dir(name), to[1])); err != nil {
				found = append(found, breach{name, i + 1, line, "link", "there is no " + to[1]})
			}
		}
	}
	return found
}

func TestDocumentsCatchBreaches(t *testing.T) {
	const good = "# 0001. Why\n\nDate: 2026-11-21\n\n**Decision.** D\n\n**Reason.** R\n\n**Not taken.** N\n\n**What follows.** F\n"
	const row = "- [0001](0001-why.md) Why\n"
	cases := []struct{ name, file, list, decision, story, want string }{
		{"all is well", "0001-why.md", row, good, "`Fold` and `b/c.Fold` in `cluster`, `starling run FILE`\n", ""},
		{"name that is gone", "0001-why.md", row, good, "`Folded` folds\n", "Folded is not a name in the code"},
		{"long story", "0001-why.md", row, good, strings.Repeat("x\n", 111), "at most 110 lines"},
		{"long line", "0001-why.md", row, good, strings.Repeat("x", 121) + "\n", "ARCHITECTURE.md:1: columns"},
		{"dead link", "0001-why.md", row, good, "[b](docs/b.md)\n", "there is no docs/b.md"},
		{"not listed", "0001-why.md", "", good, "", "list it in README.md"},
		{"other title", "0001-why.md", row, strings.Replace(good, "Why", "Who", 1), "", "decision title"},
		{"no reason", "0001-why.md", row, strings.Replace(good, "**Reason.**", "Reason:", 1), "", "write **Reason.**"},
		{"no date", "0001-why.md", row, strings.Replace(good, "Date: 2026", "Of 2026", 1), "", "write Date: 20"},
		{"no number", "why.md", "", good, "", "decision name"},
		{"too long", "0001-why.md", row, good + strings.Repeat("\n", 30), "", "not 41"},
		{"listed and gone", "0001-why.md", row + "- [0002](0002-how.md) How\n", good, "", "there is no 0002-how.md"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fsys := fstest.MapFS{
				"ARCHITECTURE.md": {Data: []byte(c.story)}, decisions + "/README.md": {Data: []byte(c.list)},
				decisions + "/" + c.file: {Data: []byte(c.decision)},
				"cluster/a.go":           {Data: []byte("package cluster\n\nfunc Fold() {}\n")},
			}
			checkPlanted(t, documentBreaches(t, fsys), c.want)
		})
	}
}
