package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
	"starling/jobspec"
	"starling/terms"
)

// runFile submits the jobs of a file and follows them.
func runFile(ctx context.Context, r *remote.Remote, file string, options runOptions) error {
	documents, err := readJobs(r, file)
	if err != nil {
		return err
	}
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	var names []string
	unchanged, from := map[string]bool{}, map[string]uint64{}
	for _, document := range documents {
		name := string(document.Spec.Name)
		index, changed, err := submit(ctx, r, peer, &document.Spec, options.against)
		if err != nil {
			return fmt.Errorf("%s:%d: job %s: %w%s", file, document.Line, name, err, submittedBefore(names))
		}
		names, unchanged[name], from[name] = append(names, name), !changed, index
		if options.detach {
			fmt.Fprintln(r.Out, name)
		}
	}
	if options.detach {
		return nil
	}
	t := newTracker(peer, console.NewProgress(r.Console, names), names)
	for _, job := range t.jobs {
		job.unchanged, job.from = unchanged[job.name], from[job.name]
	}
	if len(documents) == 1 && isProgram(&documents[0].Spec) && r.ForPeople() {
		wait := func(ctx context.Context) error { return waitWithOutput(ctx, r, t) }
		return follow(ctx, r, t, options.timeout, following{wait, failures})
	}
	return follow(ctx, r, t, options.timeout, following{t.wait, results})
}

// following is how jobs are waited for, and what is told of them in the end.
type following struct {
	wait    func(context.Context) error
	results func(*remote.Remote, *tracker) error
}

// follow follows jobs until all is done, Ctrl-C or the end of the time.
func follow(ctx context.Context, r *remote.Remote, t *tracker, timeout time.Duration, how following) error {
	attachedContext, interrupted, release := console.Attached(ctx, timeout)
	defer release()
	err := how.wait(attachedContext)
	switch {
	case interrupted():
		for _, job := range t.jobs {
			err = detached(r, job.name)
		}
		return err
	case err != nil:
		return t.outOfTime(err, timeout)
	}
	return how.results(r, t)
}

// submit brings a job, or a new version of it, with the entry at index; changed is false if it is the same.
func submit(
	ctx context.Context, r *remote.Remote, peer *client.Client, spec *terms.Job, against usage.Version,
) (index uint64, changed bool, err error) {
	present, err := present(ctx, peer, string(spec.Name))
	if err != nil {
		return 0, false, err
	}
	if !against.Given {
		against.Number = present.GetJob().GetVersion()
	}
	if against.Number == present.GetJob().GetVersion() && present != nil {
		if old, problems := wire.SpecOf(present.GetSpec()); len(problems) == 0 && old.Equal(spec) {
			r.Hint("%s: nothing has changed, it keeps version %d", spec.Name, against.Number)
			return present.GetIndex(), false, nil
		}
	}
	answer, err := peer.SubmitJob(ctx, spec, against.Number)
	return answer.GetIndex(), true, stale(ctx, peer, string(spec.Name), against.Number, err)
}

// present returns how a job stands; nil if there is none, or it has ended, so that a new one would take its name.
func present(ctx context.Context, peer *client.Client, job string) (*starlingv1.JobStatusResponse, error) {
	status, err := target.Known(ctx, peer, job)
	if status.GetJob().GetFinal() {
		return nil, err
	}
	return status, err
}

// stale says which version is there now, if a change was refused because somebody else was faster.
func stale(ctx context.Context, peer *client.Client, job string, against uint32, err error) error {
	var refused *wire.Failure
	if !errors.As(err, &refused) || refused.Code != wire.Conflict {
		return err
	}
	present, failure := present(ctx, peer, job)
	version := present.GetJob().GetVersion()
	switch {
	case failure != nil || version == against:
		return err
	case version == 0:
		return fmt.Errorf("%w\nhint: there is no job %s now, or it has ended", err, job)
	case against == 0:
		return fmt.Errorf("%w\nhint: it has version %d now: starling job history %s", err, version, job)
	}
	return fmt.Errorf("%w\nhint: it has version %d now, this change was made against %d: starling job diff %s %d %d", err,
		version, against,
		job, against, version)
}

// readJobs reads and checks a job file.
func readJobs(r *remote.Remote, file string) ([]jobspec.Document, error) {
	data, file, err := r.ReadFile(file, "job file")
	if err != nil {
		return nil, err
	}
	documents, err := jobspec.Parse(file, data)
	var wrong jobspec.Errors
	if errors.As(err, &wrong) {
		r.Hint("%s", wrong.Error())
		return nil, exit.Fail(exit.Usage, "%s has %s; nothing was submitted", file, console.Counted(len(wrong), "error"))
	}
	if err == nil && len(documents) == 0 {
		err = exit.Fail(exit.Usage, "%s holds no job", file)
	}
	return documents, err
}

func submittedBefore(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("\nsubmitted before it: %q", names)
}

// isProgram tells whether a job is one program that runs once: what people want to see of it is its output.
func isProgram(spec *terms.Job) bool {
	return spec.Type == terms.Batch && len(spec.Tasks) == 1 && spec.Tasks[0].Instances == 1
}

// results prints how the jobs stand in the end.
func results(r *remote.Remote, t *tracker) error {
	rows := console.NewTable("JOB", "STATUS", "INSTANCES")
	rows.Colour = r.OutColour
	for _, job := range t.jobs {
		status := job.last.GetJob()
		rows.Row(status.GetName(), status.GetStatus(), tally(status.GetCounts()))
		if !r.ForPeople() {
			if err := r.Show(job.last, nil); err != nil {
				return err
			}
		}
	}
	if r.ForPeople() {
		if err := rows.Write(r.Out); err != nil {
			return err
		}
	}
	return failures(r, t)
}

// failures is the error for jobs that did not end well.
func failures(r *remote.Remote, t *tracker) error {
	failed := []string{}
	for _, job := range t.jobs {
		status, u := job.last.GetJob().GetStatus(), job.last.GetJob().GetUpdate()
		if u.GetFinal() && u.GetState() != succeeded && !job.unchanged && !job.last.GetJob().GetFinal() {
			r.Hint("%s: %s", job.name, updateText(u))
			failed = append(failed, job.name)
		} else if status == "failed" || status == "stopped" {
			failed = append(failed, job.name)
		}
		if status == suspended {
			r.Hint("%s is suspended: it goes on with starling job resume %s", job.name, job.name)
			if !job.rested {
				failed = append(failed, job.name)
			}
		}
		if status == idle {
			r.Hint("%s has no instances: starling scale %s=NUMBER gives it some", job.name, job.name)
		}
		if u.GetState() == paused {
			r.Hint("%s: %s\nhint: starling job update resume %s", job.name, updateText(u), job.name)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("not all went well: %q\nhint: starling job status %s; starling logs %s", failed, failed[0],
		failed[0])
}
