package conformance

import (
	"fmt"
	"slices"
	"strings"

	"starling/cluster"
	"starling/cluster/membership"
	"starling/command"
	"starling/replica"
	"starling/replica/reaction"
	"starling/ring"
	"starling/terms"
)

// ringLog runs a membership file: it compares after every entry of its log, and at the end.
func ringLog(s *sheet) {
	s.run(wholeFile, func(t *trial) {
		f, unread, err := readMembership(s.data)
		if err != nil {
			t.Fatal(err)
		}
		if len(unread) > 0 {
			t.Errorf("keys that are not known: %s", words(unread))
		}
		results, differences := replay(f)
		for _, r := range results {
			for _, line := range r.wrong {
				t.Errorf("%s: %s", r.name, line)
			}
			for _, line := range r.stated {
				t.Logf("%s: %s", r.name, line)
			}
		}
		s.differences = differences
	})
}

// result is what came of one entry.
type result struct {
	name string
	// wrong are the failures, stated the differences that a rule explains.
	wrong, stated []string
}

// replay folds the file's log and compares the value with what the file expects after every entry.
func replay(f *membershipFile) ([]result, tally) {
	r := newReplayed(f)
	var results []result
	last := &f.Initial.Replica
	for i := range f.Log {
		e := &f.Log[i]
		r.result = &result{name: fmt.Sprintf("%d-%s", e.ID, e.Fn)}
		r.entry(e, last)
		if e.Expect.Replica != nil {
			last = e.Expect.Replica
		}
		results = append(results, *r.result)
	}
	if f.Final != nil {
		r.result = &result{name: "final"}
		if want, _ := f.Final.without(r.departed); r.picture().String() != want.String() {
			r.wrong("the value is\n\t%s\nwant\n\t%s", r.picture(), want)
		}
		results = append(results, *r.result)
	}
	return results, r.tally
}

// shift is added to the ids of a file: a journal here begins at 1, and the rule takes the id modulo a number of
// candidates, up to 24 of which divide it.
const shift = 5354228880

// replayed is a value with the expectations that are still open.
type replayed struct {
	names
	s *cluster.State
	// known are the peers that the file names, in order.
	known []string
	seq   uint64
	// departed are those who left.
	departed map[string]bool
	// pending are, per actor, the reactions that were expected and whose entry has not come: they are in flight.
	pending map[string][]step
	tally   tally
	result  *result
}

func (r *replayed) wrong(format string, args ...any) {
	r.result.wrong = append(r.result.wrong, fmt.Sprintf(format, args...))
}

func newReplayed(f *membershipFile) *replayed {
	r := &replayed{known: f.peers(), departed: map[string]bool{}, pending: map[string][]step{}, tally: tally{}}
	r.names = namesOf(r.known)
	r.rebuild(&f.Initial.Replica)
	for q, p := range f.Initial.Replica.Prepared {
		r.owe(q, step{fn: "notify-join", joiner: p})
	}
	for q, p := range f.Initial.Replica.Accepted {
		r.owe(p, step{fn: "accept-join", joiner: p, observer: q})
	}
	return r
}

// rebuild makes the value that a picture shows. What the picture cannot show, the attempts that wait and who wrote, is
// taken over from the value before. Everybody named in the file has written before: files do not tell.
func (r *replayed) rebuild(picture *ringPicture) {
	old := r.s
	r.s = cluster.NewState()
	if old != nil {
		r.s.Index, r.s.Time = old.Index, old.Time
	}
	for _, name := range r.known {
		p := r.peer(name)
		node := r.s.EnsureNode(p.Node())
		switch {
		case r.departed[name]:
			r.s.Depart(node.Index, 1)
		default:
			r.s.Wrote(node.Index, 1, r.seq+1)
		}
		if slices.Contains(picture.Members, name) {
			r.s.SetPeer(node.Index, p)
		}
		if old == nil {
			continue
		}
		if attempt, ok := old.Attempt(p); ok && !slices.Contains(picture.Members, name) && !r.departed[name] {
			if attempt.Observer != "" {
				attempt.Phase, attempt.Observer = membership.Orphaned, ""
			}
			r.s.SetAttempt(p, attempt)
		}
	}
	for p, q := range picture.Pairs {
		r.s.SetWatched(r.peer(p), r.peer(q))
	}
	r.handshake(old, picture.Prepared, membership.Prepared)
	r.handshake(old, picture.Accepted, membership.Accepted)
	r.seq++
}

