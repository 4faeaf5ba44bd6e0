package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
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
	if _, quiet := err.(silent); !quiet {
		fmt.Fprintf(c.err, "starling: %s\n", strings.TrimSpace(err.Error()))
	}
}

func (c *console) logHint() string {
	if c.logPath == "" {
		return ""
	}
	return " (details: " + c.logPath + ")"
}
