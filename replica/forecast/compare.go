package forecast

import (
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
)

// Limits of a comparison.
const (
	// AddedMax bounds the machines that may be imagined.
	AddedMax = 1000
	// comparedMax bounds the imagined entries on either side.
	comparedMax = 4000
	// comparedMillis is how much time passes on either side, and then that of the drains.
	comparedMillis terms.Time = 10 * 60 * 1000
)

// Change is what is imagined to happen, all at once.
type Change struct {
	// Add are machines that join, by names that the cluster does not have.
	Add []Machine
	// Commands are what users and peers would write.
	Commands []command.Command
}

// Machine is one that is imagined.
type Machine struct {
	Name  terms.NodeName
	Offer terms.Offer
}

// Comparison is what comes of a value by itself, and what with a change, if all goes well.
type Comparison struct {
	// Refused is the command that would be refused, and why; nil for none, and then nothing else is known. Unless a
	// command is about a machine, it is nil for one that would be.
	Refused command.Command
	Refusal facts.Refusal
	// Without and With are the values in the end.
	Without, With *cluster.State
	// Preempted are the instances that give way because of the change, with the reason.
	Preempted []report.Effect
	// Complete tells that nothing more would happen within the time that was imagined.
	Complete bool
}

// Compare tells what comes of a change, on copies of s. It stops, incomplete, once enough says so; nil never does.
func Compare(s *cluster.State, c *Change, enough func() bool) Comparison {
	limit := comparedMillis
	for _, one := range c.Commands {
		if drain, ok := one.(*command.DrainNode); ok {
			limit = max(limit, terms.Time(drain.DeadlineMillis)+comparedMillis)
		}
	}
	with := newComparing(s, limit)
	if refused, refusal := with.change(c); refusal.Code != facts.OK {
		return Comparison{Refused: refused, Refusal: refusal}
	}
	without := newComparing(s, limit)
	without.enough, with.enough = enough, enough
	without.end()
	with.end()
	result := Comparison{Without: without.s, With: with.s}
	result.Complete = with.entries < with.most && !without.over && !with.over
	for _, e := range with.gaveWay {
		same := func(o report.Effect) bool { return o.Slot == e.Slot && o.Order == e.Order }
		if !slices.ContainsFunc(without.gaveWay, same) {
			result.Preempted = append(result.Preempted, e)
		}
	}
	return result
}

// newComparing returns the future of a value within a limit of time.
func newComparing(s *cluster.State, limit terms.Time) *simulation {
	d := newSimulation(s, "")
	d.most, d.until = comparedMax, d.began+limit
	d.activateAll()
	return d
}

// end lets all happen that happens by itself.
func (d *simulation) end() {
	d.calm()
	d.pass()
}

// change folds a change. The commands are one entry, so that no machine is given work by which another is about to go.
func (d *simulation) change(c *Change) (command.Command, facts.Refusal) {
	for i := range c.Add {
		m := &c.Add[i]
		if reason := m.Offer.Problem(); reason != "" {
			return nil, facts.Refusal{Code: facts.Invalid, Reason: reason}
		}
		if !d.join(m.Name, &m.Offer) {
			return nil, facts.Refusal{Code: facts.Exhausted, Reason: "the cluster takes no more machines: it could not take " +
				string(m.Name)}
		}
	}
	if len(c.Commands) == 0 {
		return nil, facts.Refusal{}
	}
	if d.member = d.survivor(c.Commands); d.member == "" {
		return nil, facts.Refusal{Code: facts.Invalid, Reason: "no machine of the cluster would be left"}
	}
	outcome := d.foldAll(d.member, c.Commands, d.s.Time)
	facts.Assert(outcome.Dropped == "", "the writer of an imagined entry is a member and its number the next")
	for i, result := range outcome.Results {
		if result.Refused() {
			return c.Commands[i], result.Refusal
		}
	}
	return nil, facts.Refusal{}
}

// survivor returns a member that does not leave by the commands, "" if all do.
func (d *simulation) survivor(all []command.Command) (found terms.PeerID) {
	d.s.EachMember(func(p terms.PeerID) bool {
		leaves := slices.ContainsFunc(all, func(c command.Command) bool {
			leave, ok := c.(*command.Leave)
			return ok && leave.Peer == p
		})
		if !leaves {
			found = p
		}
		return leaves
	})
	return found
}
