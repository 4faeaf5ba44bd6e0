package console

import (
	"bytes"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	rows := NewTable("A", "STATE", "LAST")
	rows.Row("süß", "running", "x")
	rows.Row("longer", "failed", "")
	var plain, coloured bytes.Buffer
	if err := rows.Write(&plain); err != nil {
		t.Fatal(err)
	}
	want := "A       STATE    LAST\nsüß     running  x\nlonger  failed   \n"
	if plain.String() != want {
		t.Errorf("got\n%q, want\n%q", plain.String(), want)
	}
	rows.Colour = true
	if err := rows.Write(&coloured); err != nil {
		t.Fatal(err)
	}
	if got := coloured.String(); !strings.Contains(got, "\x1b[32mrunning\x1b[0m  x") {
		t.Errorf("got %q, want running in green with the padding outside", got)
	}
}

// TestFit drops spare columns first, then cuts the widest, and never the names.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		width   int
		dropped string
		want    string
	}{
		{100, "", "NAME      STATE    COMMAND              LAG\nweb-long  running  sleep 600 and more   7\n"},
		{37, "LAG", "NAME      STATE    COMMAND\nweb-long  running  sleep 600 and more\n"},
		{30, "LAG", "NAME      STATE    COMMAND\nweb-long  running  sleep 600 …\n"},
		{10, "LAG", "NAME      STATE    COMMAND\nweb-long  running  sleep 6…\n"},
	} {
		rows := NewTable("NAME", "STATE", "COMMAND", "LAG")
		rows.Spare = []string{"LAG", "DIGEST"}
		rows.Row("web-long", "running", "sleep 600 and more", "7")
		dropped, text := rows.Fit(c.width), bytes.Buffer{}
		if err := rows.Write(&text); err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll(c.want, "more   7", "more  7")
		want = strings.ReplaceAll(want, "COMMAND              LAG", "COMMAND             LAG")
		if strings.Join(dropped, " ") != c.dropped || text.String() != want {
			t.Errorf("%d columns: got %q without %q, want %q without %q", c.width, text.String(), dropped, want, c.dropped)
		}
	}
}
