package conformance

import (
	"fmt"
	"slices"
	"strings"

	"starling/cluster"
	"starling/cluster/membership"
	"starling/command"
	"starling/terms"
)

// step is an entry or a reaction in the files' words.
type step struct {
	fn string
	// joiner is the peer that it is about; observer is told by accept-join only.
	joiner, observer string
	// number is the attempt, which the files do not tell.
	number uint32
}

func (d step) same(other step) bool {
	other.number = d.number
	return d == other
}

// String returns the step with its attempt.
func (d step) String() string {
	return fmt.Sprintf("%s(%s)#%d", d.fn, strings.TrimSpace(d.joiner+" "+d.observer), d.number)
}

// stepOf reads a step. The subject of accept-join is no part of it: it is computed when the entry is applied.
func stepOf(fn string, args map[string]string) (step, error) {
	joiners := map[string]string{"prepare-join": "joiner", "notify-join": "observer", "accept-join": "joiner",
		"abort-join": "id", "leave": "id", "peer-gc": "id"}
	key, ok := joiners[fn]
	if !ok {
		return step{}, fmt.Errorf("no rule for entry %s", fn)
	}
	d := step{fn: fn, joiner: args[key]}
	if fn == "accept-join" {
		d.observer = args["observer"]
	}
	if d.joiner == "" || fn == "accept-join" && d.observer == "" {
		return step{}, fmt.Errorf("entry %s has arguments %v: %s is missing", fn, args, key)
	}
	return d, nil
}

// names translates the files' peers to ids with the same order and back.
type names struct {
	ids  map[string]terms.PeerID
	back map[terms.PeerID]string
}

// namesOf gives ids to peers: the rank before the name keeps the order, whatever stands behind it.
func namesOf(all []string) names {
	n := names{ids: map[string]terms.PeerID{}, back: map[terms.PeerID]string{}}
	for rank, name := range all {
		letters := strings.Map(func(c rune) rune {
			if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", c) {
				return c
			}
			return '-'
		}, name)
		id := terms.NewPeerID(terms.NodeName(fmt.Sprintf("%04d-%.40s", rank, letters)), 1)
		n.ids[name], n.back[id] = id, name
	}
	return n
}

func (n names) peer(name string) terms.PeerID { return n.ids[name] }

func (n names) name(p terms.PeerID) string { return n.back[p] }

// command returns the command of a step, nil for one that has none here.
func (n names) command(d step, number uint32) command.Command {
	joiner := n.peer(d.joiner)
	switch d.fn {
	case "prepare-join":
		return &command.PrepareJoin{Joiner: joiner, Attempt: number}
	case "notify-join":
		return &command.NotifyJoin{Joiner: joiner, Attempt: number}
	case "accept-join":
		return &command.AcceptJoin{Joiner: joiner, Observer: n.peer(d.observer), Attempt: number}
	case "abort-join":
		return &command.AbortJoin{Joiner: joiner, Attempt: number}
	case "leave":
		return &command.Leave{Peer: joiner}
	}
	return nil
}

// step is the inverse of command.
func (n names) step(one command.Command) step {
	switch c := one.(type) {
	case *command.PrepareJoin:
		return step{"prepare-join", n.name(c.Joiner), "", c.Attempt}
	case *command.NotifyJoin:
		return step{"notify-join", n.name(c.Joiner), "", c.Attempt}
	case *command.AcceptJoin:
		return step{"accept-join", n.name(c.Joiner), n.name(c.Observer), c.Attempt}
	case *command.AbortJoin:
		return step{"abort-join", n.name(c.Joiner), "", c.Attempt}
	case *command.Leave:
		return step{"leave", n.name(c.Peer), "", 0}
	}
	return step{fn: one.Kind().String()}
}

// pictureOf shows the ring of a value in the files' words.
func pictureOf(s *cluster.State, n names) *ringPicture {
	picture := &ringPicture{Pairs: map[string]string{}, Prepared: map[string]string{}, Accepted: map[string]string{}}
	s.EachMember(func(p terms.PeerID) bool {
		picture.Members = append(picture.Members, n.name(p))
		if q := s.Watched(p); q != "" {
			picture.Pairs[n.name(p)] = n.name(q)
		}
		return true
	})
	s.EachAttempt(func(p terms.PeerID, a membership.Attempt) bool {
		switch a.Phase {
		case membership.Prepared:
			picture.Prepared[n.name(a.Observer)] = n.name(p)
		case membership.Accepted:
			picture.Accepted[n.name(a.Observer)] = n.name(p)
		}
		return true
	})
	return picture
}

// difference is a rule by which this design deliberately differs from the files.
type difference struct {
	name, reason string
	// unchanged tells that the entry must have changed nothing here.
	unchanged bool
	// column tells that a part of each case is not compared, rather than compared with something else.
	column bool
}

// The differences. Each holds for every file; none is about one file or entry.
var (
	void = &difference{name: "void reaction", reason: "a reaction that would change nothing is not written: " +
		"each attempt has one retry, and a member joins no more (dup-1 desires no reaction at all; reference, Take over 3)"}
	firstPrepare = &difference{name: "first prepare",
		reason: "a peer that never asked to join begins when its process starts; " +
			"the files tell that as world, not as a reaction"}
	noCommand = &difference{name: "no command",
		reason: "peer-gc is no command here: what it does are the leaves that follow"}
	lateEntry = &difference{name: "late entry", unchanged: true,
		reason: "entries of a peer that left are dropped whole; " +
			"0.14.6 obeys what its guards let pass"}
	departedBack = &difference{name: "departed back", reason: "a peer that left never comes back (race-4): " +
		"where the file still has it, it is left out"}
	lateWord = &difference{name: "late word",
		reason: "a notify or accept that fits no state changes nothing, and ends no attempt that is under way: " +
			"0.14.6 lets the joiner abort whatever it is doing by then"}
	secondPrepare = &difference{name: "second prepare", unchanged: true, reason: "each attempt is prepared once: " +
		"one that was refused or lost its observer is aborted first; 0.14.6 obeys both prepares of two aborts (race-4)"}
	foreignNotify = &difference{name: "foreign notify", unchanged: true,
		reason: "only the observer of the present attempt may notify: " +
			"0.14.6 takes the late word of an earlier observer for that of the present one"}
)

// stated returns the rule by which an entry that is to be folded may change the value in the file and not here, nil if
// there is none.
func (r *replayed) stated(e *logEntry, written step) *difference {
	attempt, _ := r.s.Attempt(r.peer(written.joiner))
	switch {
	case r.departed[e.Writer]:
		return lateEntry
	case written.fn == "prepare-join" && (attempt.Phase == membership.Refused || attempt.Phase == membership.Orphaned):
		return secondPrepare
	case written.fn == "notify-join" && attempt.Phase == membership.Prepared && attempt.Observer != r.peer(e.Writer):
		return foreignNotify
	}
	return nil
}

// tally counts the uses of the rules.
type tally map[*difference]int

func (t tally) note(d *difference) { t[d]++ }

// String lists the rules that were used.
func (t tally) String() string {
	var all []string
	for d, count := range t {
		all = append(all, fmt.Sprintf("%s %d", d.name, count))
	}
	slices.Sort(all)
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}
