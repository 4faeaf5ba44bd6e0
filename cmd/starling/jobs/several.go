package jobs

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/draft"
	"starling/api/words"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
)

// several is a change of more than one job, which may be named by patterns.
type several struct {
	// verb says what is done to them, for the question.
	verb string
	yes  bool
}

// flags declares that no question is asked.
func (s *several) flags(command *cobra.Command) {
	command.Flags().BoolVarP(&s.yes, "yes", "y", false, "do not ask before all jobs that a pattern matches are changed")
}

// isPattern tells whether a name stands for all jobs that it matches: * for any text within a name, ? for a character.
func isPattern(name string) bool { return strings.ContainsAny(name, "*?") }

// needsNames wants one or more names.
func needsNames(what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage.Error(command, fmt.Errorf("%s needs a %s", command.CommandPath(), what))
		}
		return nil
	}
}

// jobs returns the jobs that the names and patterns mean, each once. Those that patterns match are told, and changed
// only if the user says yes.
func (s *several) jobs(ctx context.Context, r *remote.Remote, peer *client.Client, names []string) ([]string, error) {
	var chosen, matched []string
	for _, name := range names {
		if !isPattern(name) {
			chosen = append(chosen, target.JobName(name))
			continue
		}
		found, err := matches(ctx, peer, name)
		if err != nil {
			return nil, err
		}
		matched = append(matched, found...)
	}
	for _, name := range matched {
		if !slices.Contains(chosen, name) {
			chosen = append(chosen, name)
		}
	}
	if len(matched) == 0 || s.yes {
		return chosen, nil
	}
	text := fmt.Sprintf("%s %s: %s", s.verb, words.Counted(len(chosen), "job"), strings.Join(chosen, ", "))
	return chosen, r.Confirm(text)
}

// targets returns the jobs, or the job or task, that a name means; none if it is not the name of any.
func (s *several) targets(command *cobra.Command, r *remote.Remote, name string) (all []target.Target, err error) {
	if !isPattern(name) {
		readings, err := target.Parse(name)
		readings = slices.DeleteFunc(readings, func(t target.Target) bool { return t.Number >= 0 })
		if err != nil || len(readings) == 0 {
			return nil, nil
		}
		one, err := target.Resolve(command.Context(), r, readings)
		return []target.Target{one}, err
	}
	peer, err := r.Dial()
	if err != nil {
		return nil, err
	}
	jobs, err := s.jobs(command.Context(), r, peer, []string{name})
	for _, job := range jobs {
		all = append(all, target.Target{Job: job, Number: -1})
	}
	return all, err
}

// matches returns the living jobs whose names match the pattern.
func matches(ctx context.Context, peer *client.Client, pattern string) (found []string, err error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, exit.Fail(exit.Usage, "%q is not a pattern: * stands for any text within a name, ? for one character", pattern)
	}
	answer, err := peer.AllJobs(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, job := range answer.GetJobs() {
		if isMatch, _ := path.Match(pattern, job.GetName()); isMatch && !draft.HasEnded(job) {
			found = append(found, job.GetName())
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no job matches %s: `starling ps` lists them", pattern)
	}
	return found, nil
}

// each does something to each job, also when it fails for some, and returns all that went wrong. Ctrl-C ends it.
func each[T any](jobs []T, do func(job T) error) error {
	var errs []error
	for _, job := range jobs {
		err := do(job)
		if detached := exit.Silent(0); errors.As(err, &detached) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
