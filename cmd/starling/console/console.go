// Package console is where a command meets its user: what is read and written, tables, progress, and Ctrl-C.
package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"starling/cmd/starling/exit"
)

// Console is where a command reads and writes: data to Out, all that is said about it to Err.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	// OutLive and ErrLive tell that Out and Err are terminals on which lines can be written over, OutColour that Out shows
	// colours.
	OutColour, OutLive, ErrLive bool
	// Size returns how many columns and rows the terminal has, 0 for as many as are wanted; nil is always that.
	Size func() (columns, rows int)
	// LogPath is where this process logs, "" if it does not.
	LogPath string
}

// Standard returns the console of the process.
func Standard() *Console {
	plain := os.Getenv("TERM") == "dumb"
	out, err := int(os.Stdout.Fd()), int(os.Stderr.Fd())
	c := &Console{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		OutLive: !plain && term.IsTerminal(out),
		ErrLive: !plain && term.IsTerminal(err),
	}
	c.OutColour = c.OutLive && os.Getenv("NO_COLOR") == ""
	c.Size = func() (columns, rows int) {
		for _, terminal := range []int{out, err} {
			if columns, rows, err := term.GetSize(terminal); err == nil {
				return columns, rows
			}
		}
		return 0, 0
	}
	return c
}

// Columns returns how wide a line of Out may be, 0 for as wide as it is.
func (c *Console) Columns() int {
	columns, _ := c.size()
	if !c.OutLive {
		return 0
	}
	return columns
}

func (c *Console) size() (columns, rows int) {
	if c.Size == nil {
		return 0, 0
	}
	return c.Size()
}

// Hint says something on the side.
func (c *Console) Hint(format string, args ...any) {
	fmt.Fprintln(c.Err, PrintableLines(fmt.Sprintf(format, args...)))
}

// Print writes lines for people, of which peers may have told parts.
func (c *Console) Print(lines string) error {
	_, err := io.WriteString(c.Out, PrintableLines(lines))
	return err
}

// Problem says what went wrong, unless that was said already.
func (c *Console) Problem(err error) {
	if quiet := exit.Silent(0); !errors.As(err, &quiet) {
		fmt.Fprintf(c.Err, "starling: %s\n", PrintableLines(strings.TrimSpace(err.Error())))
	}
}

// ReadFile reads a file, or standard input, and returns what it is called in messages.
func (c *Console) ReadFile(file, what string) (data []byte, name string, err error) {
	if file == "-" {
		name = "stdin"
		data, err = io.ReadAll(c.In)
	} else {
		name = file
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, "", exit.Fail(exit.Usage, "read the %s: %w", what, err)
	}
	return data, name, nil
}

// KeepStack writes a panic to the log, or to a file of its own, and says where it is.
func (c *Console) KeepStack(cause any, stack []byte) string {
	path := c.LogPath
	if path == "" {
		path = filepath.Join(os.TempDir(), fmt.Sprintf("starling-crash-%d.log", os.Getpid()))
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return ""
	}
	defer file.Close()
	if _, err := fmt.Fprintf(file, "panic: %v\n%s", cause, stack); err != nil {
		return ""
	}
	return " (details: " + file.Name() + ")"
}
