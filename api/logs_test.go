package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster/facts"
	"starling/command"
	"starling/driver"
	"starling/terms"
)

// read returns whose output came, and the output.
func read(ctx context.Context, c *client.Client, request *starlingv1.LogsRequest) (whose, output string, err error) {
	text := &bytes.Buffer{}
	err = c.Logs(ctx, request, func(answer *starlingv1.LogsResponse) error {
		if answer.GetAllocation() != "" {
			whose = answer.GetAllocation() + " on " + answer.GetNode()
		}
		text.Write(answer.GetData())
		return nil
	})
	return whose, text.String(), err
}

// writers are two peers that answer for each other, and a job web with two instances on b, ordered with entry 8.
func writers(t *testing.T) (a, b *peer, c *client.Client) {
	a, b = pair()
	b.volunteer(b.serve(t)) // before the other, whose connections to it end first then
	address := a.serve(t)
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("web", 2, "b")})
	b.writes("web.main[0]#8", "hello\n")
	b.report(terms.SlotName{Job: "web", Task: "main"}, facts.NotEnded)
	return a, b, ask(t, address)
}

func TestLogs(t *testing.T) {
	a, b, c := writers(t)
	own := a.add("a~1", &command.SubmitJob{Spec: *jobOn("own", 1, "a")}).Index
	a.writes(fmt.Sprintf("own.main[0]#%d", own), "mine")
	cases := []struct {
		name    string
		request *starlingv1.LogsRequest
		whose   string
		want    string
	}{
		{"of a slot on another node", &starlingv1.LogsRequest{Job: "web"}, "web.main[0]#8 on b", "hello\n"},
		{"of its task", &starlingv1.LogsRequest{Job: "web", Task: "main"}, "web.main[0]#8 on b", "hello\n"},
		{"of an allocation", &starlingv1.LogsRequest{Allocation: "web.main[0]#8"}, "web.main[0]#8 on b", "hello\n"},
		{"the end", &starlingv1.LogsRequest{Job: "web", TailBytes: new(uint64(3))}, "web.main[0]#8 on b", "lo\n"},
		{"nothing of the end", &starlingv1.LogsRequest{Allocation: "web.main[0]#8", TailBytes: new(uint64(0)), Follow: true},
			"web.main[0]#8 on b", ""},
		{"standard error", &starlingv1.LogsRequest{Job: "web", Stream: "stderr"}, "web.main[0]#8 on b",
			"errors of web.main[0]#8"},
		{"of this node", &starlingv1.LogsRequest{Job: "own"}, fmt.Sprintf("own.main[0]#%d on a", own), "mine"},
	}
	for _, one := range cases {
		t.Run(one.name, func(t *testing.T) {
			whose, got, err := read(within(t), c, one.request)
			if err != nil || whose != one.whose || got != one.want {
				t.Errorf("got %q of %s, %v, want %q of %s", got, whose, err, one.want, one.whose)
			}
		})
	}
	t.Run("after the job has ended and its slot has another", func(t *testing.T) {
		b.report(terms.SlotName{Job: "web", Task: "main"}, facts.ByItself)
		b.report(terms.SlotName{Job: "web", Task: "main", Index: 1}, facts.ByItself)
		a.add("a~1", &command.SubmitJob{Spec: *jobOn("web", 1, "a")})
		whose, got, err := read(within(t), c, &starlingv1.LogsRequest{Allocation: "web.main[0]#8"})
		if err != nil || whose != "web.main[0]#8 on b" || got != "hello\n" {
			t.Errorf("got %q of %s, %v", got, whose, err)
		}
	})
}

