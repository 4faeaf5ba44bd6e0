package jobs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/jobspec"
	"starling/terms"
	"starling/validate"
)

// runProgram runs one program as a job, shows its output and ends with its status.
func runProgram(ctx context.Context, r *remote.Remote, argv []string, options runOptions) error {
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	name := jobNameFor(argv[0], r.RequestID())
	submitted, err := submitProgram(ctx, peer, jobspec.Command(name, argv), options)
	if err != nil {
		return err
	}
	if options.detach {
		return r.ShowTaken(submitted)
	}
	following, interrupted, release := console.Attached(ctx, options.timeout)
	defer release()
	t := newTracker(peer, console.NewProgress(r.Console, nil), []string{name})
	t.quiet, t.jobs[0].from = true, submitted.GetIndex()
	err = waitWithOutput(following, r, t)
	switch {
	case interrupted():
		return detached(r, name)
	case err != nil:
		return t.outOfTime(err, options.timeout)
	}
	err = programStatus(name, t.jobs[0].last)
	if errors.Is(err, errNotStarted) {
		return fmt.Errorf("%w%s", err, startProblem(ctx, peer, submitted))
	}
	return err
}

// submitProgram submits the job of one program, with what the options let that ask for.
func submitProgram(ctx context.Context, peer *client.Client, spec terms.Job,
	options runOptions) (*starlingv1.SubmitJobResponse, error) {
	asks := &spec.Tasks[0].Resources
	asks[terms.CPU] = cmp.Or(options.cpu.amount, programCPU)
	asks[terms.Memory] = cmp.Or(options.memory.amount, asks[terms.Memory])
	if problems := validate.Submission(&spec); len(problems) > 0 {
		return nil, problemList(problems)
	}
	return peer.SubmitJob(ctx, &spec, 0)
}

// programCPU is what a program asks for that does not say: little, so that it finds room at once.
const programCPU = 200

// quantity is the value of a flag that states an amount; 0 for none.
type quantity struct {
	parse  func(string) (int64, error)
	text   string
	amount int64
}

// Set implements pflag.Value.
func (q *quantity) Set(text string) (err error) {
	if q.amount, err = q.parse(text); err == nil && q.amount == 0 {
		err = errors.New("must be more than 0")
	}
	q.text = text
	return err
}

// String implements pflag.Value.
func (q *quantity) String() string { return q.text }

// Type implements pflag.Value.
func (q *quantity) Type() string { return "quantity" }

// jobNameFor derives a job's name from a program's, with a suffix that makes it new, and the same for the same request.
func jobNameFor(program, requestID string) string {
	const programBytesMax, suffixBytes = 50, 4
	name := []byte(path.Base(program))
	for i, c := range name {
		if terms.NameProblem("a"+string(rune(c)), false) != "" {
			name[i] = '-'
		}
	}
	text := strings.Trim(string(name[:min(len(name), programBytesMax)]), "-_")
	sum := sha256.Sum256([]byte(requestID))
	return cmp.Or(text, "run") + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:suffixBytes])
}

// outputTimeout is how long the rest of the output may take after a program has ended. It is there at once, unless the
// program's machine is gone.
const outputTimeout = 10 * time.Second

// programOutput shows both streams of every allocation of a slot.
type programOutput struct {
	remote  *remote.Remote
	peer    *client.Client
	shown   map[string]bool
	readers sync.WaitGroup
	mu      sync.Mutex
	broken  []string // why not all was shown
}

// waitWithOutput follows a job of one instance like wait, and shows the instance's output meanwhile.
func waitWithOutput(ctx context.Context, r *remote.Remote, t *tracker) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	output := &programOutput{remote: r, peer: t.peer, shown: map[string]bool{}}
	t.visit = func(status *starlingv1.JobStatusResponse) { output.show(ctx, status) }
	err := t.wait(ctx)
	if err != nil {
		cancel()
	}
	late := time.AfterFunc(outputTimeout, cancel)
	defer late.Stop()
	output.readers.Wait()
	if !errors.Is(programStatus("", t.jobs[0].last), errNotStarted) {
		for _, why := range output.broken {
			r.Hint("%s", why)
		}
	}
	return err
}

