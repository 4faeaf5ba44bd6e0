package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// columns are those that a file must have, and those that it may have.
type columns struct{ needed, allowed []string }

// table reads a file row by row. Its first error stays, and ends it.
type table struct {
	file   string
	reader *csv.Reader
	// at is where each column stands.
	at  map[string]int
	row []string
	// seen is in which line each name stood.
	seen map[string]int
	err  error
}

// newTable reads the header.
func newTable(file string, from io.Reader, known columns) *table {
	t := &table{file: file, reader: csv.NewReader(from), at: map[string]int{}, seen: map[string]int{}}
	t.reader.ReuseRecord = true
	if !t.next() {
		if t.err == nil {
			t.err = fmt.Errorf("%s: is empty: its first line must name the columns %s", file, strings.Join(known.needed, ", "))
		}
		return t
	}
	for i, name := range t.row {
		_, twice := t.at[name]
		t.at[name] = i
		switch {
		case twice:
			t.wrong(name, "stands here a second time")
		case !slices.Contains(known.needed, name) && !slices.Contains(known.allowed, name):
			t.wrong(name, "is not known; known are %s", strings.Join(slices.Concat(known.needed, known.allowed), ", "))
		}
	}
	for _, name := range known.needed {
		if _, found := t.at[name]; !found && t.err == nil {
			t.err = fmt.Errorf("%s:1: column %s is missing; needed are %s", file, name, strings.Join(known.needed, ", "))
		}
	}
	return t
}

// next goes to the next row; it returns false at the end and after an error.
func (t *table) next() bool {
	if t.err != nil {
		return false
	}
	row, err := t.reader.Read()
	var problem *csv.ParseError
	switch {
	case err == io.EOF:
		return false
	case errors.As(err, &problem):
		t.err = fmt.Errorf("%s:%d:%d: %w", t.file, problem.Line, problem.Column, problem.Err)
	case err != nil:
		t.err = fmt.Errorf("read %s: %w", t.file, err)
	}
	t.row = row
	return t.err == nil
}

// wrong notes what is wrong with the present row's value in a column, unless something was wrong before.
func (t *table) wrong(column, format string, args ...any) {
	if t.err == nil {
		line, position := t.reader.FieldPos(t.at[column])
		t.err = fmt.Errorf("%s:%d:%d: column %s %s", t.file, line, position, column, fmt.Sprintf(format, args...))
	}
}

// text returns the value in a column, "" if the file has no such column.
func (t *table) text(column string) string {
	if i, found := t.at[column]; found {
		return t.row[i]
	}
	return ""
}

// name returns the value in a column whose values all differ.
func (t *table) name(column string) string {
	name := t.text(column)
	line, _ := t.reader.FieldPos(0)
	if before, twice := t.seen[name]; twice {
		t.wrong(column, "has %q, as in line %d: each needs a name of its own", name, before)
	}
	if name == "" {
		t.wrong(column, "must not be empty")
	}
	t.seen[name] = line
	return name
}

// number returns the value in a column as a number from 0 to most.
func (t *table) number(column string, most int64) int64 {
	value, err := strconv.ParseInt(t.text(column), 10, 64)
	if err != nil || value < 0 || value > most {
		t.wrong(column, "must be a whole number from 0 to %d, is %q", most, t.text(column))
		return 0
	}
	return value
}
