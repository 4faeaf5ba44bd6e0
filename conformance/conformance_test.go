package conformance

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// suite runs the cases of one file.
type suite func(s *sheet)

// suites lists which files are run and how. The first pattern that matches a file's path below the data decides.
var suites = []struct {
	pattern string
	run     suite
}{
	{"onyx/join-*.yaml", ringLog},
	{"onyx/leave-*.yaml", ringLog},
	{"onyx/race-*.yaml", ringLog},
	{"onyx/dup-*.yaml", ringLog},
	{"onyx/stuck-*.yaml", ringLog},
	{"onyx/sched-*.yaml", sharing},
	{"onyx/allocate-*.yaml", volunteers},
	{"onyx/properties.yaml", properties},
	{"nomad/group/*.yaml", reconciliation},
	{"nomad/probe/*.yaml", probe},
	{"nomad/system/*.yaml", daemons},
	{"nomad/unit/*.yaml", unit},
	{"peloton/entitlement*.yaml", entitlements},
	{"peloton/respool_config*.yaml", poolRequests},
	{"peloton/admission*.yaml", admissions},
	{"peloton/constraints*.yaml", constraints},
	{"peloton/update*.yaml", updates},
	{"peloton/job_state*.yaml", jobStates},
	{"peloton/preemption*.yaml", preemptions},
	{"volcano/*queue-deserved*.yaml", queues},
	{"volcano/*queue-admit*.yaml", cycles},
	{"volcano/*gang*.yaml", cycles},
	{"volcano/*plugins*.yaml", plugins},
	{"volcano/*min-resources*.yaml", minima},
	{"volcano/*policy*.yaml", life},
	{"volcano/*state*.yaml", life},
	{"volcano/*admission*.yaml", admittance},
	{"volcano/*scale*.yaml", scaling},
	{"volcano/*topology*.yaml", topologies},
}

// wholeFile is the name of the case of a file that has only one.
const wholeFile = "file"

// TestConformance runs the files below testdata: those that were given, and our own. If STARLING_CONFORMANCE names a
// folder, its files are run instead of those that were given.
func TestConformance(t *testing.T) {
	given, named := "testdata/given", os.Getenv("STARLING_CONFORMANCE")
	if named != "" {
		given = named
	}
	var sheets []*sheet
	for _, root := range []struct{ folder, prefix string }{{given, ""}, {"testdata/own", ownPrefix}} {
		files := dataFiles(t, root.folder)
		if len(files) == 0 {
			t.Errorf("there is not YAML file below %s", root.folder)
		}
		for _, file := range files {
			s := &sheet{file: root.prefix + strings.TrimSuffix(file, path.Ext(file)), differences: tally{}, partial: true}
			sheets = append(sheets, s)
			t.Run(s.file, func(t *testing.T) {
				s.t, s.partial = t, false
				run := suiteOf(file)
				if run == nil {
					t.Fatalf("no suite knows the file: add it to suites")
				}
				data, err := os.ReadFile(filepath.Join(root.folder, filepath.FromSlash(file)))
				if err != nil {
					t.Fatal(err)
				}
				s.data = data
				run(s)
			})
		}
	}
	text := summary(sheets)
	fmt.Print(text) // with -v, and when something fails
	if named == "" && !slices.ContainsFunc(sheets, func(s *sheet) bool { return s.partial }) {
		for _, row := range leftOut.unused() {
			t.Errorf("no case needs the row of leftOut for %s: %s", row.files, row.reason)
		}
		checkKept(t, text)
	}
}

// rewrite writes the counts anew, as with other golden files.
var rewrite = flag.Bool("rewrite", false, "write golden files anew")

// checkKept compares how many cases pass and which are left out with what was so before: none becomes one that is left
// out unseen.
func checkKept(t *testing.T, summary string) {
	const file = "testdata/counts.txt"
	var kept []string
	for line := range strings.Lines(summary) {
		if !strings.HasPrefix(line, statedIndent) || strings.HasPrefix(line, leftOutIndent) {
			kept = append(kept, line)
		}
	}
	got := strings.Join(kept, "")
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != got {
		t.Errorf("the counts are not those of %s (%v): if this is meant, run with -rewrite and read the diff", file, err)
	}
}

// dataFiles returns the paths of all YAML files below root, relative to it and in order.
func dataFiles(t *testing.T, root string) []string {
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if extension := path.Ext(name); !entry.IsDir() && (extension == ".yaml" || extension == ".yml") {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("read the data: %v", err)
	}
	slices.Sort(files)
	return files
}

// suiteOf returns how a file is run, nil for one that is not known.
func suiteOf(file string) suite {
	for _, s := range suites {
		if ok, err := path.Match(s.pattern, file); ok && err == nil {
			return s.run
		}
	}
	return nil
}

func TestSuiteOf(t *testing.T) {
	cases := []struct {
		file  string
		known bool
	}{
		{"onyx/join-1.yaml", true},
		{"onyx/sched-tags.yaml", true},
		{"nomad/unit/filter.yaml", true},
		{"onyx/new.yaml", false},
		{"borg/join-1.yaml", false},
	}
	for _, c := range cases {
		if known := suiteOf(c.file) != nil; known != c.known {
			t.Errorf("suiteOf(%s) is known: %v, want %v", c.file, known, c.known)
		}
	}
}
