package kill

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/e2e/agents"
	"starling/examples"
	"starling/jobspec"
	"starling/terms"
)

// TestAWorkflowSurvivesKills counts the words of the net package of Go's library as the example does, one instance on
// each machine at a time. The machine that split the text dies when some instances have counted and others have not, so
// that it is split again elsewhere; an agent dies while they add up. The answer is that of a plain count.
func TestAWorkflowSurvivesKills(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a pulse to end")
	}
	t.Parallel()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal("go env GOROOT: ", err)
	}
	folder := filepath.Join(strings.TrimSpace(string(root)), "src", "net")
	want := plainCount(t, folder)
	tr := begin(t, 3*time.Second)
	spec := exampleOf(t, "words.yaml")
	spec.Tasks[0].Env = []terms.EnvVar{{Name: "FOLDER", Value: folder}}
	for i := range spec.Tasks {
		spec.Tasks[i].Resources[terms.CPU] = 4000
	}
	tr.submit(spec)

	slots := tr.awaitTask("words", "count", 2)
	victim := tr.agentOf(slots, "split")
	tr.Logf("agent %s split the text, and dies with its machine", victim.Node)
	tr.must(victim.Crash(tr.soon()))
	other := tr.others(victim)[0]
	tr.awaitPeer(other, victim, "has left", hasLeft)
	if again := tr.agentOf(tr.awaitTask("words", "split", 1, other), "split"); again == victim {
		t.Errorf("the text is still taken from agent %s", victim.Node)
	}
	tr.must(victim.Start())

	slots = tr.awaitTask("words", "add", 1, other)
	second := tr.agentOf(slots, "add")
	tr.Logf("agent %s was the first to add up, and is killed", second.Node)
	tr.must(second.Kill())
	tr.must(second.Start())
	tr.awaitDone(tr.others(second)[0], "words")

	var got bytes.Buffer
	question := &starlingv1.LogsRequest{Job: "words", Task: "top", Follow: true}
	tr.must(tr.asked().Logs(tr.soon(), question, func(piece *starlingv1.LogsResponse) error {
		got.Write(piece.GetData())
		return nil
	}))
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	tr.wantWhole()
	tr.eventually("only the result is kept", func() string {
		var kept []string
		for _, a := range tr.Agents {
			sets, err := filepath.Glob(filepath.Dir(a.Volume("words.*", "")))
			tr.must(err)
			for _, set := range sets {
				if !strings.Contains(set, "words.top") {
					kept = append(kept, set)
				}
			}
		}
		return strings.Join(kept, " ")
	})
}

// exampleOf is the job of an example.
func exampleOf(t *testing.T, name string) *terms.Job {
	t.Helper()
	all := examples.Files()
	at := slices.IndexFunc(all, func(f examples.File) bool { return f.Name == name })
	documents, err := jobspec.Parse(name, all[at].Data)
	if err != nil || len(documents) != 1 {
		t.Fatalf("%s: %d jobs, %v", name, len(documents), err)
	}
	return &documents[0].Spec
}

// plainCount counts the words of the text files of a folder, as deep and as large as the example takes them, and tells
// what it tells.
func plainCount(t *testing.T, folder string) string {
	t.Helper()
	counts, total := map[string]int{}, 0
	for depth := range 3 {
		files, err := filepath.Glob(filepath.Join(folder, strings.Repeat("*/", depth)+"*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil || !info.Mode().IsRegular() || info.Size() > 255<<10 {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.IndexByte(text, 0) >= 0 {
				continue
			}
			for _, word := range bytes.FieldsFunc(text,
				func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }) {
				counts[string(bytes.ToLower(word))]++
				total++
			}
		}
	}
	words := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	var text strings.Builder
	for _, word := range words[:20] {
		fmt.Fprintln(&text, counts[word], word)
	}
	fmt.Fprintln(&text, total, "words,", len(words), "different")
	return text.String()
}

// awaitTask waits until so many instances of a task have succeeded, for these agents or any, and returns all slots of
// the job.
func (tr *trial) awaitTask(job, task string, succeeded int, from ...*agents.Agent) []*starlingv1.Slot {
	tr.Helper()
	var slots []*starlingv1.Slot
	err := tr.asked(from...).FollowJob(tr.soon(), &starlingv1.JobStatusRequest{Job: job},
		func(status *starlingv1.JobStatusResponse) (bool, error) {
			slots = status.GetSlots()
			for _, t := range status.GetTasks() {
				if t.GetName() == task && int(t.GetCounts().GetSucceeded()) >= succeeded {
					return true, nil
				}
			}
			if status.GetJob().GetFinal() {
				return true, fmt.Errorf("it has %s", status.GetJob().GetStatus())
			}
			return false, nil
		})
	if err != nil {
		tr.Fatalf("waits until %d of %s of %s have succeeded: %v; slots are %v", succeeded, task, job, err, slots)
	}
	return slots
}

// agentOf returns the agent on which the first instance of a task succeeded.
func (tr *trial) agentOf(slots []*starlingv1.Slot, task string) *agents.Agent {
	tr.Helper()
	for _, s := range slots {
		if s.GetTask() != task || s.GetPhase() != "succeeded" {
			continue
		}
		return tr.Agents[slices.IndexFunc(tr.Agents, func(a *agents.Agent) bool { return a.Node == s.GetNode() })]
	}
	tr.Fatalf("no instance of %s has succeeded: %v", task, slots)
	return nil
}