// show begins to show an allocation when it is there.
func (p *programOutput) show(ctx context.Context, status *starlingv1.JobStatusResponse) {
	for _, slot := range status.GetSlots() {
		id := slot.GetAllocation()
		if id == "" || p.shown[id] || strings.HasPrefix(slot.GetEnded(), errNotStarted.Error()) {
			continue
		}
		p.shown[id] = true
		p.readers.Go(func() { p.copy(ctx, id, "stdout") })
		p.readers.Go(func() { p.copy(ctx, id, "stderr") })
	}
}

func (p *programOutput) copy(ctx context.Context, allocation, stream string) {
	out := p.remote.Out
	if stream == "stderr" {
		out = p.remote.Err
	}
	question := &starlingv1.LogsRequest{Allocation: allocation, Stream: stream, Follow: true}
	err := p.peer.Logs(ctx, question, func(piece *starlingv1.LogsResponse) error {
		_, err := out.Write(piece.GetData())
		return err
	})
	if err != nil && ctx.Err() == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.broken = append(p.broken, fmt.Sprintf("starling: the %s of %s broke off: %v", stream, allocation, err))
	}
}

// programStatus returns what the end of the program means for the exit status.
func programStatus(name string, last *starlingv1.JobStatusResponse) error {
	if len(last.GetSlots()) == 0 {
		return fmt.Errorf("%s was %s before it began", name, last.GetJob().GetStatus())
	}
	slot := last.GetSlots()[0]
	switch slot.GetEnded() {
	case "exited", "killed by a signal":
		if slot.GetExitCode() == 0 {
			return nil
		}
		return exit.Silent(slot.GetExitCode())
	case "out of memory":
		return exit.Fail(int(slot.GetExitCode()), "%s was killed on node %s: it used more memory than it had asked for",
			name, slot.GetNode())
	case "out of disk":
		return exit.Fail(int(slot.GetExitCode()), "%s was killed on node %s: it took more of the disk than it may, or filled it", name,
			slot.GetNode())
	case "could not be started", "could not be started there":
		return fmt.Errorf("%s %w on node %s", name, errNotStarted, slot.GetNode())
	}
	return fmt.Errorf("%s: %s", name, cmp.Or(slot.GetEnded(), last.GetJob().GetStatus()))
}

// errNotStarted tells that there was nothing to run.
var errNotStarted = errors.New("could not be started")

// startProblem finds in the journal why a program could not be started, "" if that is not remembered.
func startProblem(ctx context.Context, peer *client.Client, submitted *starlingv1.SubmitJobResponse) string {
	reason := ""
	question := &starlingv1.TailJournalRequest{From: submitted.GetIndex()}
	err := peer.TailJournal(ctx, question, func(answer *starlingv1.TailJournalResponse) error {
		for _, effect := range answer.GetEntry().GetEffects() {
			if _, why, found := strings.Cut(effect.GetText(), "could not be started"); found &&
				effect.GetJob() == submitted.GetJob() {
				reason = strings.TrimPrefix(why, " there")
			}
		}
		return nil
	})
	if err != nil {
		return ""
	}
	return reason
}

// tellStart tells why the program of a job could not be started, if that is how it ended.
func tellStart(ctx context.Context, r *remote.Remote, peer *client.Client, job *tracked) {
	if err := programStatus(job.name, job.last); errors.Is(err, errNotStarted) {
		r.Hint("%v%s", err, startProblem(ctx, peer, &starlingv1.SubmitJobResponse{Job: job.name, Index: job.from}))
	}
}

// problemList is the error for a job that the cluster would refuse.
func problemList(problems []terms.Problem) error {
	var lines []error
	for _, p := range problems {
		lines = append(lines, fmt.Errorf("%s: %s", p.Path, p.Reason))
	}
	return exit.Fail(exit.Usage, "%w", errors.Join(lines...))
}
