package console

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"starling/cmd/starling/exit"
)

// played is what a user of a cluster may write where others read it: colours, a title for the window, an empty screen.
const played = "sleep\x1b[31m\x1b]0;owned\a\x1b[2J\u009b1m\u202e"

// TestNobodyPlaysWithTheTerminal has such a text everywhere where a console writes what peers tell.
func TestNobodyPlaysWithTheTerminal(t *testing.T) {
	table := func(c *Console) error {
		one := NewTable("NAME", "COMMAND")
		one.Row("a", played)
		one.Rows = append(one.Rows, []string{played})
		return c.Tables(false, one)
	}
	narrow := func() (int, int) { return 20, 40 }
	for name, write := range map[string]func(c *Console) error{
		"a table":        table,
		"a narrow table": func(c *Console) error { c.OutLive, c.Size = true, narrow; return table(c) },
		"a hint":         func(c *Console) error { c.Hint("warning: %s", played); return nil },
		"a problem":      func(c *Console) error { c.Problem(errors.New(played)); return nil },
		"progress":       func(c *Console) error { NewProgress(c, nil).Set(played, played); return nil },
		"a row of it": func(c *Console) error {
			NewProgress(c, nil).Show([]string{played}, []string{played})
			return nil
		},
		"what it says":     func(c *Console) error { NewProgress(c, nil).Say(played); return nil },
		"a text of lines":  func(c *Console) error { return c.Print("one\n" + played + "\n") },
		"a row in columns": func(c *Console) error { return (&Table{Rows: [][]string{{played}}}).Write(c.Out) },
	} {
		var out bytes.Buffer
		if err := write(&Console{Out: &out, Err: &out}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\x1b\a\u009b\u202e") || !strings.Contains(out.String(), "sleep\\x1b[") {
			t.Errorf("%s: got %q", name, out.String())
		}
	}
}

// TestSilentSaysNothing has an error that was told already come within others.
func TestSilentSaysNothing(t *testing.T) {
	var out bytes.Buffer
	c := &Console{Err: &out}
	c.Problem(errors.Join(nil, exit.Silent(exit.Detached)))
	if out.Len() > 0 {
		t.Errorf("got %q, want nothing", out.String())
	}
}

func TestPrintable(t *testing.T) {
	for _, c := range []struct{ text, cell, lines string }{
		{"plain · läuft → ✓", "plain · läuft → ✓", "plain · läuft → ✓"},
		{"a\tb\n", `"a\tb\n"`, "a\tb\n"},
		{"a\x9bb\r", `"a\x9bb\r"`, `a\x9bb\r`},
		{`"\`, `"\`, `"\`},
	} {
		if cell, lines := Printable(c.text), PrintableLines(c.text); cell != c.cell || lines != c.lines {
			t.Errorf("%q: got %q and %q, want %q and %q", c.text, cell, lines, c.cell, c.lines)
		}
		if cell := Printable(c.cell); cell != c.cell {
			t.Errorf("%q: got %q the second time", c.cell, cell)
		}
	}
}
