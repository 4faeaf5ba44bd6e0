package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"starling/api/client"
	"starling/api/draft"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
)

// stalledAfter is how long nothing more of a job may be placed until the reasons are told.
const stalledAfter = 2 * time.Second

// tracker follows jobs until each has reached its goal, and tells how they go.
type tracker struct {
	peer     *client.Client
	progress *console.Progress
	// reached tells whether the goal is.
	reached func(*starlingv1.JobStatusResponse) bool
	// visit sees every status; it may be nil.
	visit func(*starlingv1.JobStatusResponse)
	// quiet tells only what keeps a job from running.
	quiet bool
	jobs  []*tracked
}

// tracked is one job on its way.
type tracked struct {
	name string
	// from is an entry before the end of the job.
	from uint64
	last *starlingv1.JobStatusResponse
	// stalls is when the reasons are to be told; zero if nothing waits.
	stalls time.Time
	told   string
	done   bool
	// startedSuspended tells that the job was suspended from the beginning, so that nobody expects it to run.
	startedSuspended bool
	// unchanged tells that this command changed nothing, so that what its update came to is not its doing.
	unchanged bool
	// due is when a job that is as before has had its time to be healthy, zero for never; late tells that it was not.
	due  time.Time
	late bool
}

// update is news of the job with that number; err tells that no more will come.
type update struct {
	number int
	status *starlingv1.JobStatusResponse
	err    error
}

func newTracker(peer *client.Client, p *console.Progress, names []string) *tracker {
	t := &tracker{peer: peer, progress: p, reached: settled}
	for _, name := range names {
		t.jobs = append(t.jobs, &tracked{name: name})
	}
	return t
}

// settled tells whether a job has got where it will stay: a batch job has ended; the update of another, its first
// deployment too, has failed, or all is healthy and runs. An update that goes on only when its user says so is not
// waited for, nor a job that is suspended.
func settled(status *starlingv1.JobStatusResponse) bool {
	job := status.GetJob()
	c, u := job.GetCounts(), job.GetUpdate()
	moving := c.GetWaiting() + c.GetAssigned() + c.GetBackingOff() + c.GetStopping()
	updates := u.GetTo() != 0 && !u.GetFinal() && !awaitsUser(status)
	failed := u.GetFinal() && u.GetState() != draft.Succeeded
	return job.GetFinal() || rests(job) || job.GetType() != "batch" &&
		(failed || !updates && moving == 0 && (c.GetRunning() == c.GetDesired() || awaitsPromotion(status)))
}

// awaitsUser tells whether the update of a job goes on only when its user says so.
func awaitsUser(status *starlingv1.JobStatusResponse) bool {
	return status.GetJob().GetUpdate().GetState() == draft.Paused || awaitsPromotion(status)
}

// awaitsPromotion tells whether an update has canaries that are all healthy, and that only its user promotes.
func awaitsPromotion(status *starlingv1.JobStatusResponse) bool {
	c, u, canaries := status.GetJob().GetCounts(), status.GetJob().GetUpdate(), uint32(0)
	for _, task := range status.GetTasks() {
		canaries += task.GetChanges().GetCanaries()
	}
	ill := c.GetNotHealthy() + c.GetWaiting() + c.GetRescheduling() + c.GetAssigned() + c.GetBackingOff() + c.GetStopping()
	return u.GetState() == draft.Forward && !u.GetPromoted() && !status.GetSpec().GetUpdate().GetAutoPromote() &&
		canaries > 0 && ill == 0
}

// rests tells whether a job is suspended or has no instances, and nothing of it runs any more: nothing happens until
// its user wants it to.
func rests(job *starlingv1.Job) bool {
	c := job.GetCounts()
	return (job.GetStatus() == suspended || job.GetStatus() == idle) && c.GetRunning()+c.GetAssigned()+c.GetStopping() == 0
}

// wait returns nil when all goals are reached, or why that is not known: ctx has ended, or no peer answers.
func (t *tracker) wait(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var followers sync.WaitGroup
	defer followers.Wait()
	defer cancel()
	news := make(chan update)
	for i, job := range t.jobs {
		followers.Go(func() { t.follow(ctx, i, *job, news) })
	}
	stall := time.NewTimer(stalledAfter)
	defer stall.Stop()
	for left := len(t.jobs); left > 0; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-stall.C:
			if err := t.tellStalled(ctx); err != nil {
				return err
			}
			left -= t.giveUp()
		case u := <-news:
			if u.err != nil {
				return u.err
			}
			if !t.jobs[u.number].done && t.take(u) {
				left--
			}
		}
		stall.Reset(t.untilStall())
	}
	return nil
}

