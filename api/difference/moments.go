package difference

import (
	"context"
	"fmt"
	"slices"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/api/words"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/jobspec"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/pool"
)

// causesMax bounds the entries that are told of one change.
const causesMax = 5

// Archive has the past.
type Archive interface {
	// At returns the value at an index, as a copy of the caller's own.
	At(ctx context.Context, index terms.Index) (*cluster.State, error)
	// Walk folds the entries behind an index up to another, and visits each with what it did and the value after it, which
	// is only to be read.
	Walk(ctx context.Context, from, to terms.Index, visit func(*cluster.State, *report.Folded) error) error
}

// Of tells what changed from one index to another, and which entries did it.
func Of(ctx context.Context, archive Archive, from, to terms.Index) (*starlingv1.DiffResponse, error) {
	before, err := archive.At(ctx, from)
	if err != nil {
		return nil, err
	}
	d := &moments{before: before, causes: map[subject][]*starlingv1.ChangeCause{}, more: map[subject]uint32{}}
	if err := archive.Walk(ctx, from, to, d.visit); err != nil {
		return nil, err
	}
	if d.after, err = archive.At(ctx, to); err != nil {
		return nil, err
	}
	d.answer = &starlingv1.DiffResponse{From: uint64(from), FromTime: wire.Timestamp(before.Time), To: uint64(to),
		ToTime: wire.Timestamp(d.after.Time)}
	d.nodes()
	d.pools()
	d.jobs()
	return d.answer, nil
}

// subject is a node, a pool or a job.
type subject struct{ kind, name string }

// moments compares the values at two moments.
type moments struct {
	before, after *cluster.State
	causes        map[subject][]*starlingv1.ChangeCause
	more          map[subject]uint32
	answer        *starlingv1.DiffResponse
}

// visit notes what an entry has to do with which subject.
func (d *moments) visit(s *cluster.State, f *report.Folded) error {
	note := func(kind, name, text string) {
		on := subject{kind, name}
		if all := append(d.causes[on], &starlingv1.ChangeCause{Index: uint64(f.Index), Time: wire.Timestamp(s.Time),
			Text: text}); len(all) > causesMax {
			d.causes[on] = slices.Clone(all[1:])
			d.more[on]++
		} else {
			d.causes[on] = all
		}
	}
	for i, result := range f.Outcome.Results {
		if result.Refused() {
			continue
		}
		said := words.Command(f.Entry.Commands[i])
		switch c := command.Plain(f.Entry.Commands[i]).(type) {
		case *command.ChangePools:
			for _, path := range append(slices.Clone(c.Gone), paths(c.Pools)...) {
				note("pool", string(path), said)
			}
		case *command.DrainNode:
			note("node", string(c.Node), said)
		case *command.RemoveNode:
			note("node", string(c.Node), said)
		case *command.Volunteer:
			note("node", string(c.Peer.Node()), said)
		case *command.ReportTasks, *command.TellTime:
		default:
			if result.Job != "" {
				note("job", string(result.Job), said)
			}
		}
	}
	for i := range f.Outcome.Effects {
		switch e := &f.Outcome.Effects[i]; {
		case e.Slot.Job != "":
			note("job", string(e.Slot.Job), words.Effect(e))
		case e.Peer != "":
			note("node", string(e.Peer.Node()), words.Effect(e))
		}
	}
	return nil
}

func paths(all []terms.Pool) []terms.PoolPath {
	var found []terms.PoolPath
	for i := range all {
		found = append(found, all[i].Path)
	}
	return found
}

// add notes how a subject differs, if it does.
func (d *moments) add(kind, name string, differences []string) {
	if on := (subject{kind, name}); len(differences) > 0 {
		d.answer.Changes = append(d.answer.Changes, &starlingv1.Changed{Kind: kind, Name: name, Differences: differences,
			Causes: d.causes[on], More: d.more[on]})
	}
}

