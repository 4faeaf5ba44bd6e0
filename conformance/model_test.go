package conformance

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// model is a plain rendering of the rules that the reference gives in section 2.1 for version 0.14.6: the dumb twin of
// package ring. The files were computed by another one.
type model struct{ ringPicture }

// newModel begins with a copy of the picture.
func newModel(r *ringPicture) *model {
	clone := func(m map[string]string) map[string]string {
		all := map[string]string{}
		maps.Copy(all, m)
		return all
	}
	return &model{ringPicture{slices.Clone(r.Members), clone(r.Pairs), clone(r.Prepared), clone(r.Accepted)}}
}

// apply changes the picture and returns the reactions that the entry causes, per actor.
func (m *model) apply(id uint64, d step) map[string][]logReaction {
	switch d.fn {
	case "prepare-join":
		return m.prepare(id, d.joiner)
	case "notify-join":
		return m.notify(d.joiner)
	case "accept-join":
		return m.accept(d.joiner, d.observer)
	case "abort-join":
		m.drop(d.joiner, false)
		return reacts(d.joiner, "prepare-join", "joiner", d.joiner)
	case "leave":
		return m.leave(d.joiner)
	}
	return nil
}

func reacts(actor, fn string, args ...string) map[string][]logReaction {
	named := map[string]string{}
	for i := 0; i < len(args); i += 2 {
		named[args[i]] = args[i+1]
	}
	return map[string][]logReaction{actor: {{Fn: fn, Args: named}}}
}

func (m *model) prepare(id uint64, joiner string) map[string][]logReaction {
	_, preparing := key(m.Prepared, joiner)
	_, accepting := key(m.Accepted, joiner)
	candidates := m.candidates()
	switch {
	case slices.Contains(m.Members, joiner) || preparing || accepting:
		return nil
	case len(m.Members) == 0:
		m.Members = append(m.Members, joiner)
		return nil
	case len(candidates) == 0:
		return reacts(joiner, "abort-join", "id", joiner)
	}
	observer := candidates[id%uint64(len(candidates))]
	m.Prepared[observer] = joiner
	return reacts(observer, "notify-join", "observer", joiner)
}

func (m *model) notify(joiner string) map[string][]logReaction {
	observer, ok := key(m.Prepared, joiner)
	switch {
	case slices.Contains(m.Members, joiner):
		return nil
	case !ok:
		return reacts(joiner, "abort-join", "id", joiner)
	}
	delete(m.Prepared, observer)
	m.Accepted[observer] = joiner
	return reacts(joiner, "accept-join", "joiner", joiner, "observer", observer, "subject", m.subject(observer))
}

func (m *model) subject(observer string) string {
	if subject, ok := m.Pairs[observer]; ok {
		return subject
	}
	return observer
}

func (m *model) accept(joiner, observer string) map[string][]logReaction {
	target := m.subject(observer)
	if m.Accepted[observer] != joiner || slices.Contains(m.Members, joiner) || !slices.Contains(m.Members, target) {
		return reacts(joiner, "abort-join", "id", joiner)
	}
	m.Pairs[observer], m.Pairs[joiner] = joiner, target
	delete(m.Accepted, observer)
	m.Members = append(m.Members, joiner)
	return nil
}

func (m *model) leave(p string) map[string][]logReaction {
	joiner := m.Prepared[p] + m.Accepted[p]
	watcher, _ := key(m.Pairs, p)
	watched := m.Pairs[p]
	m.Members = slices.DeleteFunc(m.Members, func(q string) bool { return q == p })
	m.drop(p, true)
	delete(m.Pairs, p)
	if watcher == watched {
		delete(m.Pairs, watcher)
	} else {
		m.Pairs[watcher] = watched
	}
	if joiner == "" {
		return nil
	}
	return reacts(joiner, "abort-join", "id", joiner)
}

// drop ends the attempts of a joiner, and with observer also those that it observes.
func (m *model) drop(p string, observer bool) {
	for _, table := range []map[string]string{m.Prepared, m.Accepted} {
		maps.DeleteFunc(table, func(q, joiner string) bool { return joiner == p || observer && q == p })
	}
}

func key(m map[string]string, value string) (string, bool) {
	for k, v := range m {
		if v == value {
			return k, true
		}
	}
	return "", false
}

// TestModel checks the model with the files: it must say what they say, without any stated difference.
func TestModel(t *testing.T) {
	for _, file := range dataFiles(t, "testdata") {
		kind, _, _ := strings.Cut(path.Base(file), "-")
		if !slices.Contains([]string{"join", "leave", "race", "dup", "stuck"}, kind) {
			continue
		}
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			f, _, err := readMembership(data)
			if err != nil {
				t.Fatal(err)
			}
			m := newModel(&f.Initial.Replica)
			for i := range f.Log {
				m.check(t, &f.Log[i])
			}
		})
	}
}

func (m *model) check(t *testing.T, e *logEntry) {
	t.Helper()
	d, err := stepOf(e.Fn, e.Args)
	if err != nil {
		t.Fatal(err)
	}
	if e.Candidates != nil && !slices.Equal(m.candidates(), *e.Candidates) {
		t.Errorf("entry %d: candidates are %v, want %v", e.ID, m.candidates(), *e.Candidates)
	}
	reactions := m.apply(e.ID, d)
	if m.String() != e.Expect.Replica.String() {
		t.Errorf("entry %d: the model has\n\t%s\nwant\n\t%s", e.ID, m, e.Expect.Replica)
	}
	if e.Expect.Watches != nil && m.watches().String() != e.Expect.Watches.String() {
		t.Errorf("entry %d: watches are %s, want %s", e.ID, m.watches(), e.Expect.Watches)
	}
	if got, want := fmt.Sprint(reactions),
		fmt.Sprint(e.Expect.Reactions); len(reactions)+len(e.Expect.Reactions) > 0 && got != want {
		t.Errorf("entry %d: reactions are %s, want %s", e.ID, got, want)
	}
}

