package ring_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/ring"
	"starling/terms"
)

// TestStories plays the stories below testdata. Peers are written without their incarnation if it is the first.
//
//	members a b c       begins anew with these members in a ring
//	prepare d           a peer's entry; also notify a d, accept d, abort d, leave a
//	next 12             the next entry has this index
//	wait 250            so many milliseconds pass
//	ready d             whether d may try again
//	away a 600000       a goes away with notice, until then
//	restored            the cluster goes on from a backup of this
//	die a               a does nothing any more; nobody knows yet
//	settle              everybody does their duties, and reports the dead they watch, until nothing is left to do
//
// After prepare, notify, accept, abort and leave the whole ring is shown: who watches whom in it, who joins, whom each
// must watch, and what each must write.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newStory()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out := &strings.Builder{}
			for line := range strings.Lines(d.Cmd + " " + strings.Join(arguments(d), " ") + "\n" + d.Input) {
				if words := strings.Fields(line); len(words) > 0 {
					w.tell(t, out, words)
				}
			}
			for _, line := range w.s.Audit() {
				t.Errorf("%s: %s", d.Pos, line)
			}
			if d.Cmd != "settle" && d.Cmd != "ready" && d.Cmd != "wait" && d.Cmd != "die" && d.Cmd != "next" {
				w.show(out)
			}
			return out.String()
		})
	})
}

func arguments(d *datadriven.TestData) []string {
	var all []string
	for _, argument := range d.CmdArgs {
		all = append(all, argument.Key)
	}
	return all
}

// story is a value and the peers that were named, in order.
type story struct {
	s     *cluster.State
	peers []terms.PeerID
	dead  map[terms.PeerID]bool
	now   terms.Time
}

func newStory() *story {
	return &story{s: cluster.NewState(), dead: map[terms.PeerID]bool{}}
}

// named turns a name into a peer and remembers it.
func (w *story) named(name string) terms.PeerID {
	p := terms.PeerID(name)
	if !strings.Contains(name, "~") {
		p = terms.NewPeerID(terms.NodeName(name), 1)
	}
	if at, known := slices.BinarySearch(w.peers, p); !known {
		w.peers = slices.Insert(w.peers, at, p)
	}
	return p
}

// brief leaves out the first incarnation.
func brief(p terms.PeerID) string { return strings.TrimSuffix(string(p), "~1") }

// subject reads the second word: a peer's name or a number.
func (w *story) subject(words []string) (who terms.PeerID, number int) {
	if len(words) < 2 {
		return "", 0
	}
	number, err := strconv.Atoi(words[1])
	if err != nil {
		who = w.named(words[1])
	}
	return who, number
}

// tell does what one line says.
func (w *story) tell(t *testing.T, out *strings.Builder, words []string) {
	who, number := w.subject(words)
	attempt, _ := w.s.Attempt(who)
	switch words[0] {
	case "members":
		w.found(words[1:])
	case "next":
		w.s.Index = terms.Index(number - 1)
	case "wait":
		w.now += terms.Time(number)
	case "away":
		until, _ := strconv.Atoi(words[2])
		ring.Volunteer(w.s, who, &terms.Offer{AwayUntil: terms.Time(until)})
	case "restored":
		ring.EndAbsences(w.s)
	case "die":
		w.dead[who] = true
	case "ready":
		ready, at := ring.Ready(w.s, who, w.now)
		fmt.Fprintf(out, "%v, again at %d\n", ready, at)
	case "settle":
		w.settle(t, out)
	case "prepare":
		w.step(out, "%s prepares", who)(w.prepare(who, attempt.Number+1))
	case "notify":
		joiner := w.named(words[2])
		attempt, _ = w.s.Attempt(joiner)
		w.step(out, "%s notifies %s", who, joiner)(ring.Notify(w.s, who, joiner, attempt.Number))
	case "accept":
		observer := attempt.Observer
		if len(words) > 2 {
			observer = w.named(words[2])
		}
		w.step(out, "%s accepts", who)(ring.Accept(w.s, who, observer, attempt.Number))
	case "abort":
		w.step(out, "%s aborts", who)(ring.Abort(w.s, who, attempt.Number))
	case "leave":
		w.step(out, "%s leaves", who)(ring.Leave(w.s, who, who))
	default:
		t.Fatalf("no rule for %q", words)
	}
}

// found begins anew with members in a ring.
func (w *story) found(names []string) {
	*w = *newStory()
	for _, name := range names {
		p := w.named(name)
		node := w.s.EnsureNode(p.Node()).Index
		w.s.Wrote(node, 1, 1)
		w.s.SetPeer(node, p)
	}
	for i, name := range names {
		if len(names) > 1 {
			w.s.SetWatched(w.named(name), w.named(names[(i+1)%len(names)]))
		}
	}
}

