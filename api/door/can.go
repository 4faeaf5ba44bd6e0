package door

import (
	"net/http"
	"strings"

	"starling/api/wire"
	"starling/rights"
	"starling/terms/access"
)

// Question asks whether a user may do something.
type Question struct {
	// User is the name of one with credentials, or NAME@NODE for one of a node's own machine.
	User   string `json:"user"`
	Verb   string `json:"verb"`
	Object string `json:"object,omitempty"`
}

// can answers whether somebody may do something, by the function that refuses commands.
func (d *Door) can(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathCan, func(q *Question) (*rights.Answer, error) {
		answer := d.answer.Load()
		if answer == nil || answer.peer == nil {
			return nil, errNoPeer
		}
		state, err := answer.peer.State(r.Context(), 0)
		if err != nil {
			return nil, err
		}
		who := access.Subject{Kind: access.OfUser, Name: q.User}
		if _, node, isLocal := strings.Cut(q.User, "@"); isLocal && len(state.Registry().Of(who)) == 0 && node != "" {
			who.Kind = access.OfLocal
		}
		told, err := rights.Can(state, who, q.Verb, q.Object)
		if err != nil {
			return nil, &wire.Failure{Code: wire.Invalid, Reason: err.Error()}
		}
		return &told, nil
	})
}
