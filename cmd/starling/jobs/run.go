package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/draft"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cmd/starling/console"
	"starling/cmd/starling/dialog"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/files"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
	"starling/jobspec"
	"starling/terms"
)

// runOptions are the flags of "starling run".
type runOptions struct {
	detach  bool
	timeout time.Duration
	// against is the version that the file was made against; unless stated, the one that is there now.
	against usage.Version
	// cpu and memory are what a program asks for.
	cpu    quantity
	memory quantity
	// secrets are NAME=FILE, put before the jobs are submitted.
	secrets []string
	// session is how a program is talked with, if it is.
	session dialog.Session
}

// talks tells whether the user talks with the program.
func (o *runOptions) talks() bool { return o.session.Interactive || o.session.Terminal }

// flags declares how a job is followed after a change.
func (o *runOptions) flags(command *cobra.Command) {
	command.Flags().BoolVarP(&o.detach, "detach", "d", false, "return when the change is submitted")
	usage.Wait(command.Flags(), &o.timeout, "timeout",
		"stop following after this `DURATION`, such as 30s; the jobs go on")
}

func newRun(r *remote.Remote) *cobra.Command {
	options := runOptions{cpu: quantity{parse: jobspec.ParseCPU}, memory: quantity{parse: jobspec.ParseBytes},
		session: dialog.Session{Remote: r}}
	command := &cobra.Command{
		Use:   "run FILE.yaml | -- PROGRAM [ARGUMENT...]",
		Short: "Run the jobs of a file, or one program",
		Long: `Run the jobs of a file, or with "--" one program.

A file (- for standard input) is checked first; then each of its jobs is submitted, or updated if it exists, and
followed until all of it is healthy, or has ended if it is a batch job. What waits for more than a few seconds is
explained. A service that does not become healthy has failed, and so has this command; -d does not wait. With the first job that
the cluster refuses, as for want of its pool, no more are submitted, and those before it go on; "starling plan FILE" names all.

A change is made against the version that the job has now, or the one that --against states; if somebody else has
changed the job meanwhile, nothing is done. With --secret what the jobs are to read is kept first, as "starling secret put" does it.

A program runs once, somewhere. Its output is shown as it comes, and its exit status becomes that of this command. It may
use a fifth of a core and 256Mi of memory, unless --cpu and --memory say otherwise. With -i it reads standard input, with -it it has
a terminal, and ends with this command; that needs the role operator in the pool, as "starling exec" does.

Ctrl-C detaches: the jobs go on. With -i it ends the program, with -it it is the program's, and ~. at the beginning of a line detaches.`,
		Example: "  starling run web.yaml\n  starling run web.yaml --secret db-password=password.txt\n  starling run -- sh -c 'echo hi; hostname'\n  starling run -it -- python3",
		Args: func(command *cobra.Command, args []string) error {
			dashed := command.ArgsLenAtDash()
			switch {
			case dashed != 0 && (command.Flags().Changed("cpu") || command.Flags().Changed("memory")):
				return usage.Error(command, errors.New("--cpu and --memory are for a program behind --: in a FILE write resources"))
			case dashed == 0 && len(options.secrets) > 0:
				return usage.Error(command, errors.New("--secret is for the jobs of a FILE"))
			case options.talks() && (dashed != 0 || options.detach):
				return usage.Error(command, errors.New("-i and -t are for a program behind --, and not together with -d"))
			case dashed == 0 && len(args) > 0, dashed < 0 && len(args) == 1:
				return nil
			case dashed < 0 && len(args) > 1:
				return usage.Error(command, fmt.Errorf("starling run takes one FILE, got %q as well; a program goes behind --",
					args[1]))
			}
			return usage.Error(command, errors.New("starling run needs a FILE, or -- and a PROGRAM"))
		},
		RunE: func(command *cobra.Command, args []string) error {
			if err := options.session.Check(); err != nil {
				return usage.Error(command, err)
			}
			if options.talks() {
				return runInteractive(command.Context(), r, args, options)
			}
			if command.ArgsLenAtDash() == 0 {
				return runProgram(command.Context(), r, args, options)
			}
			return runFile(command.Context(), r, args[0], options)
		},
	}
	options.flags(command)
	options.session.Flags(command)
	command.Flags().Var(&options.cpu, "cpu", "`CORES` for a program, such as 2 or 500m (default 200m)")
	command.Flags().Var(&options.memory, "memory", "`BYTES` of memory for a program, such as 1Gi (default 256Mi)")
	command.Flags().StringArrayVar(&options.secrets, "secret", nil,
		"put what a file holds first, as a secret that jobs of FILE name: `NAME=FILE`, - for standard input; repeatable")
	command.Flags().Var(&options.against, "against",
		"the `VERSION` that the file was made against, 0 for a new job (default: the present one)")
	return command
}

