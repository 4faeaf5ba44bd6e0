package remote

import (
	"fmt"
	"strings"
	"time"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
)

// EntryWords tells an entry to people: a line of its own, one per command, one per effect.
func EntryWords(e *starlingv1.JournalEntry) string {
	text := strings.Builder{}
	at := e.GetTime().AsTime().Local()
	fmt.Fprintf(&text, "%d  %s%s  %s\n", e.GetIndex(), console.Clock(at, time.Now()), at.Format(".000"),
		console.Dash(e.GetWriter()))
	if e.GetDropped() != "" {
		fmt.Fprintf(&text, "    dropped: %s\n", e.GetDropped())
	}
	for _, c := range e.GetCommands() {
		fmt.Fprintf(&text, "    %s\n", console.Times(c.GetText(), time.Now()))
		if c.GetRefusal() != "" {
			fmt.Fprintf(&text, "      refused (%s): %s\n", c.GetRefusalCode(), c.GetRefusal())
		}
	}
	for _, effect := range e.GetEffects() {
		fmt.Fprintf(&text, "      → %s\n", console.Times(effect.GetText(), time.Now()))
	}
	return text.String()
}
