package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"starling/cluster/facts"
	"starling/command"
	"starling/journal"
	"starling/peer"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// versions lets a cluster begin with programs that do not know the next rules, and some that do, upgrades its machines
// one by one, and raises the rules in the middle: too early at first, and once without a machine that came back with
// the old program. It draws from a source of its own, so that other seeds are what they were.
type versions struct {
	w   *World
	rng *rand.Rand
	// on tells that this run is one with mixed versions.
	on bool
	// raisedAt is the entry that raised the rules, 0 before; tries counts the requests for it.
	raisedAt terms.Index
	tries    int
	// halted counts the old programs that stopped where they met newer rules, refused the raises that came too early.
	halted, refused int
	// said has a hash of what each entry came to, in words: these are alike, too.
	said []uint64
}

// One run in mixedOneIn is with mixed versions. After triesMax requests the rules must have been raised.
const (
	mixedOneIn = 4
	triesMax   = 60
)

func newVersions(w *World) versions {
	v := versions{w: w, rng: rand.New(rand.NewPCG(w.seed, 0x2e1e5))}
	v.on = v.rng.IntN(mixedOneIn) == 0
	return v
}

func (v *versions) between(low, high int) int { return low + v.rng.IntN(high-low+1) }

// program draws what a new machine begins with.
func (v *versions) program() rules.Number {
	if v.on && v.rng.IntN(4) == 0 {
		return rules.Next
	}
	return rules.Released
}

// begin plans the upgrades of the machines, one after the other, and the rest.
func (v *versions) begin(trouble int) {
	if !v.on {
		return
	}
	at := v.between(100, trouble/2)
	for _, n := range v.rng.Perm(len(v.w.machines)) {
		v.w.after(at, func() { v.upgrade(v.w.machines[n]) })
		at += v.between(10, trouble/4)
	}
	v.w.after(v.between(500, 3000), v.raise)
	v.w.after(v.between(500, 3000), v.early)
}

// upgrade replaces the program of a machine, which restarts for it.
func (v *versions) upgrade(m *machine) {
	if m.program == rules.Next {
		return
	}
	m.install(rules.Next)
}

// install replaces the program and restarts the process, if it runs.
func (m *machine) install(program rules.Number) {
	m.tell("gets the program of rules %d", program)
	m.program, m.offer.Rules = program, program
	if m.w.calm {
		m.w.calmAt = m.w.now // it was none yet
	}
	if m.up {
		m.crash(false)
	}
}

// raise asks for the next rules, again and again until they are in force.
func (v *versions) raise() {
	if v.raisedAt != 0 {
		return
	}
	if v.tries++; v.tries > triesMax {
		v.w.fail("after %d requests the rules are not raised", triesMax)
		return
	}
	now := rules.Next
	for _, m := range v.w.machines {
		if v.w.calm && !m.dead {
			v.upgrade(m)
		}
		if m.up && m.core.State().Rules > 0 {
			now = min(now, m.core.State().Rules)
		}
	}
	if now < rules.Released { // the cluster did not do it by itself if a job came too soon
		v.w.clients.send(&command.RaiseRules{Version: now + 1}, func(report.Receipt) {})
	}
	v.w.clients.send(&command.RaiseRules{Version: rules.Next}, func(r report.Receipt) {
		if r.Refusal.Code != facts.OK {
			v.refused++
		}
	})
	v.w.after(v.between(1000, 4000), v.raise)
}

// early appends a command of the next rules, whatever those in force are: by a request, and as no peer would write it,
// with a header that says what it needs and with one that does not.
func (v *versions) early() {
	if v.w.calm {
		return
	}
	pass := &command.PassTime{Millis: uint32(v.between(0, 50))}
	switch v.rng.IntN(3) {
	case 0:
		v.w.clients.send(pass, func(r report.Receipt) {
			if r.Refusal.Code == facts.OK && (v.raisedAt == 0 || r.Index <= v.raisedAt) {
				v.w.fail("a command of the next rules was obeyed at entry %d", r.Index)
			}
		})
	default:
		v.w.slanders++
		writer := terms.NewPeerID("gossip", v.w.slanders)
		e := &command.Entry{Rules: rules.Number(v.between(int(rules.First), int(rules.Next))), Writer: writer, Seq: 1,
			Time: v.w.now}
		e.Commands = append(e.Commands, &command.PrepareJoin{Joiner: writer, Attempt: 1}, pass, &command.TellTime{})
		v.w.land(journal.Record{Writer: string(writer), Seq: e.Seq, Payload: command.Encode(e)})
	}
	v.w.after(v.between(500, 5000), v.early)
}

// check compares in words what an entry came to with what it came to elsewhere, and sees the raise.
func (v *versions) check(m *machine, folded *report.Folded) {
	if !v.on {
		return
	}
	words := fnv.New64a()
	fmt.Fprintf(words, "%q %+v", folded.Outcome.Dropped, folded.Outcome.Results)
	index := int(folded.Index)
	switch {
	case index > len(v.said):
		v.said = append(v.said, words.Sum64())
	case v.said[index-1] != words.Sum64():
		v.w.fail("%s, of rules %d, makes of entry %d: %q %+v; others differ", m.label, m.program, index,
			folded.Outcome.Dropped, folded.Outcome.Results)
	}
	if m.core.State().Rules == rules.Next && v.raisedAt == 0 {
		v.raisedAt = folded.Index
		v.w.tell("", "the rules are raised with entry %d", index)
		v.w.after(v.between(100, 4000), v.relapse)
	}
}

// relapse lets a machine come back with the old program, as by mistake.
func (v *versions) relapse() {
	m := v.w.machines[v.rng.IntN(len(v.w.machines))]
	if m.dead || v.w.calm || v.rng.IntN(2) == 0 {
		return
	}
	m.install(rules.Released)
	v.w.after(v.between(100, 6000), func() { v.upgrade(m) })
}

// halts ends the process of a machine whose program can fold nothing more: it must be one that met newer rules. What
// runs there runs on. It comes back again and again, until somebody has installed a newer program.
func (v *versions) halts(m *machine) {
	at := m.core.State()
	if met := at.Rules > m.program && at.Index == v.raisedAt; m.program == rules.Next || !met && !m.trimmed() {
		v.w.fail("%s, of rules %d, stops at entry %d: %v", m.label, m.program, at.Index, m.core.Halt())
	}
	v.halted++
	running := len(m.tasks)
	m.crash(false)
	if len(m.tasks) != running {
		v.w.fail("%s stopped, and has %d tasks of %d", m.label, len(m.tasks), running)
	}
	v.w.after(v.between(10, 5000), func() { v.upgrade(m) })
}

// knows returns a core that folds the whole journal of the run.
func (v *versions) knows() *peer.Core {
	core := peer.NewCore(v.w.limits)
	if v.on {
		core.Knows = rules.Next
	}
	return core
}

// checkRest checks that the rules are raised in the end, and that the old program folds the journal up to there and
// stops.
func (v *versions) checkRest() {
	if !v.on {
		return
	}
	if v.raisedAt == 0 {
		v.w.fail("the rules are not raised in the end")
		return
	}
	core := peer.NewCore(v.w.limits)
	core.Knows = rules.Released
	for i, r := range v.w.records {
		folded, ok := core.Fold(r, v.w.now)
		if ok != (terms.Index(i+1) <= v.raisedAt) || ok && folded.Digest != v.w.digests[i] {
			v.w.fail("the old program folds entry %d: %v, digest %016x", i+1, ok, folded.Digest)
			return
		}
	}
}