func (d *moments) nodes() {
	for n := range facts.NodeIndex(d.after.Nodes()) {
		now := d.after.Node(n)
		was := d.before.NodeOf(now.Name)
		if was == nil {
			was = &cluster.Node{}
		}
		all := append(membership(was, now), drained(was, now)...)
		if was.Offer != nil && now.Offer != nil {
			for k := range now.Offer.Capacity {
				kind := terms.Kind(k)
				all = append(all, amounts("gives "+kind.String(), kind, was.Offer.Capacity[k], now.Offer.Capacity[k])...)
			}
		}
		d.add("node", string(now.Name), append(all, counted("instances", len(was.Held), len(now.Held))...))
	}
}

func membership(was, now *cluster.Node) []string {
	switch {
	case was.Peer == now.Peer:
		return nil
	case was.Peer == "":
		return []string{"joined"}
	case now.Peer == "":
		return []string{"left"}
	}
	return []string{fmt.Sprintf("is %s instead of %s", now.Peer, was.Peer)}
}

func drained(was, now *cluster.Node) []string {
	switch {
	case was.Offer.Open() != now.Offer.Open() && was.Offer != nil && now.Offer != nil:
		return []string{map[bool]string{true: "is back", false: "is away"}[now.Offer.Open()]}
	case was.Drain.On == now.Drain.On:
		return nil
	case now.Drain.On:
		return []string{"is drained"}
	}
	return []string{"is not drained any more"}
}

// amounts says from what to what an amount has changed, if it has.
func amounts(what string, k terms.Kind, before, after int64) []string {
	if before == after {
		return nil
	}
	return []string{fmt.Sprintf("%s %s to %s", what, k.Round(before), k.Round(after))}
}

// counted says from what to what a number has changed, if it has.
func counted[N ~int | ~uint32](what string, before, after N) []string {
	if before == after {
		return nil
	}
	return []string{fmt.Sprintf("%s %d to %d", what, before, after)}
}

func (d *moments) pools() {
	before, after := pool.Tree(d.before.Pools()), pool.Tree(d.after.Pools())
	for i := range after {
		at, found := before.Find(after[i].Path)
		if !found {
			d.add("pool", string(after[i].Path), []string{"created"})
			continue
		}
		var all []string
		for _, c := range jobspec.DiffPools(&before[at], &after[i]) {
			all = append(all, fmt.Sprintf("%s %s to %s", c.Path, orNone(c.Old), orNone(c.New)))
		}
		d.add("pool", string(after[i].Path), all)
	}
	for i := range before {
		if _, stays := after.Find(before[i].Path); !stays {
			d.add("pool", string(before[i].Path), []string{"deleted"})
		}
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func (d *moments) jobs() {
	for _, name := range jobNames(d.before, d.after) {
		was, now := d.before.JobOf(name), d.after.JobOf(name)
		switch {
		case was == nil, now != nil && was.ID != now.ID:
			d.add("job", string(name), append([]string{"submitted, now " + now.Status().String()},
				d.running(&workload.Job{Spec: now.Spec}, now)...))
		case now == nil:
			d.add("job", string(name), []string{"forgotten; it was " + was.Status().String()})
		default:
			all := counted("version", was.Version, now.Version)
			if a, b := was.Status(), now.Status(); a != b {
				all = append(all, fmt.Sprintf("status %s to %s", a, b))
			}
			d.add("job", string(name), append(all, d.running(was, now)...))
		}
	}
}

// running says how many instances of a job run, wait and have moved.
func (d *moments) running(was, now *workload.Job) []string {
	var running, waiting [2]int
	moved := 0
	for _, task := range taskNames(was, now) {
		old, next := taskOf(was, task), taskOf(now, task)
		for index := range max(Slots(old), Slots(next)) {
			a, b := RowOf(old, index), RowOf(next, index)
			for side, slot := range []facts.Slot{a, b} {
				if runs(slot) {
					running[side]++
				}
				if slot.Phase == facts.Waiting && index < Slots([]*workload.Task{old, next}[side]) {
					waiting[side]++
				}
			}
			if runs(a) && runs(b) && a.Order != b.Order {
				moved++
			}
		}
	}
	all := append(counted("running", running[0], running[1]), counted("waiting", waiting[0], waiting[1])...)
	if moved > 0 {
		all = append(all, words.Count(uint64(moved), "instance")+" replaced")
	}
	return all
}
