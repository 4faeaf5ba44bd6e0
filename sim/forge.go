package sim

import (
	"slices"

	"starling/cluster/facts"
	"starling/command"
	"starling/journal"
	"starling/sim/model"
	"starling/terms"
)

// forge appends an entry that is well formed and that no peer of this program would write: of a stranger, or of a life
// that is over, with commands for anybody about anything. The fold must refuse what does harm.
func (w *World) forge() {
	node := terms.NodeName("stranger")
	life := uint32(w.between(1, 3))
	if departed := w.departedNode(); departed != nil && w.rng.IntN(3) == 0 {
		node, life = departed.Name, uint32(w.between(1, int(departed.Departed)))
	}
	writer := terms.NewPeerID(node, life)
	w.forged[writer] += uint64(w.between(0, 2))
	e := &command.Entry{Writer: writer, Seq: w.forged[writer], Time: w.now}
	if w.rng.IntN(2) == 0 {
		e.Commands = append(e.Commands, &command.PrepareJoin{Joiner: writer, Attempt: w.model.Attempts[writer].Number + 1})
	}
	for range w.between(0, 3) {
		e.Commands = append(e.Commands, w.nonsense(writer))
	}
	w.land(journal.Record{Writer: string(writer), Seq: e.Seq, Payload: command.Encode(e)})
}

// slander appends the false report that a peer has died; it must come back in another life.
func (w *World) slander() {
	if len(w.model.Circle) == 0 {
		return
	}
	w.slanders++
	writer := terms.NewPeerID("gossip", w.slanders)
	e := &command.Entry{Writer: writer, Seq: 1, Time: w.now}
	e.Commands = append(e.Commands, &command.PrepareJoin{Joiner: writer, Attempt: 1}, &command.Leave{Peer: w.anybody()})
	w.land(journal.Record{Writer: string(writer), Seq: e.Seq, Payload: command.Encode(e)})
}

// departedNode returns a node that had a life that is over, nil if there is none.
func (w *World) departedNode() *model.Node {
	var all []*model.Node
	for _, n := range w.model.Nodes {
		if n.Departed > 0 {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[w.rng.IntN(len(all))]
}

// anybody returns a peer: a member, one that joins, one that is over, or one that never was.
func (w *World) anybody() terms.PeerID {
	all := slices.Clone(w.model.Circle)
	for _, n := range w.model.Nodes {
		for life := range n.Departed + 2 {
			all = append(all, terms.NewPeerID(n.Name, life+1))
		}
	}
	if len(all) == 0 {
		return "nobody~1"
	}
	return all[w.rng.IntN(len(all))]
}

// nonsense returns a command that may fit the present state, nearly fit it, or not at all.
func (w *World) nonsense(writer terms.PeerID) command.Command {
	about, other := w.anybody(), w.anybody()
	if w.rng.IntN(3) == 0 {
		about = writer
	}
	a := w.model.Attempts[about]
	number := a.Number + uint32(w.between(0, 2)) - min(a.Number, 1)
	if a.Observer != "" && w.rng.IntN(2) == 0 {
		other = a.Observer
	}
	name := terms.JobName("nobody")
	if len(w.clients.names) > 0 {
		name = w.clients.names[w.rng.IntN(len(w.clients.names))]
	}
	gone := terms.NewPeerID("stranger", uint32(w.between(1, 3)))
	if w.rng.IntN(2) == 0 {
		gone = writer
	}
	return [...]command.Command{
		&command.Leave{Peer: gone}, &command.PrepareJoin{Joiner: about, Attempt: number},
		&command.NotifyJoin{Joiner: about, Attempt: number},
		&command.AcceptJoin{Joiner: about, Observer: other, Attempt: number},
		&command.AbortJoin{Joiner: about, Attempt: number},
		&command.Volunteer{Peer: about, Offer: terms.Offer{Capacity: terms.Resources{1 << 40, 1 << 50, 1 << 50}}},
		&command.ReportTasks{Peer: about, Reports: w.fiction()}, &command.KillJob{Job: name}, &command.TellTime{},
		&command.RaiseRules{Version: 2},
	}[w.rng.IntN(10)]
}

// fiction is news of slots that may exist, from somebody whom they do not concern.
func (w *World) fiction() []command.Report {
	var all []command.Report
	for range w.between(1, 5) {
		r := command.Report{Slot: facts.SlotRef{Job: terms.JobID(w.between(0, 5)), Index: uint32(w.between(0, 5))},
			Ended: facts.ByItself}
		r.Order = w.model.OrderOf(r.Slot)
		all = append(all, r)
	}
	return all
}