// history makes a random log with the model, as the generators of the reference do (section 4.3): joiners come, peers
// die, their deaths are reported more than once, and the last entry of a dead peer arrives late.
type history struct {
	*model
	rng *rand.Rand
	f   *membershipFile
	// queues are the entries that each writer has in flight; all are who ever began, dead who died.
	queues map[string][]step
	all    []string
	dead   map[string]bool
	// reported holds each report once per observer: "p q".
	reported map[string]bool
}

func newHistory(seed uint64) *history {
	f := &membershipFile{ID: fmt.Sprint(seed)}
	return &history{model: newModel(&f.Initial.Replica), rng: rand.New(rand.NewPCG(seed, 1)), f: f,
		queues: map[string][]step{}, dead: map[string]bool{}, reported: map[string]bool{}}
}

// run plays entries until the log is long enough or nothing is left to do.
func (h *history) run(joiners, length int) *membershipFile {
	deaths, reports := 5+h.rng.IntN(4), 9+h.rng.IntN(6)
	for attempts := 0; len(h.f.Log) < length && attempts < 10*length; attempts++ {
		switch draw := h.rng.IntN(20); {
		case draw < 5 && len(h.all) < joiners:
			p := fmt.Sprintf("p%d", len(h.all))
			h.all = append(h.all, p)
			h.queues[p] = []step{{fn: "prepare-join", joiner: p}}
		case draw >= 5 && draw < deaths && len(h.all) > 0:
			p := h.all[h.rng.IntN(len(h.all))]
			h.dead[p] = true
			h.queues[p] = h.queues[p][:min(len(h.queues[p]), h.rng.IntN(4))]
		case draw >= deaths && draw < reports:
			h.report()
		default:
			h.play()
		}
	}
	return h.f
}

// report lets a peer that watches a dead one write that down, once.
func (h *history) report() {
	watches := h.watches()
	for _, p := range slices.Sorted(maps.Keys(watches)) {
		for _, q := range watches[p] {
			if h.dead[q] && !h.dead[p] && !h.reported[p+" "+q] && h.rng.IntN(2) == 0 {
				h.reported[p+" "+q] = true
				h.queues[p] = append(h.queues[p], step{fn: "leave", joiner: q})
			}
		}
	}
}

// play takes the next entry of some writer.
func (h *history) play() {
	var writers []string
	for _, p := range h.all {
		if len(h.queues[p]) > 0 {
			writers = append(writers, p)
		}
	}
	if len(writers) == 0 {
		return
	}
	writer := writers[h.rng.IntN(len(writers))]
	d := h.queues[writer][0]
	h.queues[writer] = h.queues[writer][1:]
	e := logEntry{ID: uint64(len(h.f.Log)), Fn: d.fn, Writer: writer, Args: d.args()}
	if candidates := h.candidates(); d.fn == "prepare-join" && len(h.Members) > 0 {
		e.Candidates = &candidates
	}
	e.Expect.Reactions = map[string][]logReaction{}
	for actor, reactions := range h.apply(e.ID, d) {
		e.Expect.Reactions[actor] = reactions
		for _, reaction := range reactions {
			if next, err := stepOf(reaction.Fn, reaction.Args); err == nil && !h.dead[actor] {
				h.queues[actor] = append(h.queues[actor], next)
			}
		}
	}
	watches := h.watches()
	e.Expect.Replica, e.Expect.Watches = &newModel(&h.ringPicture).ringPicture, &watches
	h.f.Log = append(h.f.Log, e)
}

// args are the arguments of a step as the files write them.
func (d step) args() map[string]string {
	switch d.fn {
	case "prepare-join":
		return map[string]string{"joiner": d.joiner}
	case "notify-join":
		return map[string]string{"observer": d.joiner}
	case "accept-join":
		return map[string]string{"joiner": d.joiner, "observer": d.observer}
	}
	return map[string]string{"id": d.joiner}
}

// TestRandomHistories replays random logs of the model as if they were files. 40,000 of them have passed: 1.7 million
// entries, and every rule of difference but that for peer-gc was needed.
func TestRandomHistories(t *testing.T) {
	uses, entries, histories := tally{}, 0, uint64(300)
	if testing.Short() {
		histories = 60
	}
	for seed := range histories {
		f := newHistory(seed).run(8, 80)
		results, differences := replay(f)
		for d, count := range differences {
			uses[d] += count
		}
		entries += len(results)
		for i, r := range results {
			if len(r.wrong) > 0 {
				for _, e := range f.Log[:i+1] {
					t.Logf("%d %s writes %s %v: %s, reactions %v", e.ID, e.Writer, e.Fn, e.Args, e.Expect.Replica, e.Expect.Reactions)
				}
				t.Fatalf("history %d, entry %s: %s", seed, r.name, strings.Join(r.wrong, "\n"))
			}
		}
	}
	t.Logf("%d entries; differences by rule: %s", entries, uses)
}
