package starling_test

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// testdataLinesMax bounds a golden file to what a reviewer reads.
const testdataLinesMax = 200

// textExemptions are lines, and files at their first line, that break a rule of the texts for a reason.
var textExemptions []exemption

// machinePath matches a path that exists on one machine only. It is spelt so that it does not match itself.
var machinePath = regexp.MustCompile(`(^|[\s"'=:(\x60])/(work|root|home/[a-z][\w-]*|Users/[A-Za-z][\w-]*)/[\w.]`)

// shellLoop matches a loop of a shell that waits for something, on one line as scripts have it.
var shellLoop = regexp.MustCompile(`\b(until|while)\b.*;\s*do\b`)

// words are the terms of the design's table, each of which the glossary must define.
var words = []string{
	"journal", "replica", "peer", "virtual peer", "pool", "job", "task", "slot", "allocation", "update", "gang",
	"entitlement", "allocated", "demand", "reservation", "limit", "share", "slack", "reaction",
}

func TestTexts(t *testing.T) {
	found, err := textBreaches(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	judge(t, found, textExemptions)
}

// textBreaches reads every text file of the tree, whatever its language.
func textBreaches(fsys fs.FS) ([]breach, error) {
	var found []breach
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", "bin", "node_modules"}, entry.Name()) {
			return fs.SkipDir
		}
		if !entry.Type().IsRegular() || name == ".git" || path.Ext(name) == ".prof" || path.Ext(name) == ".test" {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil || bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
			return err
		}
		found = append(found, fileTextBreaches(name, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"))...)
		return nil
	})
	return found, err
}

func fileTextBreaches(name string, lines []string) []breach {
	var found []breach
	taken := strings.HasPrefix(name, "conformance/testdata/given/") // facts about other systems, as they were given
	for i, line := range lines {
		if machinePath.MatchString(line) && !taken {
			found = append(found, breach{name, i + 1, strings.TrimSpace(line), "machine path",
				"this path is one machine's: write it relative to the repository, or take it from the environment"})
		}
	}
	found = append(found, scriptWaitBreaches(name, lines)...)
	golden := strings.Contains("/"+name, "/testdata/") && !strings.HasPrefix(name, "conformance/testdata/") &&
		!strings.Contains(name, "/testdata/fuzz/") // conformance data are facts taken over as they are; seeds are not read
	if golden && len(lines) > testdataLinesMax {
		found = append(found, breach{name, 1, strings.TrimSpace(lines[0]), "testdata lines",
			"a golden file beyond 200 lines is not reviewed: split it by what each case tells"})
	}
	return found
}

// scriptWaitBreaches finds what a script of e2e might wait for until the time of the whole suite is over. What it
// starts beside itself ends with it, and so do tasks of the files that follow its commands.
func scriptWaitBreaches(name string, lines []string) []breach {
	if ok, _ := path.Match("e2e/testdata/script/*.txt", name); !ok {
		return nil
	}
	var found []breach
	for i, line := range lines {
		if strings.HasPrefix(line, "-- ") && strings.HasSuffix(line, " --") {
			break
		}
		if shellLoop.MatchString(line) && !strings.HasPrefix(line, "start ") {
			found = append(found, breach{name, i + 1, line, "endless wait",
				"this waits for ever for what does not come: write until PROGRAM [ARGUMENT...], or ! until, which give up"})
		}
	}
	return found
}

func TestTextsCatchBreaches(t *testing.T) {
	cases := []struct{ name, file, text, want string }{
		{"relative", "docs/a.md", "see ../docs/b.md, /etc/starling/agent.yaml and https://example.org/home/x/y\n", ""},
		{"machine path", "docs/a.md", "cd /" + "home/ann/starling\n", "docs/a.md:1: machine path"},
		{"in quotes", "a.sh", "\n\nDIR=\"/" + "root/go\"\n", "a.sh:3: machine path"},
		{"binary", "a.bin", "\x00 /" + "root/go\n", ""},
		{"long golden file", "ring/testdata/a.txt", strings.Repeat("x\n", 201), "testdata lines"},
		{"path taken over", "conformance/testdata/given/onyx/a.yaml", "path: /" + "root/.ssh\n", ""},
		{"endless wait", "e2e/testdata/script/a.txt", "exec true\nexec sh -c 'until grep x y; do sleep 0.1; done'\n",
			"e2e/testdata/script/a.txt:2: endless wait"},
		{"task that waits", "e2e/testdata/script/a.txt", "start x sh -c 'while true; do true; done'\nuntil true\n-- b --\n" +
			"while true; do true; done\n", ""},
		{"facts taken over", "conformance/testdata/onyx/a.yaml", strings.Repeat("x\n", 201), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			found, err := textBreaches(fstest.MapFS{c.file: {Data: []byte(c.text)}})
			if err != nil {
				t.Fatal(err)
			}
			checkPlanted(t, found, c.want)
		})
	}
}

// glossaryRowsMax bounds what whoever comes next has to learn.
const glossaryRowsMax = 100

// TestGlossary checks that the glossary defines the design's words, and each of its words once, in order, and not too
// many.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile("docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	var defined []string
	for _, row := range regexp.MustCompile(`(?m)^\| \*\*(.+?)\*\*`).FindAllStringSubmatch(string(text), -1) {
		defined = append(defined, row[1])
	}
	if len(defined) > glossaryRowsMax {
		t.Errorf("docs/glossary.md: %d rows, at most %d: use a word of the field, or say it in the package", len(defined),
			glossaryRowsMax)
	}
	for _, word := range words {
		if !slices.Contains(defined, word) {
			t.Errorf("docs/glossary.md: no row for %q: add | **%s** | its meaning |", word, word)
		}
	}
	for i := 1; i < len(defined); i++ {
		if defined[i-1] >= defined[i] {
			t.Errorf("docs/glossary.md: %q stands after %q: keep the rows in order, one a word", defined[i], defined[i-1])
		}
	}
}