// step begins an entry and returns what tells how it went.
func (w *story) step(out *strings.Builder, format string, who ...terms.PeerID) func(facts.Refusal) {
	w.s.Time = w.now
	names := make([]any, len(who))
	for i, p := range who {
		names[i] = brief(p)
	}
	return func(refusal facts.Refusal) {
		fmt.Fprintf(out, "#%d "+format, append([]any{w.s.Index + 1}, names...)...)
		w.s.Index++
		if refusal.Code != facts.OK {
			fmt.Fprintf(out, ": %s: %s", refusal.Code, strings.ReplaceAll(refusal.Reason, "~1", ""))
		}
		fmt.Fprintln(out)
	}
}

// prepare does what the fold does around it: who writes has a session.
func (w *story) prepare(p terms.PeerID, number uint32) facts.Refusal {
	name, incarnation := p.Split()
	w.s.Index++
	defer func() { w.s.Index-- }()
	if terms.NameProblem(string(name), true) == "" {
		if node := w.s.EnsureNode(name); incarnation > node.Departed {
			w.s.Wrote(node.Index, incarnation, uint64(w.s.Index))
		}
	}
	return ring.Prepare(w.s, p, number)
}

// settle lets everybody who lives do their duties, peer by peer, until nothing is left to do.
func (w *story) settle(t *testing.T, out *strings.Builder) {
	for rounds := 0; ; rounds++ {
		if rounds == 1000 {
			t.Fatal("it does not settle")
		}
		acted, again := false, terms.Time(0)
		for _, p := range w.peers {
			if w.dead[p] {
				continue
			}
			for _, q := range append(ring.Watches(w.s, p), ring.Probes(w.s, p)...) {
				if w.dead[q] && ring.AwayUntil(w.s, q) <= w.now {
					acted = true
					w.step(out, "%s reports %s", p, q)(ring.Leave(w.s, p, q))
				}
			}
			for _, duty := range ring.Duties(w.s, p) {
				done, at := w.perform(out, p, duty)
				acted = acted || done
				if at != 0 && (again == 0 || at < again) {
					again = at
				}
			}
		}
		switch {
		case acted:
		case again == 0:
			w.show(out)
			return
		default:
			fmt.Fprintf(out, "%d ms pass\n", again-w.now)
			w.now = again
		}
	}
}

// perform does a duty, or returns when to ask again.
func (w *story) perform(out *strings.Builder, p terms.PeerID, duty ring.Step) (done bool, again terms.Time) {
	switch duty.Duty {
	case ring.MustPrepare:
		if ready, at := ring.Ready(w.s, p, w.now); !ready {
			return false, at
		}
		w.step(out, "%s prepares", p)(w.prepare(p, duty.Attempt))
	case ring.MustNotify:
		w.step(out, "%s notifies %s", p, duty.Joiner)(ring.Notify(w.s, p, duty.Joiner, duty.Attempt))
	case ring.MustAccept:
		w.step(out, "%s accepts", p)(ring.Accept(w.s, p, duty.Observer, duty.Attempt))
	case ring.MustAbort:
		w.step(out, "%s aborts", p)(ring.Abort(w.s, p, duty.Attempt))
	}
	return true, 0
}

// show writes out the ring and all that follows from it.
func (w *story) show(out *strings.Builder) {
	fmt.Fprintf(out, "ring     %s\n", w.ring())
	w.s.EachAttempt(func(p terms.PeerID, a membership.Attempt) bool {
		by := ""
		if a.Observer != "" {
			by = " by " + brief(a.Observer)
		}
		fmt.Fprintf(out, "joining  %s: attempt %d %s%s\n", brief(p), a.Number, a.Phase, by)
		return true
	})
	var watches, duties []string
	for _, p := range w.peers {
		line := brief(p) + ":"
		for _, q := range ring.Watches(w.s, p) {
			line += " " + brief(q)
		}
		for _, q := range ring.Probes(w.s, p) {
			line += " (" + brief(q) + ")"
		}
		if !strings.HasSuffix(line, ":") {
			watches = append(watches, line)
		}
		for _, duty := range ring.Duties(w.s, p) {
			what := []string{"", " prepares", " notifies " + brief(duty.Joiner), " accepts", " aborts"}[duty.Duty]
			duties = append(duties, brief(p)+what)
		}
	}
	if len(watches) > 0 {
		fmt.Fprintf(out, "watches  %s\n", strings.Join(watches, "; "))
	}
	if len(duties) > 0 {
		fmt.Fprintf(out, "duties   %s\n", strings.Join(duties, ", "))
	}
}

// ring writes the ring from its first member on.
func (w *story) ring() string {
	if w.s.Members() == 0 {
		return "nobody"
	}
	first := w.s.MemberAt(0)
	line := brief(first)
	for p := w.s.Watched(first); p != "" && p != first; p = w.s.Watched(p) {
		line += " → " + brief(p)
	}
	if w.s.Members() > 1 {
		line += " → " + brief(first)
	}
	return line
}
