package conformance

import (
	"go.yaml.in/yaml/v4"

	"starling/reconcile"
	"starling/terms"
)

// pickSide is what is known of one of the two between whom is picked.
type pickSide struct {
	Score       int32   `yaml:"norm_score"`
	TaskStarted *offset `yaml:"task_started"`
	Started     *offset
	Restarts    int
	LastRestart *offset `yaml:"last_restart"`
}

// candidate returns the side as one of ours. It has not started if its tasks are none.
func (s *pickSide) candidate(score int32, tasks bool) *reconcile.Candidate {
	state := nomadTaskState{Started: s.Started, Restarts: s.Restarts, LastRestart: s.LastRestart}
	if s.TaskStarted != nil {
		state.Started = s.TaskStarted
	}
	c := &reconcile.Candidate{Client: reconcile.RunningClient, Score: score}
	if s.Score != 0 {
		c.Score = s.Score
	}
	if tasks {
		c.Started = state.began()
	}
	return c
}

// pickTables are the tables of the file reconnect-pick.
type pickTables struct {
	NewerVersion []yaml.Node `yaml:"newer_version"`
	Strategies   struct {
		Given struct {
			Original, Replacement pickSide
			SameVersion           bool `yaml:"same_version"`
		}
		Cases []yaml.Node
	}
	BestScore      []yaml.Node `yaml:"best_score"`
	LongestRunning struct {
		Groups map[string][]string
		Cases  []yaml.Node
	} `yaml:"longest_running"`
}

type (
	newerRow struct {
		OriginalVersion     uint32 `yaml:"original_version"`
		OriginalCreateIndex uint32 `yaml:"original_create_index"`
		Keep                string
	}
	strategyRow struct{ Strategy, Keep string }
	scoreRow    struct {
		OriginalClient    string `yaml:"original_client"`
		ReplacementClient string `yaml:"replacement_client"`
		ReplacementScore  int32  `yaml:"replacement_score"`
		Keep              string
	}
	longestRow struct {
		Group                 string
		Original, Replacement pickSide
		Keep, Because         string
	}
)

// picks runs the file reconnect-pick.
func (f *pickTables) picks(s *sheet) {
	eachRow(s, "newer", f.NewerVersion, func(t *trial, c *newerRow) { // the replacement is of version 2 and instance 2
		original := &reconcile.Candidate{Version: c.OriginalVersion, Instance: terms.JobID(c.OriginalCreateIndex)}
		checkPick(t, "keep_original", [2]*reconcile.Candidate{original, {Version: 2, Instance: 2}}, c.Keep)
	})
	eachRow(s, "strategy", f.Strategies.Cases, func(t *trial, c *strategyRow) {
		given := &f.Strategies.Given
		checkPick(t, c.Strategy, [2]*reconcile.Candidate{given.Original.candidate(0, true), given.Replacement.candidate(0, true)}, c.Keep)
	})
	eachRow(s, "score", f.BestScore, func(t *trial, c *scoreRow) { // the original scores 10
		original := &reconcile.Candidate{Client: clients[c.OriginalClient], Score: 10}
		checkPick(t, "best_score", [2]*reconcile.Candidate{original, {Client: clients[c.ReplacementClient], Score: c.ReplacementScore}}, c.Keep)
	})
	eachRow(s, "longest", f.LongestRunning.Cases, func(t *trial, c *longestRow) { // scores are 10 and 20
		tasks := len(f.LongestRunning.Groups[c.Group]) > 0
		checkPick(t, "longest_running", [2]*reconcile.Candidate{c.Original.candidate(10, tasks), c.Replacement.candidate(20, tasks)}, c.Keep)
	})
}

// checkPick compares which of an original and its replacement is kept.
func checkPick(t *trial, strategy string, pair [2]*reconcile.Candidate, want string) {
	got := "original"
	if !has(survivors, strategy) {
		t.Fatalf("the word %q is not known", strategy)
	}
	if reconcile.KeepsReplacement(survivors[strategy], pair[0], pair[1]) {
		got = "replacement"
	}
	if got != want {
		t.Errorf("%s keeps the %s of %+v and %+v, want the %s", strategy, got, *pair[0], *pair[1], want)
	}
}
