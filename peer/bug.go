package peer

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"starling/peer/dump"
	"starling/terms"
)

// ErrBug tells that a peer has ended because of a bug of the program.
var ErrBug = errors.New("this is a bug of Starling")

// bug writes a report about a panic of the loop and returns with what the peer ends. The value may be half changed:
// nothing reads it from here on but what the report says of it.
func (p *Peer) bug(panicked any, stack []byte) error {
	what, name := fmt.Sprintf("after entry %d the peer failed", p.core.state.Index), "bug-after-entry-%d.txt"
	index := p.core.state.Index
	if r := p.core.folding; r != nil {
		index = terms.Index(r.Index)
		what, name = fmt.Sprintf("entry %d cannot be folded", index), "bug-entry-%d.txt"
	}
	report := filepath.Join(p.config.Reports, fmt.Sprintf(name, index))
	text := fmt.Sprintf("%s: %v\n\n%s\n%s", what, panicked, p.describeBug(), stack)
	send := "send " + report + " to its developers"
	// An entry carries what users wrote, so the report is as private as the journal.
	if err := os.WriteFile(report, []byte(text), 0o600); err != nil {
		send = "send the log to its developers, for no report could be written (" + err.Error() + ")"
	}
	return fmt.Errorf("%s (%v): %w. This peer has ended, its tasks go on; %s and start a program with the repair, since this one will fail there again",
		what, panicked, ErrBug, send)
}

// describeBug writes out what the program is, what it folded and on what.
func (p *Peer) describeBug() string {
	c, w := p.core, &strings.Builder{}
	fmt.Fprintf(w, "program: %s, %s for %s/%s\n", cmp.Or(p.config.Version, "unknown"), runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
	fmt.Fprintf(w, "rules: %d, the program knows up to %d\n", c.state.Rules, c.Knows)
	fmt.Fprintf(w, "peer: %s of node %s\n", cmp.Or(c.self, "none yet"), p.config.Node)
	fmt.Fprintf(w, "limits: %+v\n", c.state.Limits)
	r := c.folding
	if r == nil {
		fmt.Fprintf(w, "last entry: %d, digest %016x\n", c.state.Index, c.digest)
		return w.String()
	}
	fmt.Fprintf(w, "digest before the entry: %016x\n", c.digest)
	fmt.Fprintf(w, "entry: %d, record %d of %s\n\n%s\n%s", r.Index, r.Seq, r.Writer, hex.Dump(r.Payload),
		dump.Entry(r.Payload, c.state.Rules))
	return w.String()
}
