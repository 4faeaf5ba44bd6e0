package preempt

import (
	"cmp"
	"slices"

	"starling/cluster/facts"
	"starling/terms"
)

// Choose returns what gives way so that what is wanted can run, and false if nothing lets it run. If it fits as it is,
// nothing does.
func Choose(in *Input) (Plan, bool) {
	c := newChoice(in)
	for _, want := range c.hardestFirst() {
		left := min(in.Wants[want].Count, c.affordable(want))
		if left < in.Wants[want].Count && !in.Partial {
			return Plan{}, false
		}
		for _, c.breaks = range [...]bool{false, true} {
			if left > 0 {
				left -= c.seat(want, left)
			}
		}
		if left > 0 && !in.Partial {
			return Plan{}, false
		}
	}
	c.spare()
	plan := c.plan()
	return plan, len(plan.Seats) > 0
}

// plan says what was chosen.
func (c *choice) plan() (p Plan) {
	c.sort(c.singles)
	slices.SortStableFunc(c.broken, c.compareGangs)
	for _, i := range c.singles {
		p.Victims = append(p.Victims, Chosen{Victim: int(i), Rule: c.rules[i]})
	}
	for _, id := range c.broken {
		for _, i := range c.gangs[id].members {
			p.Victims = append(p.Victims, Chosen{Victim: int(i), Rule: c.rules[i]})
		}
	}
	slices.SortStableFunc(c.touched, func(a, b int32) int { return cmp.Compare(c.nodes[a].index, c.nodes[b].index) })
	for want := range c.in.Wants {
		for _, at := range c.touched {
			if n := &c.nodes[at]; n.seats[want] > 0 {
				p.Seats = append(p.Seats, Seat{Want: want, Node: n.index, Count: n.seats[want]})
			}
		}
	}
	return p
}

// choice is what was chosen so far, and what is left to choose from.
type choice struct {
	in *Input
	// wanted are the kinds of which something is wanted.
	wanted [terms.AmountCount]bool
	// room and over are what is left of those of the input.
	room terms.Amounts
	over []terms.Amounts
	// rules allow to end the victims, 0 does not. Gone are those that have been chosen, singly or with their gang.
	rules []Rule
	gone  []bool
	// makesRoom tells what makes room in the pool.
	makesRoom []bool
	gangs     []gang
	nodes     []node
	// at is the position of each node by its index, from 1; sites are the positions of the victims' nodes, -1 for none.
	at    []int32
	sites []int32
	// lists are of the pages that were not read at first; isUnread are those that are not yet, by number. Awaiting are
	// the victims on the others.
	lists    [3]list
	isUnread []bool
	awaiting []int32
	// singles and broken are the victims and the gangs that were chosen, in this order.
	singles, broken []int32
	// slack tells that the pool is out of room that comes free if something revocable goes.
	slack bool
	// own are those that make room in the pool, least valuable first, listed that they are there; from is where to look
	// for one that has something of a kind.
	own    []int32
	listed bool
	from   [terms.AmountCount]int
	// breaks tells that gangs may be broken now.
	breaks bool
	// queues are the nodes that may be taken for the next instance: all, and those where only the pool's own victims
	// go. Split tells that the second one is in use, want is for which of the wants.
	queues [2]queue
	split  bool
	want   int
	// touched are the nodes that have to do with the plan.
	touched []int32
	offer   offer
	spares  spares
}

// node is a machine while it is decided about.
type node struct {
	index facts.NodeIndex
	// free is what it has left if the chosen end and what has a seat runs.
	free terms.Amounts
	// victims are those that may be ended here.
	victims []int32
	sorted  bool
	// taken tells that an instance has or had a seat here or was chosen here; rank is its place among those.
	taken bool
	rank  int32
	// seats and limits are by want.
	seats  []uint32
	limits []uint32
}

// gang is a gang while it is decided about.
type gang struct {
	// members are in their order once it has been broken.
	members []int32
	surplus []uint32
	worth   value
	// need is what comes free if it breaks.
	need   terms.Amounts
	broken bool
	// along are the members that went because it broke.
	along []int32
}

// hardestFirst returns the wants, those first that take the most of what there may be: small ones fit beside big ones.
func (c *choice) hardestFirst() []int {
	if len(c.in.Wants) == 1 {
		return []int{0}
	}
	c.readAll(all)
	var total terms.Amounts
	for i := range c.nodes {
		for k, free := range c.nodes[i].free {
			total[k] += max(free, 0)
		}
	}
	for i := range c.in.Victims {
		if c.rules[i] != 0 {
			total.Add(&c.in.Victims[i].Need, 1)
		}
	}
	wants, weights := make([]int, len(c.in.Wants)), make([]int64, len(c.in.Wants))
	for i := range wants {
		wants[i] = i
		for k, need := range c.in.Wants[i].Need {
			weights[i] = max(weights[i], need/(total[k]>>20+1))
		}
	}
	slices.SortStableFunc(wants, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	return wants
}

// affordable returns how many instances the pool may hold if all go that make room in it.
func (c *choice) affordable(want int) uint32 {
	need, count := &c.in.Wants[want].Need, c.in.Wants[want].Count
	if !c.exhausted(need, int64(count)) {
		return count
	}
	room := c.room
	for i := 0; need.Times(&room, count) < count; i++ {
		for i == len(c.in.Victims) {
			if _, more := c.readNext(onlyOwn); !more {
				return need.Times(&room, count)
			}
		}
		if c.makesRoom[i] && !c.gone[i] {
			made := c.roomOf(&c.in.Victims[i])
			room.Add(&made, 1)
		}
	}
	return count
}
