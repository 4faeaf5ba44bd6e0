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
