package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
)

// pastOf is an archive of two values.
type pastOf struct {
	Archive
	early, late *cluster.State
}

// gone is what an archive does not have.
type gone struct{ error }

func (g gone) Refusal() facts.Refusal {
	return facts.Refusal{Code: facts.NotFound, Reason: g.Error()}
}

func (p *pastOf) At(_ context.Context, index terms.Index) (*cluster.State, error) {
	switch index {
	case p.early.Index:
		return p.early.Copy(), nil
	case p.late.Index:
		return p.late.Copy(), nil
	}
	return nil, gone{errors.New("it has a hole there")}
}

func (p *pastOf) IndexAt(_ context.Context, at, now time.Time) (terms.Index, error) {
	if at.After(now) {
		return 0, gone{errors.New("that is to come")}
	}
	return p.early.Index, nil
}

// TestRequestsAboutThePast asks for values that were, in every form, and for what has no past.
func TestRequestsAboutThePast(t *testing.T) {
	p, _ := pair()
	p.add(p.self, &command.SubmitJob{Spec: *jobOn("web", 2, "a")})
	early := p.state.Copy()
	p.add(p.self, &command.KillJob{Job: "web"})
	p.archive = &pastOf{early: early, late: p.state.Copy()}
	address := p.serve(t)
	ask := func(at string) *client.Client {
		c := client.NewAt([]string{address}, at)
		t.Cleanup(c.Close)
		return c
	}
	first, second := fmt.Sprint(early.Index), fmt.Sprint(early.Index+1)
	for at, stopped := range map[string]bool{first: false, second: true, "2023-11-14T22:13:20Z": false} {
		answer, err := ask(at).JobStatus(t.Context(), &starlingv1.JobStatusRequest{Job: "web"})
		if err != nil {
			t.Fatalf("at %s: %v", at, err)
		}
		if got := answer.GetJob().GetStatus() == "stopped" || answer.GetJob().GetStatus() == "stopping"; got != stopped {
			t.Errorf("at %s: it is %s at %d", at, answer.GetJob().GetStatus(), answer.GetIndex())
		}
	}
	fails := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err := ask("99").AllJobs(t.Context(), "")
	fails("it has a hole there", err)
	_, err = ask("2222-01-01T00:00:00Z").AllJobs(t.Context(), "")
	fails("that is to come", err)
	_, err = ask("yesterday").AllJobs(t.Context(), "")
	fails("must be an index such as 4711, or a time", err)
	_, err = ask(first).KillJob(t.Context(), "web", 0, false)
	fails("the past cannot be changed", err)
	_, err = ask(first).Info(t.Context())
	fails("this is not part of the value that is archived", err)
	p.archive = nil
	_, err = ask(first).AllJobs(t.Context(), "")
	fails("this peer keeps no archive", err)
}
