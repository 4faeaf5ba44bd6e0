package jobs

import (
	"context"
	"errors"
	"time"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/dialog"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/jobspec"
	"starling/terms"
)

// runInteractive runs one program as a job that ends with it, and lets the user talk with it.
func runInteractive(ctx context.Context, r *remote.Remote, argv []string, options runOptions) error {
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	name := jobNameFor(argv[0], r.RequestID())
	spec := jobspec.Command(name, dialog.HoldPlace())
	if _, err := submitProgram(ctx, peer, spec, options); err != nil {
		return err
	}
	waiting, interrupted, release := console.Attached(ctx, options.timeout)
	t := newTracker(peer, console.NewProgress(r.Console, nil), []string{name})
	t.quiet, t.reached = true, func(status *starlingv1.JobStatusResponse) bool {
		return status.GetJob().GetFinal() || status.GetJob().GetCounts().GetRunning() > 0
	}
	defer release()
	switch err = t.wait(waiting); {
	case interrupted():
		err = errors.New("interrupted: the program was not run")
	case waiting.Err() != nil:
		err = exit.Fail(exit.NotPlaced, "the program did not start within %s, and its job %s is stopped", options.timeout, name)
	case err != nil:
	case t.jobs[0].last.GetJob().GetFinal():
		return programStatus(name, t.jobs[0].last)
	default:
		release() // from now on Ctrl-C is the program's
		err = options.session.Run(ctx, &starlingv1.ExecRequest{Job: name, Task: string(spec.Tasks[0].Name),
			Command: dialog.InPlace(argv)})
	}
	var status exit.Silent
	if err != nil && !errors.As(err, &status) && !errors.Is(err, dialog.ErrGoesOn) { // nobody will come
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
		defer cancel()
		_, _ = peer.KillJob(ending, terms.JobName(name), 0, false)
	}
	return err
}

// endWithin bounds how long the end of a job may take that is not needed any more; it ends by itself otherwise.
const endWithin = 5 * time.Second
