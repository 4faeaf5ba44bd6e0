package conformance

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// sheet is one file and what came of its cases.
type sheet struct {
	t *testing.T
	// file is the file's path below the data, without its ending: volcano/09-gang.
	file string
	data []byte
	// differences are the rules by which cases differ from the files, or by which a part of them is not compared.
	differences tally
	cases       []verdict
	// partial tells that the test was asked to run some of the cases only.
	partial bool
}

// verdict is what came of one case.
type verdict struct {
	id       string
	failures []string
	// row is why the case is left out, nil if it is not.
	row *omission
}

// run runs one case and judges it by the table of those that are left out.
func (s *sheet) run(id string, check func(t *trial)) {
	before := len(s.cases)
	if s.t == nil { // under test itself
		v, _ := leftOut.judge(s.file, id, try(check))
		s.cases = append(s.cases, v)
		return
	}
	s.t.Run(id, func(t *testing.T) {
		one := try(check)
		v, complaint := leftOut.judge(s.file, id, one)
		s.cases = append(s.cases, v)
		for _, line := range one.notes {
			t.Log(line)
		}
		for _, line := range one.failures {
			if v.row == nil {
				t.Error(line)
			} else {
				t.Log(line)
			}
		}
		switch {
		case complaint != "":
			t.Error(complaint)
		case v.row != nil:
			t.Logf("left out: %s", v.row.reason)
		}
	})
	s.partial = s.partial || len(s.cases) == before
}

// fail fails the file itself.
func (s *sheet) fail(format string, args ...any) {
	s.run(wholeFile, func(t *trial) { t.Fatalf(format, args...) })
}

// unknownKeys fails the file, and none of its cases, for keys beside them that nothing reads.
func (s *sheet) unknownKeys(other map[string]yaml.Node) {
	if len(other) > 0 {
		s.fail("keys that are not known: %v", sortedKeys(other))
	}
}

// report counts what came of the cases of one file, or of several that have one case each.
type report struct {
	name                           string
	cases, passed, failed, leftOut int
	// reasons lead to the cases that are left out for them.
	reasons     map[string][]string
	differences tally
}

func newReport(name string) *report {
	return &report{name: name, reasons: map[string][]string{}, differences: tally{}}
}

func (r *report) add(s *sheet) {
	for d, n := range s.differences {
		r.differences[d] += n
	}
	for _, v := range s.cases {
		r.cases++
		switch {
		case len(v.failures) > 0:
			r.failed++
		case v.row != nil:
			r.leftOut++
			id := v.id
			if id == wholeFile {
				id = path.Base(s.file)
			}
			r.reasons[v.row.reason] = append(r.reasons[v.row.reason], id)
		default:
			r.passed++
		}
	}
}

// What stands before lines below a file's counts.
const (
	statedIndent  = "    "
	leftOutIndent = statedIndent + "left out: "
)

// String tells the counts, and why which cases are left out or differ.
func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-44s %5d %6d %6d %8d\n", r.name, r.cases, r.passed, r.failed, r.leftOut)
	for _, reason := range sortedKeys(r.reasons) {
		fmt.Fprintf(&b, leftOutIndent+"%s: %s\n", strings.Join(r.reasons[reason], " "), reason)
	}
	var lines []string
	for d, n := range r.differences {
		kind := "differs as stated"
		if d.column {
			kind = "in part not compared"
		}
		lines = append(lines, fmt.Sprintf(statedIndent+"%s (%s), %d times: %s\n", kind, d.name, n, d.reason))
	}
	slices.Sort(lines)
	return b.String() + strings.Join(lines, "")
}

// summary puts the reports of all files into one text. Files with one case each are one line for their folder.
func summary(sheets []*sheet) string {
	var names []string
	reports := map[string]*report{}
	total := newReport("all")
	for _, s := range sheets {
		if len(s.cases) == 0 {
			continue
		}
		name := s.file
		if len(s.cases) == 1 && s.cases[0].id == wholeFile {
			name = s.file[:strings.LastIndexByte(s.file, '/')+1] + "*"
		}
		if reports[name] == nil {
			names = append(names, name)
			reports[name] = newReport(name)
		}
		reports[name].add(s)
		total.add(s)
	}
	text := fmt.Sprintf("%-44s %5s %6s %6s %8s\n", "file", "cases", "passed", "failed", "left out")
	for _, name := range names {
		text += reports[name].String()
	}
	total.reasons, total.differences = nil, nil // they stand with their files
	return text + total.String()
}

// TestOneUnknownKey plants a key that nothing reads into the first case of each file: that case fails, and no other.
func TestOneUnknownKey(t *testing.T) {
	for _, file := range dataFiles(t, "testdata/own") {
		data, err := os.ReadFile("testdata/own/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var root yaml.Node
		if err := yaml.Load(data, &root); err != nil {
			t.Fatal(err)
		}
		at := firstCase(&root)
		odd := &yaml.Node{Kind: yaml.ScalarNode, Value: "odd"}
		at.Content = append(at.Content, odd, odd)
		s := &sheet{file: ownPrefix + strings.TrimSuffix(file, path.Ext(file)), differences: tally{}}
		if s.data, err = yaml.Dump(&root); err != nil {
			t.Fatal(err)
		}
		suiteOf(file)(s)
		var failed []string
		for _, v := range s.cases {
			failed = append(failed, v.failures...)
		}
		if len(failed) != 1 || !strings.Contains(failed[0], "odd") {
			t.Errorf("%s: %d cases, failures %q, want one about the key odd", file, len(s.cases), failed)
		}
	}
}

// firstCase returns the mapping of the first case of a file, or all of a file that is one case.
func firstCase(root *yaml.Node) *yaml.Node {
	if root.Kind == yaml.DocumentNode {
		root = root.Content[0]
	}
	for _, key := range []string{"scenarios", "cases", "properties", "job_state_from_task_counts"} {
		if list := valueOf(root, key); list != nil && list.Kind == yaml.SequenceNode {
			return list.Content[0]
		}
	}
	return root
}
