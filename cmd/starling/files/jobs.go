// Package files reads what users write, job files and pools files, and writes what they keep, as several commands do.
package files

import (
	"errors"
	"slices"

	"starling/api/wire"
	"starling/api/words"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/jobspec"
	"starling/terms"
)

// Jobs reads and checks a job file. What is wrong with it is told, a line each, and that nothing was done.
func Jobs(c *console.Console, file, nothing string) ([]jobspec.Document, error) {
	data, file, err := c.ReadFile(file, "job file")
	if err != nil {
		return nil, err
	}
	documents, err := jobspec.Parse(file, data)
	if err == nil && len(documents) == 0 {
		err = exit.Fail(exit.Usage, "%s holds no job", file)
	}
	return documents, told(c, err, file, nothing)
}

// Refused tells all that a peer finds wrong, a line each.
func Refused(c *console.Console, err error, nothing string) error {
	answered := (*wire.Failure)(nil)
	if !errors.As(err, &answered) || len(answered.Problems) == 0 {
		return err
	}
	var told []terms.Problem
	for _, p := range answered.Problems {
		if !slices.Contains(told, p) { // the same is wrong with a pool for more than one reason
			told = append(told, p)
			c.Hint("%s: %s", p.Path, p.Reason)
		}
	}
	return exit.Fail(exit.StatusOf(err), "%s: %s", nothing, words.Counted(len(told), "problem"))
}

// told tells the problems of a file, a line each, and returns an error without them.
func told(c *console.Console, err error, file, nothing string) error {
	var wrong jobspec.Errors
	if !errors.As(err, &wrong) {
		return err
	}
	c.Hint("%s", wrong.Error())
	return exit.Fail(exit.Usage, "%s has %s; %s", file, words.Counted(len(wrong), "error"), nothing)
}