// TestLogsOfARemovedInstance reads what an instance has written that a scale has removed since.
func TestLogsOfARemovedInstance(t *testing.T) {
	a, b, c := writers(t)
	b.writes("web.main[1]#8", "last words\n")
	a.add("a~1", &command.SubmitJob{Against: 1, Spec: *jobOn("web", 1, "b")})
	b.report(terms.SlotName{Job: "web", Task: "main", Index: 1}, facts.OnRequest)
	if slots := a.state.JobOf("web").Tasks[0].Slots.Len(); slots != 1 {
		t.Fatalf("%d slots are left, want 1", slots)
	}
	whose, text, err := read(within(t), c, &starlingv1.LogsRequest{Job: "web", Slot: 1})
	if err != nil || whose != "web.main[1]#8 on b" || text != "last words\n" {
		t.Errorf("got %q of %s, %v", text, whose, err)
	}
	if _, _, err := read(within(t), c, &starlingv1.LogsRequest{Job: "web", Slot: 2}); err == nil {
		t.Error("there are logs of an instance that never was")
	}
}

func TestLogsInPieces(t *testing.T) {
	_, b, c := writers(t)
	long := bytes.Repeat([]byte("0123456789"), 20_000)
	b.writes("web.main[0]#8", string(long))
	if _, got, err := read(within(t), c, &starlingv1.LogsRequest{Job: "web"}); err != nil || got != string(long) {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(long))
	}
}

func TestLogsOf(t *testing.T) {
	a, b, c := writers(t)
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("stuck", 1, "nowhere")})
	two := jobOn("two", 1, "a")
	two.Tasks = append(two.Tasks, two.Tasks[0])
	two.Tasks[1].Name = "other"
	a.add("a~1", &command.SubmitJob{Spec: *two})
	other, _ := terms.ParseAllocationID("two.other[0]#11")
	a.status.Waits = map[terms.AllocationID]string{other: "its input"}
	b.lock.Lock()
	b.logs["web.main[1]#8"] = func(context.Context, driver.LogOptions) (io.ReadCloser, error) {
		return io.NopCloser(iotest.ErrReader(errors.New("the disk is gone"))), nil
	}
	b.lock.Unlock()
	cases := []struct {
		name    string
		request *starlingv1.LogsRequest
		code    wire.Code
		want    string
	}{
		{"no job", &starlingv1.LogsRequest{Job: "nope"}, wire.NotFound,
			"there is no job \"nope\": `starling ps` lists them; those that have ended are forgotten after a while, with keep: 0 at once"},
		{"nothing asked", &starlingv1.LogsRequest{}, wire.Invalid, "the request: job must not be empty"},
		{"no task", &starlingv1.LogsRequest{Job: "web", Task: "x"}, wire.NotFound, `job web has no task "x", it has main`},
		{"which task", &starlingv1.LogsRequest{Job: "two"}, wire.Invalid,
			"the request: task must say which of the tasks of two is meant: main, other"},
		{"no slot", &starlingv1.LogsRequest{Job: "web", Slot: 2}, wire.NotFound,
			"web.main has no instance 2: it has 2, counted from 0"},
		{"not placed", &starlingv1.LogsRequest{Job: "stuck"}, wire.NotFound,
			"stuck.main[0] has no output: it is waiting and was never placed; `starling why stuck` tells more"},
		{"not started", &starlingv1.LogsRequest{Job: "two", Task: "main"}, wire.NotFound,
			"two.main[0]#11 has no output yet: node a is starting it"},
		{"waits", &starlingv1.LogsRequest{Job: "two", Task: "other"}, wire.NotFound,
			"two.other[0]#11 has no output yet: node a is starting it, and waits for its input"},
		{"no stream", &starlingv1.LogsRequest{Job: "web", Stream: "log"}, wire.Invalid,
			`the request: stream must be "stdout" or "stderr", is "log"`},
		{"no allocation", &starlingv1.LogsRequest{Allocation: "web"}, wire.Invalid,
			`the request: allocation must be as in web.server[2]#4711, is "web"`},
		{"forgotten", &starlingv1.LogsRequest{Allocation: "web.main[0]#3"}, wire.NotFound,
			"node a keeps no output of web.main[0]#3: it was dropped to save space, or there never was any"},
		{"of the future", &starlingv1.LogsRequest{Allocation: "web.main[0]#99"}, wire.NotFound,
			"node a keeps no output of web.main[0]#99: it was dropped to save space, or there never was any"},
		{"broken there", &starlingv1.LogsRequest{Job: "web", Slot: 1}, wire.Unavailable,
			"read the output of web.main[1]#8: the disk is gone"},
	}
	for _, one := range cases {
		t.Run(one.name, func(t *testing.T) {
			_, _, err := read(within(t), c, one.request)
			if failure := (*wire.Failure)(nil); !errors.As(err, &failure) || failure.Code != one.code ||
				failure.Reason != one.want {
				t.Errorf("got %v\nwant %s: %s", err, one.code, one.want)
			}
		})
	}
}