// handshake shows joins that are under way; one that was not before is another attempt.
func (r *replayed) handshake(old *cluster.State, joiners map[string]string, phase membership.AttemptPhase) {
	for q, p := range joiners {
		before := membership.Attempt{}
		if old != nil {
			before, _ = old.Attempt(r.peer(p))
		}
		attempt := before
		attempt.Phase, attempt.Observer = phase, r.peer(q)
		if before.Observer == "" {
			attempt.Number++
		}
		r.s.SetAttempt(r.peer(p), attempt)
	}
}

// entry folds one entry and checks what the file says of it; last is what it said of the value before.
func (r *replayed) entry(e *logEntry, last *ringPicture) {
	written, err := stepOf(e.Fn, e.Args)
	if err != nil {
		r.wrong("%v", err)
		return
	}
	r.checkCandidates(e, last)
	before, why := r.picture().String(), r.stated(e, written)
	r.apply(e, written)
	if names := last.names(); written.fn == "leave" && (names[written.joiner] || r.tombstone(written.joiner)) {
		r.departed[written.joiner] = true
		delete(r.pending, written.joiner)
	}
	for _, line := range r.s.Audit() {
		r.wrong("the books are wrong: %s", line)
	}
	fits := r.checkReplica(e, why, before)
	r.checkWatches(e)
	r.expect(e, written)
	if fits && e.Expect.Reactions != nil {
		r.checkReactions()
	}
}

// expect notes the reactions that the file expects of the entry.
func (r *replayed) expect(e *logEntry, written step) {
	for actor, reactions := range e.Expect.Reactions {
		for _, reaction := range reactions {
			expected, err := stepOf(reaction.Fn, reaction.Args)
			attempt, _ := r.s.Attempt(r.peer(expected.joiner))
			underway := attempt.Phase == membership.Prepared || attempt.Phase == membership.Accepted
			switch {
			case err != nil:
				r.wrong("reaction of %s: %v", actor, err)
			case underway && expected.fn == "abort-join" && (written.fn == "notify-join" || written.fn == "accept-join"):
				r.tally.note(lateWord)
			default:
				r.owe(actor, expected)
			}
		}
	}
}

// apply folds the entry as its writer's next.
func (r *replayed) apply(e *logEntry, written step) {
	index := terms.Index(e.ID) + shift
	r.s.Index = index - 1
	r.pending[e.Writer] = slices.DeleteFunc(r.pending[e.Writer], func(d step) bool { return d.same(written) })
	one := r.command(written, r.numberOf(written))
	if one == nil {
		r.tally.note(noCommand)
		replica.Skip(r.s, index, 0, noCommand.reason)
		return
	}
	r.fold(r.s, e.Writer, one)
}

func (r *replayed) tombstone(name string) bool { return r.s.NodeOf(r.peer(name).Node()).Departed > 0 }

func (r *replayed) fold(s *cluster.State, writer string, one command.Command) {
	r.seq++
	replica.Apply(s, s.Index+1, &command.Entry{
		Writer: r.peer(writer), Seq: r.seq, Time: terms.Time(s.Index) * 1000, Commands: []command.Command{one},
	}, false)
}

// checkCandidates compares who may observe a joiner before the entry.
func (r *replayed) checkCandidates(e *logEntry, last *ringPicture) {
	if e.Candidates == nil {
		return
	}
	want := *e.Candidates
	if less, held := last.without(r.departed); held {
		r.tally.note(departedBack)
		want = less.candidates()
	}
	got := []string{}
	for rank := range r.s.Open() {
		got = append(got, r.name(r.s.OpenAt(rank)))
	}
	if !slices.Equal(got, want) {
		r.wrong("candidates are %v, want %v", got, want)
	}
}

