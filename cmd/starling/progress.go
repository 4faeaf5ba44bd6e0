package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// progress tells how a number of things go, a line for each: in place on a terminal that can, and otherwise one line
// after another whenever one has changed.
type progress struct {
	*console
	names []string
	texts map[string]string
	shown int
}

func newProgress(c *console, names []string) *progress {
	return &progress{console: c, names: names, texts: map[string]string{}}
}

// set changes what is told of a name.
func (p *progress) set(name, text string) {
	if p.texts[name] == text {
		return
	}
	p.texts[name] = text
	if p.errLive {
		p.redraw()
		return
	}
	fmt.Fprintf(p.err, "%s  %s: %s\n", time.Now().Format("15:04:05"), name, text)
}

// show changes all that is told: of these names, in this order, and of no others.
func (p *progress) show(names, texts []string) {
	before, same := p.texts, slices.Equal(p.names, names)
	p.names, p.texts = names, map[string]string{}
	for i, name := range names {
		p.texts[name] = texts[i]
		same = same && before[name] == texts[i]
		if !p.errLive && before[name] != texts[i] {
			fmt.Fprintf(p.err, "%s  %s: %s\n", time.Now().Format("15:04:05"), name, texts[i])
		}
	}
	if p.errLive && !same {
		p.redraw()
	}
}

// say tells something beside the lines.
func (p *progress) say(text string) {
	p.clear()
	fmt.Fprintln(p.err, strings.TrimRight(text, "\n"))
	if p.errLive {
		p.redraw()
	}
}

func (p *progress) redraw() {
	p.clear()
	for _, name := range p.names {
		if text := p.texts[name]; text != "" {
			fmt.Fprintf(p.err, "%s: %s\n", name, text)
			p.shown++
		}
	}
}

// clear takes the live lines off the terminal.
func (p *progress) clear() {
	if p.shown > 0 {
		fmt.Fprintf(p.err, "\x1b[%dA\x1b[J", p.shown)
	}
	p.shown = 0
}
