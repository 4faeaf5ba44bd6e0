package quorum

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Machine is one that runs, as it says itself by a key that ends with it.
type Machine struct {
	// Node is its name.
	Node string `json:"-"`
	// ID tells it from another machine that goes by the same name; Host and Folder say where that is.
	ID     string `json:"id"`
	Host   string `json:"host"`
	Folder string `json:"folder"`
	// Client and Peer are the URLs of the member that it would be; without them it is never one.
	Client string `json:"client,omitempty"`
	Peer   string `json:"peer,omitempty"`
	// Zone is what members are spread over.
	Zone string `json:"zone,omitempty"`
	// Member is the id of the member that runs there, 0 for none.
	Member uint64 `json:"member,omitempty"`
}

// Member is one as the engine lists it, with what is known of its machine.
type Member struct {
	ID           uint64
	Node         string // "" until it has started for the first time
	Client, Peer string
	Learner      bool
	// Machine is nil while the machine of this name does not run.
	Machine *Machine
	// Away is since when it does not, zero if that was not noted yet.
	Away time.Time
}

// View is all that the rule looks at.
type View struct {
	Members []Member
	// Machines are those that run.
	Machines []Machine
	// Barred are the nodes that were removed by hand, Gone those that were removed from the cluster.
	Barred, Gone []string
	// Leader is the id of the member that leads.
	Leader uint64
	// AwayMax is how long a member may be away before another takes its place.
	AwayMax time.Duration
	Now     time.Time
}

// Action is what can be done with a member of the quorum.
type Action string

// The actions. A cluster at rest waits.
const (
	Wait    Action = "wait"
	Add     Action = "add"
	Promote Action = "promote"
	Remove  Action = "remove"
)

// Step is one change of the quorum, with its reason.
type Step struct {
	Action Action
	Node   string
	Member uint64 // of Promote and Remove
	Peer   string // of Add
	Why    string
}

// The sizes of a quorum, and from how many machines on each is aimed at. Even ones bear no more losses than the odd one
// below.
const (
	smallQuorum, smallFrom = 3, 3
	largeQuorum, largeFrom = 5, 7
)

// learnersMax is how many members catch up at a time, as the engine has it.
const learnersMax = 2

// Next returns what is to be done now: at most one change at a time, and the next one when that has come to its end.
func Next(v View) Step {
	for _, ask := range []func(*View) (Step, bool){(*View).dropGone, (*View).dropLost, (*View).dropLearner,
		(*View).replace, (*View).grow, (*View).promote} {
		if step, due := ask(&v); due {
			return step
		}
	}
	return Step{Action: Wait, Why: v.rest()}
}

// dropGone removes a member whose node was removed from the cluster, if those that are left can go on. One that leads
// removes itself.
func (v *View) dropGone() (Step, bool) {
	for _, m := range v.Members {
		if slices.Contains(v.Gone, m.Node) && (m.Learner || v.live(&m) > (v.voters()-1)/2) {
			return Step{Action: Remove, Node: m.Node, Member: m.ID, Why: "the node was removed from the cluster"}, true
		}
	}
	return Step{}, false
}

// live counts the voters that run, without one.
func (v *View) live(without *Member) int {
	n := 0
	for _, m := range v.Members {
		if !m.Learner && m.Machine != nil && m.ID != without.ID {
			n++
		}
	}
	return n
}

// dropLost removes a member whose machine runs without it: its data is lost. It joins again as any machine does.
func (v *View) dropLost() (Step, bool) {
	for _, m := range v.Members {
		if m.Node != "" && m.Machine != nil && m.Machine.Member != m.ID && m.ID != v.Leader {
			return Step{Action: Remove, Node: m.Node, Member: m.ID, Why: "the machine is back without the data of this member"}, true
		}
	}
	return Step{}, false
}

// dropLearner removes one that went away before it had a vote.
func (v *View) dropLearner() (Step, bool) {
	for _, m := range v.Members {
		if m.Learner && v.isAway(&m) {
			return Step{Action: Remove, Node: m.Node, Member: m.ID, Why: "it went away while it caught up"}, true
		}
	}
	return Step{}, false
}

