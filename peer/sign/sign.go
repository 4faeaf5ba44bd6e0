// Package sign is the text that a peer shows with its pulse.
package sign

import (
	"fmt"
	"strings"

	"starling/journal"
	"starling/replica/report"
	"starling/terms"
)

// Kept is shown in place of a token by a pulse that is kept for a member until its process comes, where the token of
// that is not known.
const Kept = "kept"

// Of is what a pulse shows: the position, the digest there, whose it is and where that answers; and on a second
// line, if there is one, why its offer is refused.
func Of(token string, view *report.PulseView) []byte {
	value := fmt.Appendf(nil, "%d %016x %s %s", view.Index, view.Digest, token, view.Address)
	if view.OfferRefusal != "" {
		value = append(append(value, '\n'), view.OfferRefusal...)
	}
	return value
}

// ViewOf reads what Of wrote.
func ViewOf(state journal.PulseState) (view report.PulseView, token string) {
	view = report.PulseView{Peer: terms.PeerID(state.ID), Alive: state.Alive}
	line, refusal, _ := strings.Cut(string(state.Value), "\n")
	view.OfferRefusal = refusal
	if n, _ := fmt.Sscanf(line, "%d %x %s %s", &view.Index, &view.Digest, &token, &view.Address); n < 3 {
		view.Index, view.Digest, token = 0, 0, ""
	}
	return view, token
}
