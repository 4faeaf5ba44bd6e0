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
	if p.texts[name] == text {
		return
	}
	p.texts[name] = text
	if p.ErrLive {
		p.redraw()
		return
	}
	fmt.Fprintf(p.Err, "%s  %s: %s\n", time.Now().Format("15:04:05"), name, text)
}

// Show changes all that is told: of these names, in this order, and of no others.
func (p *Progress) Show(names, texts []string) {
	before, same := p.texts, slices.Equal(p.names, names)
	p.names, p.texts = names, map[string]string{}
	for i, name := range names {
		p.texts[name] = texts[i]
		same = same && before[name] == texts[i]
		if !p.ErrLive && before[name] != texts[i] {
			fmt.Fprintf(p.Err, "%s  %s: %s\n", time.Now().Format("15:04:05"), name, texts[i])
		}
	}
	if p.ErrLive && !same {
		p.redraw()
	}
}

// Say tells something beside the lines.
func (p *Progress) Say(text string) {
	p.Clear()
	fmt.Fprintln(p.Err, strings.TrimRight(text, "\n"))
	if p.ErrLive {
		p.redraw()
	}
}

// Draw prints a picture: in place of the last one on a terminal that can, and otherwise behind it.
func (p *Progress) Draw(text string) error {
	if p.ErrLive && p.OutColour {
		p.Clear()
		p.shown = strings.Count(text, "\n")
	}
	_, err := io.WriteString(p.Out, text)
	return err
}

func (p *Progress) redraw() {
	p.Clear()
	for _, name := range p.names {
		if text := p.texts[name]; text != "" {
			fmt.Fprintf(p.Err, "%s: %s\n", name, text)
			p.shown++
		}
	}
}

// Clear takes the live lines off the terminal.
func (p *Progress) Clear() {
	if p.shown > 0 {
		fmt.Fprintf(p.Err, "\x1b[%dA\x1b[J", p.shown)
	}
	p.shown = 0
}