// TestLogsFollowFromTheBeginning asks for the output of a slot that has no node yet.
func TestLogsFollowFromTheBeginning(t *testing.T) {
	a, b, c := writers(t)
	ctx := within(t)
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("late", 1, "c")})
	type result struct {
		output string
		err    error
	}
	got := make(chan result, 1)
	go func() {
		_, output, err := read(ctx, c, &starlingv1.LogsRequest{Job: "late", Follow: true})
		got <- result{output, err}
	}()
	b.volunteer("") // an entry that brings no node
	spec := jobOn("late", 1, "a")
	order := a.add("a~1", &command.SubmitJob{Spec: *spec, Against: 1}).Index
	a.writes(fmt.Sprintf("late.main[0]#%d", order), "at last")
	a.report(terms.SlotName{Job: "late", Task: "main"}, facts.NotEnded)
	a.report(terms.SlotName{Job: "late", Task: "main"}, facts.ByItself)
	if r := <-got; r.err != nil || r.output != "at last" {
		t.Errorf("got %q, %v", r.output, r.err)
	}
}

// TestLogsFollowEveryAttempt follows an instance whose further attempts are over before anybody looks. One of them
// wrote nothing that is kept.
func TestLogsFollowEveryAttempt(t *testing.T) {
	a, _, c := writers(t)
	spec := jobOn("tries", 1, "a")
	spec.Tasks[0].Restart.AttemptsMax = 5
	a.add("a~1", &command.SubmitJob{Spec: *spec})
	slot := terms.SlotName{Job: "tries", Task: "main"}
	write := func(text string) {
		r, _ := a.state.RefOf(slot)
		now, _ := a.state.SlotAt(r)
		a.writes(fmt.Sprintf("%s#%d", slot, now.Order), text)
	}
	fail := func() {
		a.report(slot, facts.BySignal)
		a.add("a~1", &command.TellTime{})
	}
	write("one ")
	pieces, ended := make(chan string, 9), make(chan error, 1)
	ctx := within(t)
	go func() {
		ended <- c.Logs(ctx, &starlingv1.LogsRequest{Job: "tries", Follow: true}, func(piece *starlingv1.LogsResponse) error {
			pieces <- string(piece.GetData())
			return nil
		})
	}()
	got := <-pieces + <-pieces
	fail()
	fail()
	write("three ")
	fail()
	write("four")
	a.report(slot, facts.ByItself)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	close(pieces)
	for text := range pieces {
		got += text
	}
	if want := "one three four"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLogsFollowFromALostNode follows an instance whose machine dies, and which goes on elsewhere.
func TestLogsFollowFromALostNode(t *testing.T) {
	a, b, c := writers(t)
	first, died := "web.main[0]#8", make(chan struct{})
	b.lock.Lock()
	b.logs[first] = func(context.Context, driver.LogOptions) (io.ReadCloser, error) {
		select {
		case <-died:
			return nil, errors.New("this peer does not answer any more")
		default:
		}
		begin := strings.NewReader("begins ")
		return io.NopCloser(io.MultiReader(begin, silent(died), iotest.ErrReader(errors.New("it died")))), nil
	}
	b.lock.Unlock()
	pieces, ended := make(chan string, 9), make(chan error, 1)
	ctx := within(t)
	go func() {
		ended <- c.Logs(ctx, &starlingv1.LogsRequest{Job: "web", Follow: true}, func(piece *starlingv1.LogsResponse) error {
			pieces <- string(piece.GetData())
			return nil
		})
	}()
	got := <-pieces + <-pieces
	close(died)
	a.add("a~1", &command.Leave{Peer: "b~1"})
	order := a.add("a~1", &command.SubmitJob{Spec: *jobOn("web", 1, "a"), Against: 1}).Index
	a.writes(fmt.Sprintf("web.main[0]#%d", order), "goes on")
	a.report(terms.SlotName{Job: "web", Task: "main"}, facts.NotEnded)
	a.report(terms.SlotName{Job: "web", Task: "main"}, facts.ByItself)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	close(pieces)
	for text := range pieces {
		got += text
	}
	if want := "begins goes on"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// silent is a reader that has nothing, and ends when the channel is closed.
type silent chan struct{}

// Read implements io.Reader.
func (w silent) Read([]byte) (int, error) {
	<-w
	return 0, io.EOF
}

func TestLogsOfALostNode(t *testing.T) {
	a, b := pair()
	address := a.serve(t)
	b.volunteer("127.0.0.1:1")
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("web", 1, "b")})
	_, _, err := read(within(t), ask(t, address), &starlingv1.LogsRequest{Job: "web"})
	failure := (*wire.Failure)(nil)
	if !errors.As(err, &failure) || failure.Code != wire.Unavailable || !bytes.HasPrefix([]byte(failure.Reason),
		[]byte("the output of web.main[0]#8 is on node b, whose peer does not answer at 127.0.0.1:1: ")) {
		t.Errorf("got %v", err)
	}
	a.add("a~1", &command.Leave{Peer: "b~1"})
	_, _, err = read(within(t), ask(t, address), &starlingv1.LogsRequest{Job: "web"})
	want := "the output of web.main[0]#8 is on node b, which is not in the cluster now: ask again when it is back"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	a.add("a~1", &command.RemoveNode{Node: "b"})
	_, _, err = read(within(t), ask(t, address), &starlingv1.LogsRequest{Job: "web"})
	want = "the output of web.main[0]#8 is on node b, which was removed from the cluster, with what only it had"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestLogsByCurl reads what instances have written with plain HTTP: one stream or both, all or the end.
func TestLogsByCurl(t *testing.T) {
	a, b := pair()
	b.volunteer(b.serve(t))
	url := wire.URL(a.serve(t)) + "/v1/logs?"
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("web", 2, "b")})
	b.writes("web.main[0]#8", "hello\nworld\n")
	for _, c := range []struct {
		query, want string
		status      int
	}{
		{"of=web.main[0]", "hello\nworld\n", 200},
		{"of=web.main[0]%238&tail=6", "world\n", 200},
		{"of=web.main[0]&stream=stderr", "errors of web.main[0]#8", 200},
		{"of=web.main[0]%238&follow=true", "hello\nworld\n", 200},
		{"of=web", "of must be an instance such as web.server[2]", 400},
		{"of=web.main[0]&since=now", `unknown parameter \"since\": there are of, stream, tail and follow`, 400},
		{"of=web.main[0]&tail=x", "tail must be a number of bytes", 400},
		{"of=nothing.main[0]", "no job", 404},
	} {
		status, _, got := exchange(t, "GET", url+c.query, "")
		if status != c.status || got != c.want && (status == 200 || !strings.Contains(got, c.want)) {
			t.Errorf("%s: got %d %q, want %d %q", c.query, status, got, c.status, c.want)
		}
	}
	_, _, both := exchange(t, "GET", url+"of=web.main[0]&stream=both", "")
	for _, line := range []string{"stdout | hello\n", "stdout | world\n", "stderr | errors of web.main[0]#8\n"} {
		if !strings.Contains(both, line) {
			t.Errorf("both streams: got %q, want the line %q", both, line)
		}
	}
}
