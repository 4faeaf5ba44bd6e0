package api

import (
	"errors"
	"strings"
	"testing"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
)

// TestSessions talks by way of peer a with programs beside an instance on b.
func TestSessions(t *testing.T) {
	a, b := pair()
	b.volunteer(b.serve(t))
	order := a.add("a~1", &command.SubmitJob{Spec: *jobOn("web", 1, "b")}).Index
	id := terms.AllocationID{Slot: terms.SlotName{Job: "web", Task: "main"}, Order: order}.String()
	c := ask(t, a.serve(t))
	talk := func(request *starlingv1.ExecRequest, s client.Session) (code int, out, errs string, err error) {
		var stdout, stderr strings.Builder
		s.Stdout, s.Stderr = &stdout, &stderr
		code, err = c.Exec(within(t), request, s)
		return code, stdout.String(), stderr.String(), err
	}
	refused := func(request *starlingv1.ExecRequest, code wire.Code, want string) {
		t.Helper()
		var failure *wire.Failure
		if _, _, _, err := talk(request, client.Session{}); !errors.As(err, &failure) || failure.Code != code ||
			!strings.Contains(failure.Reason, want) {
			t.Errorf("got %v, want %s: %s", err, code, want)
		}
	}
	sh := []string{"sh"}
	refused(&starlingv1.ExecRequest{Job: "web", Command: sh}, wire.Conflict, "web.main[0] does not run: it is assigned")
	r, _ := a.state.RefOf(terms.SlotName{Job: "web", Task: "main"})
	b.ready(r)

	big := strings.Repeat("word ", 300_000)
	code, out, errs, err := talk(&starlingv1.ExecRequest{Job: "web", Command: []string{"cat", "-"}},
		client.Session{Input: strings.NewReader(big)})
	if err != nil || code != 7 || out != big || errs != "b~1 "+id+" [cat -]\n" {
		t.Errorf("got %d, %d bytes, %q, %v", code, len(out), errs, err)
	}
	resized := make(chan *starlingv1.ExecRequest, 1)
	resized <- &starlingv1.ExecRequest{Columns: 100, Rows: 50}
	code, out, _, err = talk(&starlingv1.ExecRequest{Allocation: id, Command: sh, Terminal: true, Columns: 80, Rows: 24,
		Env: []string{"TERM=vt100"}}, client.Session{Resized: resized})
	if err != nil || code != 7 || out != "{80 24} {100 50} [TERM=vt100]\n" {
		t.Errorf("got %d, %q, %v", code, out, err)
	}

	wantAttached(t, c, id)
	refused(&starlingv1.ExecRequest{Job: "web", Session: "abc"}, wire.Invalid, "has a terminal")
	refused(&starlingv1.ExecRequest{Job: "web"}, wire.Invalid, "command must name a program")
	refused(&starlingv1.ExecRequest{Job: "none", Command: sh}, wire.NotFound, `no job "none"`)
	refused(&starlingv1.ExecRequest{Allocation: "web", Command: sh}, wire.Invalid, "must be as in")
	refused(&starlingv1.ExecRequest{Allocation: "web.main[0]#1", Command: sh}, wire.Conflict,
		"has ended: the instance is "+id)
	refused(&starlingv1.ExecRequest{Job: "web", Command: []string{"missing"}}, wire.NotFound, "program missing not found")
	b.report(terms.SlotName{Job: "web", Task: "main"}, facts.ByItself)
	refused(&starlingv1.ExecRequest{Job: "web", Command: sh}, wire.Conflict, "does not run")
}

// wantAttached attaches to a session on b, and lists it.
func wantAttached(t *testing.T, c *client.Client, id string) {
	t.Helper()
	var out strings.Builder
	name := ""
	code, err := c.Exec(within(t), &starlingv1.ExecRequest{Job: "web", Terminal: true, Session: "abc"}, client.Session{
		Stdout: &out, Stderr: &out, Began: func(told *starlingv1.ExecResponse) { name = told.GetSession() }})
	if err != nil || code != 8 || out.String() != "b~1 "+id+" goes on with abc\n" || name != "abc" {
		t.Errorf("attached: got %d, %q, %v in session %q", code, &out, err, name)
	}
	all, err := c.ListSessions(within(t), &starlingv1.ListSessionsRequest{Job: "web"})
	if err != nil || len(all.GetSessions()) != 1 || all.GetSessions()[0].GetName() != "abc" || all.GetNode() != "b" {
		t.Errorf("sessions: got %v, %v", all, err)
	}
}
