package jobspec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one thing wrong with a job file, at the place where it can be put right.
type Error struct {
	File string
	// Line and Column count from 1; a column is a character.
	Line, Column int
	// Path leads to the value as the file writes it: "tasks[0].resources.cpu". It is empty for what is no value.
	Path   string
	Reason string
}

// Error returns "file:line:column: path: reason".
func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", e.File, e.Line, e.Column, e.Path, e.Reason)
}

// Errors is everything that is wrong with a job file, ordered by position.
type Errors []*Error

// Error returns a line for each.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// ordered sorts by position.
func (e Errors) ordered() Errors {
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return e
}