// checkReplica compares the value. If it differs for a stated reason the file's value is taken from there on; it
// returns false if the file's value is one that cannot be, so that there is nothing to compare reactions with.
func (r *replayed) checkReplica(e *logEntry, why *difference, before string) (fits bool) {
	if e.Expect.Replica == nil {
		return true
	}
	want, zombies := e.Expect.Replica.without(r.departed)
	if zombies {
		r.tally.note(departedBack)
	}
	got := r.picture()
	if got.String() == want.String() {
		return true
	}
	if zombies && why == nil {
		why = departedBack
	}
	if why == nil || why.unchanged && got.String() != before {
		r.wrong("the value is\n\t%s\nwant\n\t%s", got, want)
		return false
	}
	r.tally.note(why)
	r.result.stated = append(r.result.stated,
		fmt.Sprintf("the value is\n\t%s\nthe file has\n\t%s\n%s", got, want, why.reason))
	r.rebuild(want)
	return !zombies
}

// checkWatches compares who must watch whom.
func (r *replayed) checkWatches(e *logEntry) {
	if e.Expect.Watches == nil || e.Expect.Replica == nil {
		return
	}
	want := *e.Expect.Watches
	if less, held := e.Expect.Replica.without(r.departed); held {
		want = less.watches()
	}
	got := watching{}
	for _, name := range r.known {
		for _, q := range ring.Watches(r.s, r.peer(name)) {
			got[name] = append(got[name], r.name(q))
		}
	}
	if got.String() != want.String() {
		r.wrong("required watches are %s, want %s", got, want)
	}
}

// owe notes an expected reaction, about the attempt that the joiner makes now.
func (r *replayed) owe(actor string, d step) {
	d.number = r.numberOf(d)
	mine := slices.DeleteFunc(r.pending[actor], func(other step) bool { return other.same(d) })
	r.pending[actor] = append(mine, d)
}

// checkReactions compares what every peer would write with what is expected of it. A reaction is a level: it is asked
// for until its entry comes, and only while it would change something.
func (r *replayed) checkReactions() {
	for _, actor := range r.known {
		var got, want []string
		for _, d := range r.pending[actor] {
			if r.changes(actor, d) {
				want = append(want, d.String())
			} else {
				r.tally.note(void)
			}
		}
		observed := &reaction.Observed{Now: r.s.Time + terms.DelayMillisMax}
		for _, one := range reaction.React(r.peer(actor), r.s, observed).Commands {
			d := r.step(one)
			if d.fn == "prepare-join" && d.number == 1 && !slices.Contains(want, d.String()) {
				r.tally.note(firstPrepare)
				continue
			}
			got = append(got, d.String())
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			r.wrong("%s reacts with %s, want %s", actor, words(got), words(want))
		}
	}
}

// changes tells whether the reaction, written now, would change the ring or an attempt.
func (r *replayed) changes(actor string, d step) bool {
	after := r.s.Copy()
	r.fold(after, actor, r.command(d, d.number))
	return r.attempts(after) != r.attempts(r.s) || pictureOf(after, r.names).String() != r.picture().String()
}

func (r *replayed) attempts(s *cluster.State) string {
	var all strings.Builder
	s.EachAttempt(func(p terms.PeerID, a membership.Attempt) bool {
		fmt.Fprintln(&all, p, a.Number, a.Phase)
		return true
	})
	return all.String()
}

func (r *replayed) picture() *ringPicture { return pictureOf(r.s, r.names) }

// numberOf returns the attempt that a step is about: the files number none, so it is the joiner's present one.
func (r *replayed) numberOf(d step) uint32 {
	attempt, _ := r.s.Attempt(r.peer(d.joiner))
	if d.fn == "prepare-join" {
		return attempt.Number + 1
	}
	return attempt.Number
}