// detached says how to come back to a job that goes on.
func detached(r *remote.Remote, name string) error {
	r.Hint("\ndetached; %s goes on\n  come back: starling logs -f %s\n  stop it:   starling stop %s", name, name, name)
	return exit.Silent(exit.Detached)
}

// runFile submits the jobs of a file and follows them.
func runFile(ctx context.Context, r *remote.Remote, file string, options runOptions) error {
	documents, err := files.Jobs(r.Console, file, nothingSubmitted)
	if err != nil {
		return err
	}
	secrets, err := secretsOf(r, file, documents, options.secrets)
	if err != nil {
		return err
	}
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	if err := checkAgainst(ctx, peer, documents, options); err != nil {
		return err
	}
	if err := putSecrets(ctx, r, peer, secrets); err != nil {
		return err
	}
	names, answers := []string{}, map[string]*starlingv1.SubmitJobResponse{}
	for _, document := range documents {
		name := string(document.Spec.Name)
		answer, err := submit(ctx, r, peer, &document.Spec, options.against)
		if err == nil && options.detach {
			err = r.ShowTaken(answer)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: job %s: %w%s", file, document.Line, name, err, submittedBefore(names))
		}
		names, answers[name] = append(names, name), answer
	}
	if options.detach {
		return nil
	}
	t := newTracker(peer, console.NewProgress(r.Console, names), names)
	for _, job := range t.jobs {
		job.unchanged, job.from = answers[job.name].GetUnchanged(), answers[job.name].GetIndex()
	}
	if len(documents) == 1 && isProgram(&documents[0].Spec) && r.ForPeople() {
		wait := func(ctx context.Context) error {
			err := waitWithOutput(ctx, r, t)
			tellStart(ctx, r, peer, t.jobs[0])
			return err
		}
		return follow(ctx, r, t, options.timeout, following{wait, failures})
	}
	return follow(ctx, r, t, options.timeout, following{t.wait, results})
}

// secretValue is what a secret of a pool is to hold.
type secretValue struct {
	pool, name string
	value      []byte
}

// checkAgainst refuses to put secrets of jobs that have another version than is stated.
func checkAgainst(ctx context.Context, peer *client.Client, documents []jobspec.Document, options runOptions) error {
	for i := 0; i < len(documents) && len(options.secrets) > 0 && options.against.Given; i++ {
		job := string(documents[i].Spec.Name)
		there, err := present(ctx, peer, job)
		if err != nil {
			return err
		}
		if now := there.GetJob().GetVersion(); now != options.against.Number {
			return exit.Fail(exit.Conflict, "job %s has version %d now, not %d; %s", job, now, options.against.Number,
				nothingSubmitted)
		}
	}
	return nil
}

// secretsOf reads what --secret says, for each pool that has a job of the file which names that secret.
func secretsOf(r *remote.Remote, file string, documents []jobspec.Document, given []string) (all []secretValue,
	err error) {
	for _, one := range given {
		name, path, ok := strings.Cut(one, "=")
		switch {
		case !ok || path == "":
			return nil, exit.Fail(exit.Usage, "--secret takes NAME=FILE, got %q; %s", one, nothingSubmitted)
		case path == "-" && file == "-":
			return nil, exit.Fail(exit.Usage, "the standard input holds the jobs: give secret %s a file; %s", name, nothingSubmitted)
		}
		if slices.ContainsFunc(all, func(s secretValue) bool { return s.name == name }) {
			return nil, exit.Fail(exit.Usage, "--secret gives %s twice; %s", name, nothingSubmitted)
		}
		pools := map[terms.PoolPath]bool{}
		for i := range documents {
			if spec := &documents[i].Spec; namesSecret(spec, name) {
				pools[spec.Name.Pool()] = true
			}
		}
		if len(pools) == 0 {
			return nil, exit.Fail(exit.Usage, "no task names a secret %q under \"secrets\"; %s", name, nothingSubmitted)
		}
		value, err := files.Secret(path, r.In)
		if err != nil {
			return nil, fmt.Errorf("secret %s: %w; %s", name, err, nothingSubmitted)
		}
		for _, pool := range slices.Sorted(maps.Keys(pools)) {
			all = append(all, secretValue{string(pool), name, value})
		}
	}
	return all, nil
}

func putSecrets(ctx context.Context, r *remote.Remote, peer *client.Client, secrets []secretValue) error {
	for _, one := range secrets {
		answer, err := peer.PutSecret(ctx, one.pool, one.name, one.value)
		if err != nil {
			return fmt.Errorf("secret %s/%s: %w; %s", one.pool, one.name, err, nothingSubmitted)
		}
		r.Hint("secret %s/%s has version %d now", one.pool, one.name, answer.GetVersion())
	}
	return nil
}