// follow sends the news of one job. How one has ended that was forgotten meanwhile, the journal tells.
func (t *tracker) follow(ctx context.Context, number int, job tracked, news chan<- update) {
	send := func(u update) {
		select {
		case news <- u:
		case <-ctx.Done():
		}
	}
	question := &starlingv1.JobStatusRequest{Job: job.name, PageSize: 1}
	err := t.peer.FollowJob(ctx, question, func(status *starlingv1.JobStatusResponse) (bool, error) {
		if job.from == 0 {
			job.from = status.GetIndex()
		}
		send(update{number: number, status: status})
		return t.arrived(&job, status), nil
	})
	if failure := (*wire.Failure)(nil); errors.As(err, &failure) && failure.Code == wire.NotFound && job.from > 0 {
		if end := endInJournal(ctx, t.peer, job.name, job.from); end.GetJob().GetFinal() {
			send(update{number: number, status: end})
			return
		}
	}
	if err != nil {
		send(update{number: number, err: fmt.Errorf("follow %s: %w", job.name, err)})
	}
}

// take notes the news and tells whether the job's goal is reached with it.
func (t *tracker) take(u update) bool {
	job := t.jobs[u.number]
	waited, waits := waitingOf(job.last), waitingOf(u.status)
	switch {
	case waits == 0 || u.status.GetJob().GetFinal():
		job.stalls = time.Time{}
	case job.last == nil || waits < waited || waited == 0:
		job.stalls = time.Now().Add(stalledAfter)
	}
	job.startedSuspended = job.startedSuspended || job.last == nil && u.status.GetJob().GetStatus() == suspended
	job.last = u.status
	if t.visit != nil {
		t.visit(u.status)
	}
	if !t.quiet {
		t.progress.Set(job.name, standing(u.status))
	}
	job.done = t.arrived(job, u.status)
	deadline := u.status.GetSpec().GetUpdate().GetProgressDeadlineMillis()
	if job.unchanged && job.due.IsZero() && deadline > 0 && u.status.GetJob().GetType() != "batch" {
		job.due = time.Now().Add(time.Duration(deadline) * time.Millisecond)
	}
	return job.done
}

// arrived tells whether a job has reached its goal. One that is as before has no update that would find it healthy.
func (t *tracker) arrived(job *tracked, status *starlingv1.JobStatusResponse) bool {
	now := status.GetJob()
	resting := now.GetFinal() || rests(now) || now.GetUpdate().GetFinal() && now.GetUpdate().GetState() != draft.Succeeded
	return t.reached(status) && (!job.unchanged || resting || isWell(now))
}

// giveUp ends the waiting for jobs that are as before and have not become healthy in time, and returns how many.
func (t *tracker) giveUp() (count int) {
	for _, job := range t.jobs {
		if !job.done && !job.due.IsZero() && time.Until(job.due) <= 0 {
			job.done, job.late = true, true
			count++
		}
	}
	return count
}

// standing tells in a line how a job stands.
func standing(status *starlingv1.JobStatusResponse) string {
	job := status.GetJob()
	if job.GetFinal() {
		return job.GetStatus()
	}
	if u := job.GetUpdate(); u.GetFrom() != 0 && !u.GetFinal() {
		return fmt.Sprintf("update to version %d %s: %s", u.GetTo(), draft.StateText(u.GetState()), tallyOf(status))
	}
	return tallyOf(status)
}

// untilStall is the time to the next job that stalls.
func (t *tracker) untilStall() time.Duration {
	next := time.Hour
	for _, job := range t.jobs {
		if !job.stalls.IsZero() && !job.done {
			next = min(next, max(time.Until(job.stalls), 0))
		}
		if !job.due.IsZero() && !job.done {
			next = min(next, max(time.Until(job.due), 0))
		}
	}
	return next
}

