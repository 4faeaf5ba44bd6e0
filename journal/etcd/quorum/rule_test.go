package quorum

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNext reads a quorum as words and wants the next step: a! leads, a votes, a? learns, a- is away (a-- too long),
// a~ has lost its data, a% was removed from the cluster, ?a was added and has not started; +a is a machine that can be
// a member, of zone z as +a/z, and xa one that was removed by hand.
func TestNext(t *testing.T) {
	for _, c := range []struct{ quorum, want string }{
		{"a!", "wait: grows when 3 machines can be its members; there are 1"},
		{"a! +b", "wait: there are 2"},
		{"a! +b +c", "add b: 3 machines can keep a quorum of 3"},
		{"a! ?b +c", "wait: the member at http://b was added and does not run yet"},
		{"a! b? +c", "add c"},
		{"a! b? ?c", "wait: the member at http://c was added and does not run yet"},
		{"a! b? c?", "promote b"},
		{"a! b c?", "promote c"},
		{"a! b c", "wait: 3 machines keep the quorum"},
		{"a! b c +d +e +f", "wait"},
		{"a! b c +d +e +f +g", "add d: 7 machines can keep a quorum of 5"},
		{"a! b c d? +e +f +g", "add e"},
		{"a! b c d? e? +f +g", "promote d"},
		{"a! b c d e? +f +g", "promote e"},
		{"a! +b +c +d +e +f +g", "add b: 7 machines can keep a quorum of 5"},
		{"a! b? c? +d +e +f +g", "promote b"},
		{"a! b c? +d +e +f +g", "promote c"},
		// Zones.
		{"a!/x +b/x +c/y +d/z", "add c"},
		{"a!/x c?/y +b/x +d/z", "add d"},
		// Away.
		{"a! b c-", "wait: c is away, and no other machine can take its place"},
		{"a! b c--", "wait: c is away, and no other machine can take its place"},
		{"a! b c- +d", "wait: c is away; another machine takes its place after 1m0s"},
		{"a! b c-- +d", "remove c: away since"},
		{"a! b +d", "add d"},
		{"a! b d?", "promote d"},
		{"a! b c-- d-- e-- +f", "wait"}, // two of the four that would be left are no majority
		{"a! b c d-- e-- +f", "remove d"},
		{"a! b c e-- +f", "remove e"},
		{"a! b c d +f", "add f: 5 machines can keep a quorum of 5"},
		{"a! b? c--?", "remove c: it went away while it caught up"},
		// Lost data.
		{"a! b c~", "remove c: the machine is back without the data"},
		{"a!~ b c", "wait"},
		// Removed from the cluster.
		{"a! b c%", "remove c: the node was removed from the cluster"},
		{"a! b c% +d", "remove c"},
		{"a! b%", "remove b"},
		{"a!% b c", "remove a"},
		{"a! b c?%", "remove c"},
		{"a! b- c%", "wait"}, // c is needed until b is back
		{"a! b +c%", "wait"},
		// By hand.
		{"a! b xc", "wait"},
		{"a! b xc +d", "add d"},
	} {
		v := parse(c.quorum)
		got := Next(v)
		text := fmt.Sprintf("%s %s", got.Action, got.Node)
		if got.Action == Wait {
			text = "wait"
		}
		text += ": " + got.Why
		for i, want := range strings.SplitN(c.want, ": ", 2) {
			if i == 0 && !strings.HasPrefix(text, want+":") || !strings.Contains(text, want) {
				t.Errorf("%s: got %q, want %q", c.quorum, text, c.want)
			}
		}
	}
}

