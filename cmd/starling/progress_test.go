package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestProgressInPlace(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&console{err: &out, errLive: true}, []string{"a", "b"})
	p.set("a", "1 waiting")
	p.set("b", "1 running")
	p.set("b", "1 running") // nothing new
	p.say("a waits because\n")
	want := "a: 1 waiting\n" +
		"\x1b[1A\x1b[J" + "a: 1 waiting\nb: 1 running\n" +
		"\x1b[2A\x1b[J" + "a waits because\n" + "a: 1 waiting\nb: 1 running\n"
	if out.String() != want {
		t.Errorf("got\n%q, want\n%q", out.String(), want)
	}
}

func TestProgressLineByLine(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&console{err: &out}, []string{"a"})
	p.set("a", "1 waiting")
	p.set("a", "1 waiting")
	p.set("a", "succeeded")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], "  a: 1 waiting") || !strings.HasSuffix(lines[1], "  a: succeeded") {
		t.Errorf("got %q, want a line for each change", lines)
	}
}
