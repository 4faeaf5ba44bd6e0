package console

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table is a list for people: aligned columns under a heading, of cells that are Printable. Programs read JSON instead.
type Table struct {
	// Rows begin with the headings.
	Rows [][]string
	// Colour tells that the terminal can show colours.
	Colour bool
	// Spare are the headings of columns that a narrow terminal does without, the first to go first.
	Spare []string
	// Whole tells that nothing of it is cut: it has a line for each of some facts about one thing.
	Whole bool
}

// NewTable returns a table without rows.
func NewTable(headings ...string) *Table {
	return &Table{Rows: [][]string{headings}}
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// cellCharactersMin is what a cell keeps that is cut.
const cellCharactersMin = 8

// Fit makes the table at most so wide: without spare columns, of which it returns the headings, and if that is not
// enough, by cutting the cells of the widest columns; the first column stays whole, for it has the names.
func (t *Table) Fit(charactersMax int) (dropped []string) {
	t.clean()
	for _, heading := range t.Spare {
		at := slices.Index(t.Rows[0], heading)
		if t.Width() <= charactersMax || at < 0 {
			continue
		}
		dropped = append(dropped, heading)
		for i, row := range t.Rows {
			if at < len(row) {
				t.Rows[i] = slices.Delete(slices.Clone(row), at, at+1)
			}
		}
	}
	for over := t.Width() - charactersMax; over > 0; over = t.Width() - charactersMax {
		widths := t.widths()
		widest := 0
		for i := 1; i < len(widths); i++ {
			if widest == 0 || widths[i] > widths[widest] {
				widest = i
			}
		}
		if widest == 0 || widths[widest] <= cellCharactersMin {
			break
		}
		most := max(widths[widest]-over, cellCharactersMin, secondOf(widths[1:], widths[widest]))
		if most == widths[widest] {
			most--
		}
		for _, row := range t.Rows {
			if widest < len(row) {
				row[widest] = Cut(row[widest], most)
			}
		}
	}
	return dropped
}

// secondOf returns the largest of the widths that is below the most.
func secondOf(widths []int, most int) int {
	second := 0
	for _, w := range widths {
		if w < most {
			second = max(second, w)
		}
	}
	return second
}

// Width returns how wide the table is, in characters.
func (t *Table) Width() int {
	text, widest := strings.Builder{}, 0
	t.clean()
	(&Table{Rows: t.Rows}).write(&text)
	for line := range strings.Lines(text.String()) {
		widest = max(widest, width(strings.TrimRight(line, " \n")))
	}
	return widest
}

// Tables prints tables as the terminal shows them: in its colours and within its width, unless they may be as wide as
// they are; what was left out is said at the end.
func (c *Console) Tables(wide bool, tables ...*Table) error {
	var dropped []string
	for i, t := range tables {
		if i > 0 {
			fmt.Fprintln(c.Out)
		}
		if t.Colour = c.OutColour; !wide && !t.Whole && c.Columns() > 0 {
			dropped = append(dropped, t.Fit(c.Columns())...)
		}
		if err := t.Write(c.Out); err != nil {
			return err
		}
	}
	if len(dropped) > 0 {
		c.Hint("(not shown: %s; -o wide shows all)", strings.Join(dropped, ", "))
	}
	return nil
}

// Write aligns and prints the table. The last column is never padded; words of state are coloured where the terminal
// can, and never say anything by colour alone.
func (t *Table) Write(w io.Writer) error {
	text := strings.Builder{}
	t.clean()
	t.write(&text)
	_, err := io.WriteString(w, text.String())
	return err
}

// clean makes the cells printable, once for all.
func (t *Table) clean() {
	for _, row := range t.Rows {
		for i, cell := range row {
			row[i] = Printable(cell)
		}
	}
}

func (t *Table) widths() (widths []int) {
	for _, row := range t.Rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

func (t *Table) write(text *strings.Builder) {
	widths := t.widths()
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
	"away":         "33",
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
