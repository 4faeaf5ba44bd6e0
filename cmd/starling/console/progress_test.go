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
	if len(lines) != 2 || !strings.HasSuffix(lines[0], "  a: 1 waiting") ||
		!strings.HasSuffix(lines[1], "  a: succeeded") {
		t.Errorf("got %q, want a line for each change", lines)
	}
}

// TestProgressFitsTerminal writes no line that the terminal would wrap, and no more than it shows: it could not be
// written over.
func TestProgressFitsTerminal(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&Console{Err: &out, ErrLive: true, Size: func() (int, int) { return 12, 4 }}, nil)
	p.Show([]string{"a", "b"}, []string{"1 of 2 done", "1 waiting"})
	p.Show([]string{"a", "b", "c", "d", "e"}, []string{"1", "2", "3", "4", "5"})
	p.Show([]string{"a"}, []string{"3"})
	want := "a: 1 of 2 d…\nb: 1 waiting\n" +
		"\x1b[2A\x1b[J" + "a: 1\nb: 2\n… 3 more\n" +
		"\x1b[3A\x1b[J" + "a: 3\n"
	if out.String() != want {
		t.Errorf("got\n%q, want\n%q", out.String(), want)
	}
}

func TestDraw(t *testing.T) {
	size := func() (int, int) { return 8, 4 }
	const red = "\x1b[31m"
	for _, c := range []struct {
		name    string
		console Console
		want    string
	}{
		{"a terminal, whether it has colours or not", Console{ErrLive: true, OutLive: true, Size: size},
			"one\n" + red + "foursco…" + colourEnd + "\n" + "\x1b[2A\x1b[J" + "1\n2\n… 2 more\n" + "\x1b[3A\x1b[J" +
				"the last is whole\n"},
		{"a file", Console{ErrLive: true, Size: size},
			"one\n" + red + "fourscore" + colourEnd + "\n" + "1\n2\n3\n4\n" + "the last is whole\n"},
	} {
		var out bytes.Buffer
		c.console.Out, c.console.Err = &out, &out
		p := NewProgress(&c.console, nil)
		for i, picture := range []string{"one\n" + red + "fourscore" + colourEnd + "\n", "1\n2\n3\n4\n",
			"the last is whole\n"} {
			if err := p.Draw(picture, 0, i == 2); err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != c.want {
			t.Errorf("%s: got\n%q, want\n%q", c.name, out.String(), c.want)
		}
	}
}

// TestAround shows where things happen in a picture that is higher than the terminal.
func TestAround(t *testing.T) {
	lines := []string{"job", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
	for _, c := range []struct {
		focus, rows int
		want        string
	}{
		{0, 0, "job 1 2 3 4 5 6 7 8 9"}, {9, 11, "job 1 2 3 4 5 6 7 8 9"}, {3, 7, "job 1 2 3 4 … 5 more"},
		{5, 7, "job … 3 before 4 5 6 … 3 more"}, {6, 7, "job … 4 before 5 6 7 … 2 more"}, {9, 7, "job … 5 before 6 7 8 9"},
		{9, 3, "job … 9 more"},
	} {
		p := NewProgress(&Console{Size: func() (int, int) { return 0, c.rows }}, nil)
		got := strings.Join(p.fitted(around(lines, c.focus, c.rows)), " ")
		if got != c.want {
			t.Errorf("focus %d, %d rows: got %q, want %q", c.focus, c.rows, got, c.want)
		}
	}
}
