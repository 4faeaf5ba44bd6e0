package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/driver/fake"
	"starling/peer/inbox"
	"starling/terms"
	"starling/terms/constraint"
)

// fetch asks the peer whose name is the address.
func (f *flock) fetch(ctx context.Context, address string, output terms.OutputSet) (io.ReadCloser, error) {
	if f.lost.Load() {
		return nil, errors.New("nobody answers")
	}
	var all bytes.Buffer
	err := f.peers[address].SendOutput(ctx, output, &all)
	return io.NopCloser(&all), err
}

// words is a workflow: one instance splits on machine a, and counts follow on b.
func words(program string, counts uint32) terms.Job {
	spec := job("words", terms.Batch, 1, program, "0")
	spec.Tasks = append(spec.Tasks, spec.Tasks[0])
	for i, node := range []string{"a", "b"} {
		spec.Tasks[i].Placement = terms.Pack
		spec.Tasks[i].Constraints = []constraint.Constraint{{Attribute: "node", Operator: constraint.Equal,
			Values: []string{node}}}
	}
	spec.Tasks[0].Name = "split"
	spec.Tasks[1].Name, spec.Tasks[1].Instances, spec.Tasks[1].After = "count", counts, []terms.TaskName{"split"}
	spec.Tasks[1].Command = []string{"count", "0"}
	return spec
}

// TestOutputsReachOtherMachines brings one output for two instances, and keeps none when the job has ended but what is
// its result.
func TestOutputsReachOtherMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b")
		defer f.stop()
		f.submit("a", words("split", 2))
		f.await("a", "counts run", func(s *cluster.State) bool {
			return s.JobOf("words").Tasks[1].Counts[facts.Running] == 2
		})
		found, _ := filepath.Glob(filepath.Join(f.machines["b"].Volumes, "words.count*", "input", "split", "0", "text"))
		for _, path := range found {
			if text, err := os.ReadFile(path); err != nil || string(text) != "one two" {
				t.Errorf("%s: got %q, %v", path, text, err)
			}
		}
		if len(found) != 2 {
			t.Errorf("got inputs %q, want two", found)
		}
		f.await("b", "it has succeeded", statusIs("words", workload.StatusSucceeded))
		inbox.Pause(context.Background(), 5*time.Second)
		for name, want := range map[string]int{"a": 0, "b": 2} {
			if sets := fake.Open(f.machines[name]).VolumeSets(); len(sets) != want {
				t.Errorf("%s keeps %q, want %d results", name, sets, want)
			}
		}
	})
}

// TestAnInstanceWaitsForItsInput starts nothing while the other peer does not answer, says so, and lets go of it when
// it is not wanted any more.
func TestAnInstanceWaitsForItsInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b")
		defer f.stop()
		f.lost.Store(true)
		f.submit("a", words("split", 1))
		inbox.Pause(context.Background(), time.Minute)
		warnings := f.peers["b"].Status(context.Background()).Warnings
		if !slices.ContainsFunc(warnings, func(line string) bool {
			return strings.Contains(line, "words.count[0]#") && strings.Contains(line, "on node a: trying again: nobody answers")
		}) || len(fake.Open(f.machines["b"]).Tasks()) > 0 {
			t.Errorf("got warnings %q, and tasks %v", warnings, fake.Open(f.machines["b"]).Tasks())
		}
		f.lost.Store(false)
		f.await("b", "it has succeeded", statusIs("words", workload.StatusSucceeded))
		if warnings := f.peers["b"].Status(context.Background()).Warnings; len(warnings) > 0 {
			t.Errorf("got warnings %q, want none", warnings)
		}
	})
}

// TestAnOutputThatCannotBePassedOnIsAFailure has a task succeed with a link in its output.
func TestAnOutputThatCannotBePassedOnIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b")
		defer f.stop()
		f.submit("a", words("link", 1))
		s := f.await("b", "it has failed", statusIs("words", workload.StatusFailed))
		if got := s.JobOf("words").Tasks[0].Failure; got.Ended != facts.CheckFailed ||
			!strings.Contains(got.Detail, `"text" is neither a file nor a folder`) {
			t.Errorf("got %+v", got)
		}
	})
}

// TestALostOutputIsMadeAgain deletes or spoils what one instance has left before others read it, on the same machine
// and on another. Nobody fails for it.
func TestALostOutputIsMadeAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(path string) error
	}{
		{"all of it", func(path string) error { return os.RemoveAll(filepath.Dir(filepath.Dir(path))) }},
		{"the folder", func(path string) error { return os.RemoveAll(filepath.Dir(path)) }},
		{"the file", os.Remove},
		{"what is in the file", func(path string) error { return os.WriteFile(path, []byte("TWO ONE"), 0o600) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFlock(t, "a", "b")
			defer f.stop()
			f.lost.Store(true)
			spec := words("split", 1)
			spec.Tasks = append(spec.Tasks, spec.Tasks[1])
			spec.Tasks[2].Name, spec.Tasks[2].After, spec.Tasks[2].Constraints = "top", []terms.TaskName{"split", "count"},
				spec.Tasks[0].Constraints
			f.submit("a", spec)
			split := func(s *cluster.State) facts.Slot { return s.JobOf("words").Tasks[0].Slots.At(0) }
			first := split(f.await("a", "split has ended",
				func(s *cluster.State) bool { return split(s).Phase == facts.Succeeded })).Order
			spoil := func() {
				found, err := filepath.Glob(filepath.Join(f.machines["a"].Volumes, "words.split*", "output", "text"))
				if err != nil || len(found) != 1 {
					t.Fatalf("%s: found %q, %v", c.name, found, err)
				}
				if err := c.spoil(found[0]); err != nil {
					t.Fatal(err)
				}
			}
			spoil()
			f.lost.Store(false)
			s := f.await("b", "it has succeeded", statusIs("words", workload.StatusSucceeded))
			if split(s).Order == first {
				t.Errorf("%s: it was not made again", c.name)
			}
			for _, task := range s.JobOf("words").Tasks {
				if task.Failure != (facts.Failure{}) {
					t.Errorf("%s: %s has failed: %+v", c.name, task.Name, task.Failure)
				}
			}
		})
	}
}

// TestAnOutputThatOutgrowsTheLimitsIsAFailure has a task that never ends write too much.
func TestAnOutputThatOutgrowsTheLimitsIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b")
		defer f.stop()
		f.submit("a", words("grow", 1))
		s := f.await("b", "it has failed", statusIs("words", workload.StatusFailed))
		if got := s.JobOf("words").Tasks[0].Failure; got.Ended != facts.CheckFailed ||
			!strings.Contains(got.Detail, "its files have more than 68719476736 bytes") {
			t.Errorf("got %+v", got)
		}
	})
}