// tellStalled tells the reasons why jobs do not get on, and looks again later.
func (t *tracker) tellStalled(ctx context.Context) error {
	for _, job := range t.jobs {
		if job.done || job.stalls.IsZero() || time.Until(job.stalls) > 0 {
			continue
		}
		job.stalls = time.Now().Add(stalledAfter)
		answer, err := t.peer.Why(ctx, &starlingv1.WhyRequest{Job: job.name})
		if err != nil && !errors.Is(err, client.ErrUnreachable) { // otherwise FollowJob asks on, and tells how that ends
			return fmt.Errorf("ask why %s waits: %w", job.name, err)
		}
		if text := reasons(answer); text != job.told && err == nil {
			job.told = text
			t.progress.Say(findings(answer, time.Now()))
		}
	}
	return nil
}

// reasons are what must change for the findings to be told again; the time that has passed is not.
func reasons(answer *starlingv1.WhyResponse) string {
	text := ""
	for _, f := range answer.GetFindings() {
		text += fmt.Sprintf("%s %s %q\n", f.GetTask(), f.GetReason(), f.GetDetails())
	}
	return text
}

// placed tells whether every job has at least one instance on a node, or needs none.
func (t *tracker) placed() bool {
	for _, job := range t.jobs {
		c := job.last.GetJob().GetCounts()
		if job.last == nil || c.GetWaiting() > 0 && c.GetWaiting() == c.GetDesired() {
			return false
		}
	}
	return true
}

// outOfTime returns the error for the end of --timeout, if err is that.
func (t *tracker) outOfTime(err error, timeout time.Duration) error {
	switch {
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	case !t.placed():
		return exit.Fail(exit.NotPlaced, "not placed within %s; the job goes on waiting", timeout)
	}
	return exit.Fail(exit.Timeout, "not done within %s; the job goes on", timeout)
}

// endInJournal finds in the journal how a job has ended that is forgotten, as far as that is remembered; from is an
// entry before its end.
func endInJournal(ctx context.Context, peer *client.Client, name string, from uint64) *starlingv1.JobStatusResponse {
	e := &ending{name: name, slots: map[string]*starlingv1.Slot{}}
	// What was read before an error is what there is to say.
	_ = peer.TailJournal(ctx, &starlingv1.TailJournalRequest{From: from},
		func(answer *starlingv1.TailJournalResponse) error {
			for _, effect := range answer.GetEntry().GetEffects() {
				if effect.GetJob() == name && !draft.HasEnded(e.status.GetJob()) {
					e.take(effect, answer.GetEntry().GetIndex())
				}
			}
			return nil
		})
	return e.status
}

// ending is how a job ended, by what the journal tells.
type ending struct {
	name   string
	status *starlingv1.JobStatusResponse
	slots  map[string]*starlingv1.Slot
	order  []string
}

// take notes what the entry at index did to the job.
func (e *ending) take(effect *starlingv1.EffectWords, index uint64) {
	_, reason, _ := strings.Cut(effect.GetText(), ": ")
	switch effect.GetKind() {
	case "ended":
		slot, _, _ := strings.Cut(effect.GetAllocation(), "#")
		if e.slots[slot] == nil {
			e.order = append(e.order, slot)
		}
		e.slots[slot] = endedSlot(effect, reason)
	case "job finished":
		job := &starlingv1.Job{Name: e.name, Status: reason, Final: true, FinishedIndex: index, Counts: &starlingv1.Counts{}}
		e.status = &starlingv1.JobStatusResponse{Job: job}
		for _, name := range e.order {
			slot := e.slots[name]
			e.status.Slots = append(e.status.Slots, slot)
			if slot.GetEnded() == "exited" && slot.GetExitCode() == 0 {
				job.Counts.Succeeded++
			} else {
				job.Counts.Failed++
			}
		}
	}
}

// endedSlot reads how an allocation ended, in the words of effects.
func endedSlot(effect *starlingv1.EffectWords, reason string) *starlingv1.Slot {
	slot := &starlingv1.Slot{Allocation: effect.GetAllocation(), Node: effect.GetNode()}
	code := int32(0)
	if n, _ := fmt.Sscanf(reason, "exited with %d", &code); n == 1 {
		slot.Ended, slot.ExitCode = "exited", code
		return slot
	}
	if n, _ := fmt.Sscanf(reason, "killed by signal %d", &code); n == 1 {
		slot.Ended, slot.ExitCode = "killed by a signal", code+128
		return slot
	}
	slot.Ended, _, _ = strings.Cut(reason, ": ")
	switch slot.GetEnded() {
	case "out of memory", "out of disk":
		slot.ExitCode = 137
	}
	return slot
}
