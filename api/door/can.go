package door

import (
	"fmt"
	"net/http"
	"strings"

	"starling/api/wire"
	"starling/cluster"
	"starling/rights"
	"starling/terms/access"
)

// ActsMax bounds how many acts a request asks about.
const ActsMax = 1000

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
		state, err := d.state(r)
		if err != nil {
			return nil, err
		}
		asks, who := CallerOf(r.Context()), access.Subject{Kind: access.OfUser, Name: q.User}
		if _, node, isLocal := strings.Cut(q.User, "@"); isLocal && len(state.Registry().Of(who)) == 0 && node != "" {
			who.Kind = access.OfLocal
		}
		if asks.Role < access.Viewer && who != asks.Subject() {
			return nil, &wire.Failure{Code: wire.Denied, Reason: fmt.Sprintf(
				"%s may ask only about %s: others are for the role viewer in the whole cluster", asks, asks.Name)}
		}
		told, err := rights.Can(state, who, q.Verb, q.Object)
		if err != nil {
			return nil, &wire.Failure{Code: wire.Invalid, Reason: err.Error()}
		}
		return &told, nil
	})
}

// state is the value as the peer behind the door has it now.
func (d *Door) state(r *http.Request) (*cluster.State, error) {
	answer := d.answer.Load()
	if answer == nil || answer.peer == nil {
		return nil, errNoPeer
	}
	return answer.peer.State(r.Context(), 0)
}

// Act is something that can be done: a verb and what it is done to, as "starling can" names them.
type Act struct {
	Verb   string `json:"verb"`
	Object string `json:"object,omitempty"`
}

// WhoAmIRequest asks who the caller is, and whether that one may do some things: at most 1000.
type WhoAmIRequest struct {
	Acts []Act `json:"acts,omitempty"`
}

// WhoAmI is who the caller is.
type WhoAmI struct {
	// Name is that of a user, or NAME@NODE for one of a node's own machine.
	Name string `json:"name"`
	// Role is the role in the whole cluster, empty if there is none; Pools are those that pools give.
	Role  string          `json:"role"`
	Pools []rights.InPool `json:"pools"`
	// Answers are about the acts, in their order.
	Answers []rights.Answer `json:"answers"`
}

// whoAmI answers a caller about itself, by the function that refuses commands.
func (d *Door) whoAmI(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathWhoAmI, func(asked *WhoAmIRequest) (*WhoAmI, error) {
		if len(asked.Acts) > ActsMax {
			return nil, &wire.Failure{Code: wire.Invalid, Reason: fmt.Sprintf("at most %d acts can be asked about", ActsMax)}
		}
		state, err := d.state(r)
		if err != nil {
			return nil, err
		}
		who := CallerOf(r.Context()).Subject()
		me := &WhoAmI{Name: who.Name, Pools: rights.InPools(state, who), Answers: make([]rights.Answer, len(asked.Acts))}
		if role := CallerOf(r.Context()).Role; role != access.NoRole {
			me.Role = role.String()
		}
		for i, act := range asked.Acts {
			if me.Answers[i], err = rights.Can(state, who, act.Verb, act.Object); err != nil {
				return nil, &wire.Failure{Code: wire.Invalid, Reason: err.Error()}
			}
		}
		return me, nil
	})
}