// TestNextKeepsAMajority loses and adds machines as the bits of a number say, and follows the rule until it waits: the
// live voters are a majority at each step that they were one before, and it ends.
func TestNextKeepsAMajority(t *testing.T) {
	for number := range 1 << (2 * machines) {
		v := drawn(number)
		if !hasMajority(v) {
			continue
		}
		for steps := 0; ; steps++ {
			step := Next(v)
			if step.Action == Wait {
				break
			}
			before := describe(v)
			perform(&v, step)
			if !hasMajority(v) || steps > 4*machines {
				t.Fatalf("%s: %s %s leads to %s after %d steps", before, step.Action, step.Node, describe(v), steps)
			}
		}
		able, voters := len(v.able()), v.voters()
		if able >= smallFrom && voters < smallQuorum || able >= largeFrom && voters < largeQuorum {
			t.Fatalf("it rests with %s although %d machines are there", describe(v), able)
		}
	}
}

const machines = 8

// drawn is a quorum in which the low bits say which machines run, and the high ones which are members.
func drawn(number int) View {
	v := View{AwayMax: time.Minute, Now: time.Unix(1000, 0)}
	for i := range machines {
		node := string(rune('a' + i))
		m := Member{ID: uint64(i + 1), Node: node, Peer: "http://" + node, Away: time.Unix(0, 1)}
		isLive, isMember := number>>i&1 == 1, number>>(machines+i)&1 == 1
		if isLive {
			v.Machines = append(v.Machines, Machine{Node: node, Peer: m.Peer, Member: m.ID})
			m.Machine = &v.Machines[len(v.Machines)-1]
			if v.Leader == 0 && isMember {
				v.Leader = m.ID
			}
		}
		if isMember {
			v.Members = append(v.Members, m)
		}
	}
	return v
}

func hasMajority(v View) bool {
	live := 0
	for _, m := range v.Members {
		if !m.Learner && m.Machine != nil {
			live++
		}
	}
	return live > v.voters()/2
}

func describe(v View) string {
	var all []string
	for _, m := range v.Members {
		all = append(all, fmt.Sprintf("%s(learner %t, live %t)", m.Node, m.Learner, m.Machine != nil))
	}
	return strings.Join(all, " ")
}

func perform(v *View, step Step) {
	at := slices.IndexFunc(v.Members, func(m Member) bool { return m.Node == step.Node })
	switch step.Action {
	case Add:
		machine := slices.IndexFunc(v.Machines, func(m Machine) bool { return m.Node == step.Node })
		v.Members = append(v.Members, Member{ID: v.Machines[machine].Member, Node: step.Node, Peer: step.Peer, Learner: true,
			Machine: &v.Machines[machine]})
	case Promote:
		v.Members[at].Learner = false
	case Remove:
		v.Members = slices.Delete(v.Members, at, at+1)
	}
}

func parse(text string) View {
	v := View{AwayMax: time.Minute, Now: time.Unix(1000, 0)}
	for i, word := range strings.Fields(text) {
		word, zone, _ := strings.Cut(word, "/")
		node := strings.Trim(word, "!?-~+x%")
		id := uint64(i + 1)
		machine := &Machine{Node: node, Peer: "http://" + node, Zone: zone, Member: id}
		m := Member{ID: id, Node: node, Peer: machine.Peer, Learner: strings.Contains(word, "?"), Machine: machine}
		switch {
		case strings.HasPrefix(word, "x"):
			v.Barred = append(v.Barred, node)
			fallthrough
		case strings.HasPrefix(word, "+"):
			if strings.HasSuffix(word, "%") {
				v.Gone = append(v.Gone, node)
			}
			machine.Member = 0
			v.Machines = append(v.Machines, *machine)
			continue
		case strings.HasPrefix(word, "?"):
			m.Node = ""
		case strings.Contains(word, "--"):
			m.Machine, m.Away = nil, v.Now.Add(-2*v.AwayMax)
		case strings.Contains(word, "-"):
			m.Machine, m.Away = nil, v.Now.Add(-v.AwayMax/2)
		case strings.Contains(word, "~"):
			machine.Member = 0
		}
		if strings.Contains(word, "!") {
			v.Leader = id
		}
		if strings.Contains(word, "%") {
			v.Gone = append(v.Gone, node)
		}
		if m.Machine != nil {
			v.Machines = append(v.Machines, *machine)
		}
		v.Members = append(v.Members, m)
	}
	return v
}
