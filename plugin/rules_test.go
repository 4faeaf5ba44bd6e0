package plugin

import (
	"testing"

	"starling/terms"
	"starling/terms/rules"
)

// TestRulesDecideWhichPluginsThereAre asks under rules of which no plugin is, as a program does that has a newer plugin
// than the rules in force.
func TestRulesDecideWhichPluginsThereAre(t *testing.T) {
	job := &terms.Job{Name: "web", Type: terms.Stateless, Plugins: []terms.PluginRequest{{Name: "mpi"}},
		Tasks: []terms.Task{
			{Name: "main", Instances: 1, Command: []string{"true"}, Placement: terms.Pack},
		}}
	want := terms.Problem{Path: "plugins[0]", Reason: `plugin "mpi" is not known: there are `}
	if got := RequestProblems(job, rules.First-1); len(got) != 1 || got[0] != want {
		t.Errorf("before the first rules: %q, want %q", got, want)
	}
	for _, p := range RequestProblems(job, rules.First) {
		if p == want {
			t.Errorf("under the first rules: %q", p)
		}
	}
	if got := Names(rules.First - 1); len(got) != 0 {
		t.Errorf("before the first rules there are %q", got)
	}
}