func namesSecret(spec *terms.Job, name string) bool {
	return slices.ContainsFunc(spec.Tasks, func(t terms.Task) bool {
		return t.Container.PullSecret == name ||
			slices.ContainsFunc(t.PoolSecrets(), func(s terms.SecretUse) bool { return s.Name == name })
	})
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

// submit brings a job, or a new version of it.
func submit(
	ctx context.Context, r *remote.Remote, peer *client.Client, spec *terms.Job, against usage.Version,
) (*starlingv1.SubmitJobResponse, error) {
	present, err := present(ctx, peer, string(spec.Name))
	if err != nil {
		return nil, err
	}
	if !against.Given {
		against.Number = present.GetJob().GetVersion()
	}
	answer, err := peer.SubmitJob(ctx, spec, against.Number)
	warn(r, spec.Name, answer.GetWarnings())
	if answer.GetUnchanged() {
		r.Hint("%s: nothing has changed, it keeps version %d", spec.Name, against.Number)
	}
	return answer, stale(ctx, peer, string(spec.Name), against.Number, err)
}

// warn tells what the user should know of a job.
func warn(r *remote.Remote, job terms.JobName, warnings []string) {
	for _, one := range warnings {
		r.Hint("warning: %s: %s", job, one)
	}
}

// present returns how a job stands; nil if there is none, or it has ended, so that a new one would take its name.
func present(ctx context.Context, peer *client.Client, job string) (*starlingv1.JobStatusResponse, error) {
	status, err := target.Known(ctx, peer, job)
	if draft.HasEnded(status.GetJob()) {
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
		version, against, job, against, version)
}

// nothingSubmitted is told of a job file with errors.
const nothingSubmitted = "nothing was submitted"

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
		if err := r.Tables(rows); err != nil {
			return err
		}
	}
	return failures(r, t)
}

// failures is the error for jobs that did not end well.
func failures(r *remote.Remote, t *tracker) error {
	failed := []string{}
	for _, job := range t.jobs {
		if hasFailed(r, job) {
			failed = append(failed, job.name)
		}
		tellNext(r, job)
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("not all went well: %q\nhint: starling job status %s; starling logs %s", failed, failed[0],
		failed[0])
}

// isWell tells whether all wanted instances run and are healthy, as far as they need to be.
func isWell(job *starlingv1.Job) bool {
	c := job.GetCounts()
	return c.GetRunning() >= c.GetDesired() && c.GetNotHealthy() == 0
}

// hasFailed tells whether a job did not get where it was to, and says what only that job can tell of it.
func hasFailed(r *remote.Remote, job *tracked) bool {
	now := job.last.GetJob()
	if now.GetStatus() == suspended && !job.startedSuspended {
		return true
	}
	switch u := now.GetUpdate(); {
	case u.GetFinal() && u.GetState() != draft.Succeeded && !(job.unchanged && isWell(now)) &&
		(!now.GetFinal() || u.GetFrom() != 0):
		r.Hint("%s: %s", job.name, draft.UpdateText(u))
	case job.late:
		r.Hint("%s: not all of it is healthy within the progress_deadline of its update", job.name)
	case now.GetStatus() != "failed" && now.GetStatus() != "stopped":
		return false
	}
	if job.unchanged && !draft.HasEnded(now) {
		r.Hint("%[1]s is as its file says; where the fault was not in that: starling job restart %[1]s", job.name)
	}
	return true
}

// tellNext says what a job waits for that its user must do, if for anything.
func tellNext(r *remote.Remote, job *tracked) {
	switch status := job.last.GetJob().GetStatus(); {
	case status == suspended:
		r.Hint("%s is suspended: it goes on with starling job resume %s", job.name, job.name)
	case status == idle:
		r.Hint("%s has no instances: starling scale %s=NUMBER gives it some", job.name, job.name)
	case status == pending && job.last.GetJob().GetCounts().GetDesired() == 0:
		r.Hint("%s has no instances, for no machine takes one: starling why %s", job.name, job.name)
	}
	if u := job.last.GetJob().GetUpdate(); u.GetState() == draft.Paused {
		r.Hint("%s: %s\nhint: starling job update resume %s", job.name, draft.UpdateText(u), job.name)
	} else if awaitsPromotion(job.last) {
		r.Hint("%s: the canaries of version %d are healthy, and the update waits for their promotion\n"+
			"hint: starling job update promote %s", job.name, u.GetTo(), job.name)
	}
}
