package console

import (
	"bytes"
	"strings"
	"testing"
)

func TestProgressInPlace(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&Console{Err: &out, ErrLive: true}, []string{"a", "b"})
	p.Set("a", "1 waiting")
	p.Set("b", "1 running")
	p.Set("b", "1 running") // nothing new
	p.Say("a waits because\n")
	want := "a: 1 waiting\n" +
		"\x1b[1A\x1b[J" + "a: 1 waiting\nb: 1 running\n" +
		"\x1b[2A\x1b[J" + "a waits because\n" + "a: 1 waiting\nb: 1 running\n"
	if out.String() != want {
		t.Errorf("got\n%q, want\n%q", out.String(), want)
	}
}

func TestProgressLineByLine(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&Console{Err: &out}, []string{"a"})
	p.Set("a", "1 waiting")
	p.Set("a", "1 waiting")
	p.Set("a", "succeeded")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], "  a: 1 waiting") || !strings.HasSuffix(lines[1], "  a: succeeded") {
		t.Errorf("got %q, want a line for each change", lines)
	}
}
