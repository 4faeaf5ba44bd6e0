package metrics

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica"
	"starling/replica/report"
	"starling/terms"
)

// entries make one member, and two jobs, one of which has no room.
func entries() [][]command.Command {
	offer := terms.Offer{Address: "a:1", Capacity: terms.Resources{4000, 8 << 30, 100 << 30}}
	job := func(name terms.JobName, kind terms.JobType, millicores int64) *command.SubmitJob {
		return &command.SubmitJob{Spec: terms.Job{Name: name, Type: kind, Tasks: []terms.Task{{
			Name: "main", Instances: 2, Command: []string{"work"}, Placement: terms.Pack,
			Resources: terms.Resources{millicores, 1 << 30, 0},
		}}}}
	}
	return [][]command.Command{
		{&command.PrepareJoin{Joiner: "a~1", Attempt: 1}},
		{&command.Volunteer{Peer: "a~1", Offer: offer}},
		{job("web", terms.Stateless, 500), job("large", terms.Batch, 64_000)},
	}
}

func folded(t *testing.T) (*cluster.State, *Meter) {
	t.Helper()
	s, m := cluster.NewState(), NewMeter()
	for i, commands := range entries() {
		outcome := replica.Apply(s, s.Index+1, &command.Entry{Writer: "a~1", Seq: uint64(i) + 1, Time: 1_700_000_000_000,
			Cause: s.Index, Commands: commands}, true)
		m.Folded(&report.Folded{Outcome: outcome}, 30*time.Microsecond)
		for _, result := range outcome.Results {
			if result.Refused() {
				t.Fatal(result.Refusal)
			}
		}
	}
	return s, m
}

func text(s *Scrape) string {
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	return fmt.Sprintf("%d\n%s", answer.Code, answer.Body)
}

// TestMetrics shows all that a peer tells; what is left out is 0.
func TestMetrics(t *testing.T) {
	state, meter := folded(t)
	meter.Folded(&report.Folded{Outcome: report.Outcome{Dropped: "it is a repetition"}}, time.Millisecond)
	meter.Folded(&report.Folded{Outcome: report.Outcome{Results: []report.Result{report.Refuse(facts.Conflict, "no")},
		Counts: report.Counts{Started: 4, Restarted: 3, Rescheduled: 2, Preempted: 1, Unhealthy: 5, Succeeded: 6,
			Ended: [facts.EndingCount]uint32{facts.OutOfMemory: 7}}}}, time.Minute)
	meter.Appended(3*time.Millisecond, nil)
	meter.Appended(5*time.Second, errors.New("no leader"))
	meter.CheckFailed()
	datadriven.RunTest(t, "testdata/metrics.txt", func(t *testing.T, d *datadriven.TestData) string {
		scrape := &Scrape{State: state, Head: state.Index + 2, Version: "v1.2.3", Meter: meter, Status: report.PeerStatus{
			Warnings: []string{"no cgroups here"}, Requests: 3, JournalUsed: 1 << 20, JournalQuota: 8 << 30}}
		if d.Cmd == "outage" {
			scrape.HeadError = errors.New("no leader")
			scrape.Status.Troubles = []report.Trouble{{Kind: report.JournalFull}}
		}
		all := strings.SplitAfter(text(scrape), "\n")
		kept := &strings.Builder{}
		for _, line := range all {
			if isHelp := strings.HasPrefix(line, "#"); d.Cmd == "all" && (isHelp || !strings.HasSuffix(line, " 0\n")) ||
				d.Cmd == "outage" && !isHelp && (strings.Contains(line, "trouble") || strings.Contains(line, "lag")) {
				kept.WriteString(line)
			}
		}
		return kept.String()
	})
}

// TestConventions is what `promtool check metrics` does.
func TestConventions(t *testing.T) {
	state, meter := folded(t)
	_, body, _ := strings.Cut(text(&Scrape{State: state, Meter: meter, Version: "v1"}), "\n")
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// TestNoLabelNamesAnInstance keeps the number of series small.
func TestNoLabelNamesAnInstance(t *testing.T) {
	allowed := map[string]bool{"pool": true, "type": true, "state": true, "kind": true, "reason": true, "version": true,
		"method": true, "code": true}
	for _, g := range table() {
		for _, label := range g.labels {
			if !allowed[label] {
				t.Errorf("%s has the label %s", g.name, label)
			}
		}
	}
}

// TestWhatIsOverRaisesNoAlert wants neither a node that was removed nor a job that has ended to be counted for ever.
func TestWhatIsOverRaisesNoAlert(t *testing.T) {
	s, meter := folded(t)
	seq := uint64(len(entries()))
	apply := func(commands ...command.Command) {
		seq++
		replica.Apply(s, s.Index+1, &command.Entry{Writer: "a~1", Seq: seq, Time: s.Time, Cause: s.Index,
			Commands: commands}, true)
	}
	replica.Apply(s, s.Index+1, &command.Entry{Writer: "b~1", Seq: 1, Time: s.Time, Cause: s.Index,
		Commands: []command.Command{&command.PrepareJoin{Joiner: "b~1", Attempt: 1}}}, true)
	shows := func(line string) bool {
		return strings.Contains(text(&Scrape{State: s, Meter: meter, Version: "v1"}), line)
	}
	apply(&command.Leave{Peer: "b~1"})
	if !shows(`starling_nodes{state="left"} 1`) || !shows(`starling_updates{state="ROLLING_FORWARD"} 1`) {
		t.Error("want a node that left, and an update")
	}
	apply(&command.RemoveNode{Node: "b"}, &command.KillJob{Job: "web"}, &command.KillJob{Job: "large"})
	if !shows(`starling_nodes{state="left"} 0`) {
		t.Error("a node that was removed counts as one that left")
	}
	for _, line := range strings.Split(text(&Scrape{State: s, Meter: meter, Version: "v1"}), "\n") {
		if strings.HasPrefix(line, "starling_updates{") && !strings.HasSuffix(line, " 0") {
			t.Errorf("a job that was stopped counts: %s", line)
		}
	}
}