// promote gives learners their vote, once all that were added run: two together take a quorum from one odd size to the
// next.
func (v *View) promote() (Step, bool) {
	var first *Member
	for i, m := range v.Members {
		if !m.Learner {
			continue
		}
		if m.Node == "" || m.Machine == nil {
			return Step{Action: Wait, Node: m.Node, Why: fmt.Sprintf("the member at %s was added and does not run yet", m.Peer)}, true
		}
		if first == nil {
			first = &v.Members[i]
		}
	}
	if first == nil {
		return Step{}, false
	}
	return Step{Action: Promote, Node: first.Node, Member: first.ID, Why: "it has caught up, or soon will"}, true
}

// replace removes a voter that has been away too long, when another machine can take its place.
func (v *View) replace() (Step, bool) {
	if len(v.spare()) == 0 {
		return Step{}, false
	}
	for _, m := range v.Members {
		if !m.Learner && m.ID != v.Leader && v.isAway(&m) && v.live(&m) > (v.voters()-1)/2 {
			return Step{Action: Remove, Node: m.Node, Member: m.ID, Why: fmt.Sprintf("away since %s: another machine takes its place",
				m.Away.Format(time.RFC3339))}, true
		}
	}
	return Step{}, false
}

// grow adds the machine that spreads the quorum best.
func (v *View) grow() (Step, bool) {
	spare, learners := v.spare(), v.learners()
	isPairIncomplete := learners == 1 && v.voters()%2 == 0 // the other one has its vote already
	// Members that start at the same time wait in vain for each other's version.
	isStarting := slices.ContainsFunc(v.Members, func(m Member) bool { return m.Node == "" })
	if v.missing() <= learners || len(spare) == 0 || learners >= learnersMax || isPairIncomplete || isStarting {
		return Step{}, false
	}
	there := map[string]int{}
	for _, m := range v.Members {
		if m.Machine != nil {
			there[m.Machine.Zone]++
		}
	}
	best := slices.MinFunc(spare, func(a, b Machine) int {
		return cmp.Or(cmp.Compare(there[a.Zone], there[b.Zone]), cmp.Compare(a.Node, b.Node))
	})
	return Step{Action: Add, Node: best.Node, Peer: best.Peer, Why: fmt.Sprintf("%d machines can keep a quorum of %d",
		len(v.able()), v.voters()+v.missing())}, true
}

// rest says why nothing is to be done.
func (v *View) rest() string {
	for _, m := range v.Members {
		if m.Machine == nil && !m.Learner {
			if len(v.spare()) == 0 {
				return fmt.Sprintf("%s is away, and no other machine can take its place", m.Node)
			}
			return fmt.Sprintf("%s is away; another machine takes its place after %s", m.Node, v.AwayMax)
		}
	}
	if v.voters() < smallQuorum {
		return fmt.Sprintf("the quorum grows when %d machines can be its members; there are %d", smallFrom, len(v.able()))
	}
	return fmt.Sprintf("%d machines keep the quorum; a larger one begins with %d machines", v.voters(), largeFrom)
}

func (v *View) isAway(m *Member) bool {
	return m.Machine == nil && !m.Away.IsZero() && v.Now.Sub(m.Away) >= v.AwayMax
}

// able are the machines that run and can be members.
func (v *View) able() []Machine {
	var able []Machine
	for _, m := range v.Machines {
		if m.Peer != "" && !slices.Contains(v.Barred, m.Node) && !slices.Contains(v.Gone, m.Node) {
			able = append(able, m)
		}
	}
	return able
}

// spare are those of them that are none.
func (v *View) spare() []Machine {
	return slices.DeleteFunc(v.able(), func(m Machine) bool {
		return slices.ContainsFunc(v.Members, func(o Member) bool { return o.Peer == m.Peer || o.Node == m.Node })
	})
}

func (v *View) voters() int { return len(v.Members) - v.learners() }

func (v *View) learners() int {
	n := 0
	for _, m := range v.Members {
		if m.Learner {
			n++
		}
	}
	return n
}

// missing is how many voters the quorum is to have more: as many as make it the largest odd one that the machines there
// are can keep.
func (v *View) missing() int {
	able := len(v.able())
	want := 1
	switch {
	case able >= largeFrom:
		want = largeQuorum
	case able >= smallFrom:
		want = smallQuorum
	}
	if v.voters()%2 == 0 {
		want = max(want, v.voters()+1)
	}
	reach := v.voters() + v.learners() + len(v.spare())
	if want = min(want, reach); want%2 == 0 {
		want--
	}
	return max(0, want-v.voters())
}
