package conformance

import (
	"testing"

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

// pickFile is the file reconnect-pick.
type pickFile struct {
	Summary      string
	NewerVersion []struct {
		OriginalVersion     uint32 `yaml:"original_version"`
		OriginalCreateIndex uint32 `yaml:"original_create_index"`
		Keep                string
	} `yaml:"newer_version"`
	Strategies struct {
		Given struct {
			Original, Replacement pickSide
			SameVersion           bool `yaml:"same_version"`
		}
		Cases []struct{ Strategy, Keep string }
	}
	BestScore []struct {
		OriginalClient    string `yaml:"original_client"`
		ReplacementClient string `yaml:"replacement_client"`
		ReplacementScore  int32  `yaml:"replacement_score"`
		Keep              string
	} `yaml:"best_score"`
	LongestRunning struct {
		Groups map[string][]string
		Cases  []struct {
			Group                 string
			Original, Replacement pickSide
			Keep, Because         string
		}
	} `yaml:"longest_running"`
}

// picks runs the file reconnect-pick.
func picks(t *testing.T, data []byte) {
	f := &pickFile{}
	if err := yaml.Load(data, f, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	check := func(strategy string, original, replacement *reconcile.Candidate, want string) {
		t.Helper()
		got := "original"
		if reconcile.KeepsReplacement(survivors[strategy], original, replacement) {
			got = "replacement"
		}
		if got != want {
			t.Errorf("%s keeps the %s of %+v and %+v, want the %s", strategy, got, *original, *replacement, want)
		}
	}
	for _, c := range f.NewerVersion { // the replacement is of version 2 and instance 2
		original := &reconcile.Candidate{Version: c.OriginalVersion, Instance: terms.JobID(c.OriginalCreateIndex)}
		check("keep_original", original, &reconcile.Candidate{Version: 2, Instance: 2}, c.Keep)
	}
	for _, c := range f.Strategies.Cases {
		given := &f.Strategies.Given
		check(c.Strategy, given.Original.candidate(0, true), given.Replacement.candidate(0, true), c.Keep)
	}
	for _, c := range f.BestScore { // the original scores 10
		original := &reconcile.Candidate{Client: clients[c.OriginalClient], Score: 10}
		check("best_score", original, &reconcile.Candidate{Client: clients[c.ReplacementClient], Score: c.ReplacementScore}, c.Keep)
	}
	for _, c := range f.LongestRunning.Cases { // scores are 10 and 20
		tasks := len(f.LongestRunning.Groups[c.Group]) > 0
		check("longest_running", c.Original.candidate(10, tasks), c.Replacement.candidate(20, tasks), c.Keep)
	}
}
