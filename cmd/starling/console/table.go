package console

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Table is a list for people: aligned columns under a heading. Programs read JSON instead.
type Table struct {
	// Rows begin with the headings.
	Rows [][]string
	// Colour tells that the terminal can show colours.
	Colour bool
}

// NewTable returns a table without rows.
func NewTable(headings ...string) *Table {
	return &Table{Rows: [][]string{headings}}
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// Width returns how wide the table is, in characters.
func (t *Table) Width() int {
	text, widest := strings.Builder{}, 0
	(&Table{Rows: t.Rows}).write(&text)
	for line := range strings.Lines(text.String()) {
		widest = max(widest, width(strings.TrimRight(line, " \n")))
	}
	return widest
}

// Write aligns and prints the table. The last column is never padded; words of state are coloured where the terminal
// can, and never say anything by colour alone.
func (t *Table) Write(w io.Writer) error {
	text := strings.Builder{}
	t.write(&text)
	_, err := io.WriteString(w, text.String())
	return err
}

func (t *Table) write(text *strings.Builder) {
	var widths []int
	for _, row := range t.Rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.Rows {
		for i, cell := range row {
			text.WriteString(t.paint(cell))
			if i < len(row)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		text.WriteByte('\n')
	}
}

// stateColours are the terminal's colours of the words of state.
var stateColours = map[string]string{
	"running": "32", "succeeded": "32", "complete": "32", "member": "32", "healthy": "32",
	"waiting": "33", "pending": "33", "assigned": "33", "backing off": "33", "stopping": "33", "joining": "33",
	"draining":     "33",
	"rescheduling": "33", "unknown": "33", "unhealthy": "31",
	"failed": "31", "silent": "31", "will not run": "31",
	"stopped": "2",
}

func (t *Table) paint(cell string) string {
	word, _, _ := strings.Cut(cell, " for ")
	code := stateColours[word]
	if !t.Colour || code == "" {
		return cell
	}
	return "\x1b[" + code + "m" + cell + "\x1b[0m"
}
