package console

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Progress tells how a number of things go, a line for each: in place on a terminal that can, and otherwise one line
// after another whenever one has changed.
type Progress struct {
	*Console
	names []string
	texts map[string]string
	shown int
}

// NewProgress tells of the names, in their order.
func NewProgress(c *Console, names []string) *Progress {
	return &Progress{Console: c, names: names, texts: map[string]string{}}
}

// Set changes what is told of a name.
func (p *Progress) Set(name, text string) {
	if text = Printable(text); p.texts[name] == text {
		return
	}
	p.texts[name] = text
	if p.ErrLive {
		p.redraw()
		return
	}
	p.line(name, text)
}

// Show changes all that is told: of these names, in this order, and of no others.
func (p *Progress) Show(names, texts []string) {
	before, same := p.texts, slices.Equal(p.names, names)
	p.names, p.texts = names, map[string]string{}
	for i, name := range names {
		text := Printable(texts[i])
		p.texts[name] = text
		same = same && before[name] == text
		if !p.ErrLive && before[name] != text {
			p.line(name, text)
		}
	}
	if p.ErrLive && !same {
		p.redraw()
	}
}

func (p *Progress) line(name, text string) {
	fmt.Fprintf(p.Err, "%s  %s: %s\n", time.Now().Format("15:04:05"), Printable(name), text)
}

// Say tells something beside the lines.
func (p *Progress) Say(text string) {
	p.Clear()
	fmt.Fprintln(p.Err, PrintableLines(strings.TrimRight(text, "\n")))
	if p.ErrLive {
		p.redraw()
	}
}

// Draw prints a picture: in place of the last one on a terminal that can, as far as that has room for it, with the
// first line and those around the focus, and otherwise behind it. The last picture is whole in any case.
func (p *Progress) Draw(text string, focus int, last bool) error {
	p.Clear()
	if p.ErrLive && p.OutLive && !last {
		_, rows := p.size()
		lines := p.fitted(around(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), focus, rows))
		p.shown, text = len(lines), strings.Join(lines, "\n")+"\n"
	}
	_, err := io.WriteString(p.Out, text)
	return err
}

func (p *Progress) redraw() {
	p.Clear()
	var lines []string
	for _, name := range p.names {
		if text := p.texts[name]; text != "" {
			lines = append(lines, Printable(name)+": "+text)
		}
	}
	for _, line := range p.fitted(lines) {
		fmt.Fprintln(p.Err, line)
		p.shown++
	}
}

// around returns the lines around one if that is not among the first that a terminal of so many rows has room for.
// Beside them are the first, a line that tells of those before, the one that tells of those behind, and the cursor's.
func around(lines []string, focus, rows int) []string {
	const beside = 4
	room := rows - beside
	if room < 1 || len(lines) < rows || focus < rows-2 {
		return lines
	}
	from := min(focus-room/2, len(lines)-room-1)
	return append([]string{lines[0], fmt.Sprintf("… %d before", from-1)}, lines[from:]...)
}

// fitted returns as much of the lines as the terminal has room for: what it wrapped or scrolled away could not be
// written over. A row is left for the cursor.
func (p *Progress) fitted(lines []string) []string {
	columns, rows := p.size()
	if rows > 2 && len(lines) >= rows {
		hidden := len(lines) - (rows - 2)
		lines = append(slices.Clone(lines[:rows-2]), fmt.Sprintf("… %d more", hidden))
	}
	if columns > 0 {
		for i, line := range lines {
			lines[i] = Cut(line, columns)
		}
	}
	return lines
}

// Clear takes the live lines off the terminal.
func (p *Progress) Clear() {
	if p.shown > 0 {
		fmt.Fprintf(p.Err, "\x1b[%dA\x1b[J", p.shown)
	}
	p.shown = 0
}
