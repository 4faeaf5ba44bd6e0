package jobspec

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"starling/terms"
)

// TestDiffAgreesWithCluster wants a difference where two jobs differ, and the word that instances are replaced where
// the cluster will replace them.
func TestDiffAgreesWithCluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, other := jobs().Draw(t, "one"), jobs().Draw(t, "other")
		from, to := one, one
		to.Tasks = append([]terms.Task(nil), from.Tasks...)
		if rapid.Bool().Draw(t, "update") {
			to.Update = other.Update
		}
		if rapid.Bool().Draw(t, "sharing") {
			to.Priority, to.KillOnPreempt, to.MinAvailable = other.Priority, other.KillOnPreempt, other.MinAvailable
		}
		to.Percent = other.Percent
		if rapid.Bool().Draw(t, "lifecycle") {
			to.MinSuccess, to.KeepMillis, to.MaxRestarts = other.MinSuccess, other.KeepMillis, other.MaxRestarts
			if from.Type == other.Type {
				to.Policies, to.Tasks[0].Policies = other.Policies, other.Tasks[0].Policies
			}
		}
		for i := range min(len(to.Tasks), len(other.Tasks)) {
			mixed(t, &to.Tasks[i], &other.Tasks[i])
		}
		if rapid.Bool().Draw(t, "order") {
			to.Tasks = append(to.Tasks[1:len(to.Tasks):len(to.Tasks)], to.Tasks[0])
		}
		changes := Diff(&from, &to)
		if (len(changes) == 0) != from.Equal(&to) {
			t.Fatalf("got %v, equal is %v", changes, from.Equal(&to))
		}
		for i := range from.Tasks {
			old, replaces := &from.Tasks[i], false
			for _, c := range changes {
				path := "tasks." + string(old.Name) + "."
				replaces = replaces || strings.HasPrefix(c.Path, path) && c.Effect == Replaces
			}
			if change := old.ChangeTo(named(to.Tasks, old.Name)); (change == terms.Replace) != replaces {
				t.Fatalf("task %s: got %v, the cluster says %s", old.Name, changes, change)
			}
		}
	})
}

// mixed takes some fields of another task.
func mixed(t *rapid.T, task, other *terms.Task) {
	for i, take := range []func(){
		func() { task.Instances = other.Instances }, func() { task.Command = other.Command }, func() { task.Env = other.Env },
		func() { task.WorkDir, task.User = other.WorkDir, other.User }, func() { task.Resources = other.Resources },
		func() { task.Devices = other.Devices }, func() { task.Constraints = other.Constraints },
		func() { task.Placement = other.Placement }, func() { task.Restart = other.Restart },
		func() { task.Reschedule = other.Reschedule }, func() { task.Disconnect = other.Disconnect },
		func() { task.Volumes = other.Volumes }, func() { task.Ports, task.Checks = other.Ports, other.Checks },
		func() { task.StopDelayMillis, task.StopGraceMillis = other.StopDelayMillis, other.StopGraceMillis },
		func() { task.MinAvailable = other.MinAvailable },
		func() { task.MaxRunning, task.MaxRunMillis = other.MaxRunning, other.MaxRunMillis },
	} {
		if rapid.IntRange(0, 9).Draw(t, "take") == i%10 {
			take()
		}
	}
}

func named(tasks []terms.Task, name terms.TaskName) *terms.Task {
	for i := range tasks {
		if tasks[i].Name == name {
			return &tasks[i]
		}
	}
	return nil
}

func TestDiff(t *testing.T) {
	const old = `
job: web
type: stateless
tasks:
  - name: server
    instances: 2
    command: |
      set -e
      serve
      true
    env: {A: "1", B: "2"}
    ports: {http: auto}
    checks: [{http: /}]
    constraints: [{attribute: zone, operator: in, values: [a, b]}]
  - {name: gone, command: [a, "b c"]}
`
	const new = `
job: web
type: stateless
update: {batch_size: 2}
tasks:
  - name: server
    instances: 3
    command: |
      set -e
      serve -v
      true
    env: {A: "1", C: ""}
    ports: {http: 8080}
    checks: [{http: /health}, {tcp: true}]
    constraints: [{attribute: zone, operator: in, values: [a]}]
    restart: {attempts: 0}
  - {name: new, command: [a, "b, c"], instances: 4}
`
	read := func(text string) *terms.Job {
		documents, err := Parse("job.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return &documents[0].Spec
	}
	want := `update.batch_size: "1" -> "2"
tasks.server.instances: "2" -> "3" starts
tasks.server.command: "serve" -> "serve -v" replaces
tasks.server.env.C: "" -> "\"\"" replaces
tasks.server.env.B: "2" -> "" replaces
tasks.server.restart.attempts: "5" -> "0"
tasks.server.checks[0].http: "/" -> "/health" replaces
tasks.server.checks[1]: "" -> "{tcp: true, port: http, interval: 2s, timeout: 1s, failures: 3, on_failure: restart}" replaces
tasks.server.ports.http: "auto" -> "8080" replaces
tasks.server.constraints[0].values: "[a, b]" -> "[a]" may replace
tasks.new: "" -> "{instances: 4, command: [a, \"b, c\"]}" starts
tasks.gone: "{instances: 1, command: [a, b c]}" -> "" stops
`
	var got strings.Builder
	for _, c := range Diff(read(old), read(new)) {
		got.WriteString(c.String() + "\n")
	}
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}

// String returns the change in one line.
func (c Change) String() string {
	text := c.Path + ": " + strconv.Quote(c.Old) + " -> " + strconv.Quote(c.New)
	if c.Effect != InPlace {
		text += " " + string(c.Effect)
	}
	return text
}
