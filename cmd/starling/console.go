package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"starling/cmd/starling/exit"
)

// console is where a command reads and writes: data to out, all that is said about it to err.
type console struct {
	in       io.Reader
	out, err io.Writer
	// outColour and errLive tell what the terminals behind out and err can show.
	outColour, errLive bool
	// logPath is where this process logs, "" if it does not.
	logPath string
}

// standardConsole returns the process's own.
func standardConsole() *console {
	plain := os.Getenv("TERM") == "dumb"
	return &console{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		outColour: !plain && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(os.Stdout.Fd())),
		errLive:   !plain && term.IsTerminal(int(os.Stderr.Fd())),
	}
}

// hint says something on the side.
func (c *console) hint(format string, args ...any) {
	fmt.Fprintf(c.err, format+"\n", args...)
}

// problem says what went wrong, unless that was said already.
func (c *console) problem(err error) {
	if _, quiet := err.(exit.Silent); !quiet {
		fmt.Fprintf(c.err, "starling: %s\n", strings.TrimSpace(err.Error()))
	}
}

// readFile reads a file, or standard input, and returns what it is called in messages.
func (c *console) readFile(file, what string) (data []byte, name string, err error) {
	if file == "-" {
		name = "stdin"
		data, err = io.ReadAll(c.in)
	} else {
		name = file
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, "", exit.Fail(exit.Usage, "read the %s: %w", what, err)
	}
	return data, name, nil
}

// keepStack writes a panic to the log, or to a file of its own, and says where it is.
func (c *console) keepStack(cause any, stack []byte) string {
	path := c.logPath
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
