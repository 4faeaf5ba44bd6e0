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

// TestConformance runs the files below testdata, or those below the folder that STARLING_CONFORMANCE names.
func TestConformance(t *testing.T) {
	root := "testdata"
	if named := os.Getenv("STARLING_CONFORMANCE"); named != "" {
		root = named
	}
	files := dataFiles(t, root)
	if len(files) == 0 {
		t.Fatalf("there is no YAML file below %s", root)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, path.Ext(file)), func(t *testing.T) {
			run := suiteOf(file)
			if run == nil {
				t.Fatalf("no suite knows the file: add it to suites")
			}
			data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
			if err != nil {
				t.Fatal(err)
			}
			run(t, data)
		})
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
