package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"starling/cluster"
	"starling/jobspec"
)

// runFile submits the jobs of a file and follows them.
func (r *remote) runFile(ctx context.Context, file string, options runOptions) error {
	documents, err := r.readJobs(file)
	if err != nil {
		return err
	}
	peer, err := r.dial()
	if err != nil {
		return err
	}
	var names []string
	for i, document := range documents {
		name := string(document.Spec.Name)
		if _, err := peer.SubmitJob(ctx, &document.Spec, 0); err != nil {
			return fmt.Errorf("%s:%d: job %s: %w%s", file, document.Line, name, err, submittedBefore(names))
		}
		names = append(names, name)
		if options.detach {
			fmt.Fprintln(r.out, documents[i].Spec.Name)
		}
	}
	if options.detach {
		return nil
	}
	following, interrupted, release := attached(ctx, options.timeout)
	defer release()
	t := newTracker(peer, newProgress(r.console, names), names)
	wait, tellResults := t.wait, r.results
	if len(documents) == 1 && isProgram(&documents[0].Spec) && r.format == formatTable {
		wait = func(ctx context.Context) error { return r.waitWithOutput(ctx, t) }
		tellResults = r.failures
	}
	err = wait(following)
	switch {
	case interrupted():
		for _, name := range names {
			err = r.detached(name)
		}
		return err
	case err != nil:
		return t.outOfTime(err, options.timeout)
	}
	return tellResults(t)
}

// readJobs reads and checks a job file.
func (r *remote) readJobs(file string) ([]jobspec.Document, error) {
	var data []byte
	var err error
	if file == "-" {
		file = "stdin"
		data, err = io.ReadAll(r.in)
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fail(exitUsage, "read the job file: %w", err)
	}
	documents, err := jobspec.Parse(file, data)
	var wrong jobspec.Errors
	if errors.As(err, &wrong) {
		r.hint("%s", wrong.Error())
		return nil, fail(exitUsage, "%s has %s; nothing was submitted", file, counted(len(wrong), "error"))
	}
	if err == nil && len(documents) == 0 {
		err = fail(exitUsage, "%s holds no job", file)
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
func isProgram(spec *cluster.JobSpec) bool {
	return spec.Type == cluster.Batch && len(spec.Tasks) == 1 && spec.Tasks[0].Instances == 1
}

// results prints how the jobs stand in the end.
func (r *remote) results(t *tracker) error {
	rows := newTable("JOB", "STATUS", "INSTANCES")
	rows.colour = r.outColour
	for _, job := range t.jobs {
		status := job.last.GetJob()
		rows.row(status.GetName(), status.GetStatus(), tally(status.GetCounts()))
		if r.format != formatTable {
			if err := r.show(job.last, nil); err != nil {
				return err
			}
		}
	}
	if r.format == formatTable {
		if err := rows.write(r.out); err != nil {
			return err
		}
	}
	return r.failures(t)
}

// failures is the error for jobs that did not end well.
func (r *remote) failures(t *tracker) error {
	failed := []string{}
	for _, job := range t.jobs {
		if status := job.last.GetJob().GetStatus(); status == "failed" || status == "stopped" {
			failed = append(failed, job.name)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("not all went well: %q\nhint: starling job status %s; starling logs %s", failed, failed[0], failed[0])
}
