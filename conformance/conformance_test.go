package conformance

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// suite runs the cases of one file.
type suite func(t *testing.T, data []byte)

// suites lists which files are run and how. The first pattern that matches a file's path below the data decides.
var suites = []struct {
	pattern string
	run     suite
}{
	{"onyx/join-*.yaml", membership},
	{"onyx/leave-*.yaml", membership},
	{"onyx/race-*.yaml", membership},
	{"onyx/dup-*.yaml", membership},
	{"onyx/stuck-*.yaml", membership},
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

// excluded lists the files that are not run. A pattern that ends in "/" means all that is below the folder.
var excluded []struct{ pattern, reason string }

// TestConformance runs the files below testdata, or those below the folder that STARLING_CONFORMANCE names.
func TestConformance(t *testing.T) {
	root, counts := "testdata", map[string]int{}
	if named := os.Getenv("STARLING_CONFORMANCE"); named != "" {
		root = named
	}
	files := dataFiles(t, root)
	if len(files) == 0 {
		t.Fatalf("there is no YAML file below %s", root)
	}
	for _, file := range files {
		run, reason := suiteOf(file)
		if reason != "" {
			counts[reason]++
			continue
		}
		t.Run(strings.TrimSuffix(file, path.Ext(file)), func(t *testing.T) {
			if run == nil {
				t.Fatalf("no suite knows the file: add it to suites, or to excluded with its reason")
			}
			data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
			if err != nil {
				t.Fatal(err)
			}
			run(t, data)
		})
	}
	for _, e := range excluded {
		if counts[e.reason] > 0 {
			t.Logf("not run: %d of %s: %s", counts[e.reason], e.pattern, e.reason)
		}
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

// suiteOf returns how a file is run, or why it is not; neither for a file that is not known.
func suiteOf(file string) (run suite, reason string) {
	for _, s := range suites {
		if matches(s.pattern, file) {
			return s.run, ""
		}
	}
	for _, e := range excluded {
		if matches(e.pattern, file) {
			return nil, e.reason
		}
	}
	return nil, ""
}

func matches(pattern, file string) bool {
	if strings.HasSuffix(pattern, "/") {
		return strings.HasPrefix(file, pattern)
	}
	ok, err := path.Match(pattern, file)
	return ok && err == nil
}

func TestSuiteOf(t *testing.T) {
	cases := []struct {
		file          string
		run, excluded bool
	}{
		{"onyx/join-1.yaml", true, false},
		{"onyx/sched-tags.yaml", true, false},
		{"nomad/unit/filter.yaml", true, false},
		{"onyx/new.yaml", false, false},
		{"borg/join-1.yaml", false, false},
	}
	for _, c := range cases {
		if run, reason := suiteOf(c.file); (run != nil) != c.run || (reason != "") != c.excluded {
			t.Errorf("suiteOf(%s) = run %v, reason %q; want run %v, excluded %v", c.file, run != nil, reason, c.run, c.excluded)
		}
	}
}
