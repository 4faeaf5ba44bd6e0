package conformance

import (
	"go.yaml.in/yaml/v4"

	"starling/reconcile"
)

// pickSide is what is known of one of the two between whom is picked.
type pickSide struct {
	Score       int32   `yaml:"norm_score"` // placement gives none that could be compared later
	TaskStarted *offset `yaml:"task_started"`
	Started     *offset
	Restarts    int
	LastRestart *offset `yaml:"last_restart"`
}

// candidate returns the side as one of ours. It has not started if its tasks are none.
func (s *pickSide) candidate(tasks bool) *reconcile.Candidate {
	state := nomadTaskState{Started: s.Started, Restarts: s.Restarts, LastRestart: s.LastRestart}
	if s.TaskStarted != nil {
		state.Started = s.TaskStarted
	}
	c := &reconcile.Candidate{Client: reconcile.RunningClient}
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
		if c.OriginalCreateIndex != 2 {
			t.leaveOut("other instance")
		}
		original := &reconcile.Candidate{Version: c.OriginalVersion}
		checkPick(t, "keep_original", [2]*reconcile.Candidate{original, {Version: 2}}, c.Keep)
	})
	eachRow(s, "strategy", f.Strategies.Cases, func(t *trial, c *strategyRow) {
		given := &f.Strategies.Given
		checkPick(t, c.Strategy, [2]*reconcile.Candidate{given.Original.candidate(true), given.Replacement.candidate(true)},
			c.Keep)
	})
	eachRow(s, "score", f.BestScore, func(t *trial, _ *scoreRow) { t.leaveOut("score") })
	eachRow(s, "longest", f.LongestRunning.Cases, func(t *trial, c *longestRow) {
		tasks := len(f.LongestRunning.Groups[c.Group]) > 0
		checkPick(t, "longest_running", [2]*reconcile.Candidate{c.Original.candidate(tasks), c.Replacement.candidate(tasks)},
			c.Keep)
	})
}

// checkPick compares which of an original and its replacement is kept.
func checkPick(t *trial, strategy string, pair [2]*reconcile.Candidate, want string) {
	got := "original"
	if strategy == "best_score" || strategy == "longest_running" && pair[0].Started+pair[1].Started == 0 {
		t.leaveOut("score")
	}
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
