package preempt

import (
	"starling/cluster/facts"
	"starling/cluster/preemptible"
	"starling/terms"
)

// Input is all that the choice depends on. The order of nodes and victims does not matter.
type Input struct {
	// Wants are needed together, as a gang. With Partial there is one, and as many of its instances as can run are
	// wanted.
	Wants   []Want
	Partial bool
	// Pool, Revocable and Priority are those of the job that wants room.
	Pool      int
	Revocable bool
	Priority  uint32
	// Room is what the pool may hold beyond what it holds, revocable or not as the wanted work is; below 0 if it holds
	// more already. What is wanted beyond it must come free from victims of the same pool and class. Kinds that are not
	// wanted do not matter.
	Room terms.Amounts
	// Subtree are the pools that share the room, if it is bounded by the limit of one above: then victims of any of
	// them make room.
	Subtree Subtree
	// Over is, by pool, what it holds above its entitlement, of the class of the wanted work. Others than the own pool
	// give way only as long as some of that is left in a kind that is wanted.
	Over    []terms.Amounts
	Nodes   []Node
	Victims []Victim
	Gangs   []Gang
	// Unread are more nodes, unless nil, which are read as they come into question.
	Unread Unread
}

// Subtree are the pools from First up to but without End, in the order of the tree.
type Subtree struct{ First, End int }

// Want is a number of equal instances that want room.
type Want struct {
	Need  terms.Amounts
	Count uint32
	// Most returns how many of them a node may run, by rules that are not about amounts; nil is any number. It is asked
	// only for nodes that come into question.
	Most func(facts.NodeIndex) uint32
}

// Node is a machine that may run what is wanted.
type Node struct {
	Index facts.NodeIndex
	// Free is what it has left if all have stopped that were told to; it may be below 0.
	Free terms.Amounts
}

// NoGang is the gang of a victim whose job has none.
const NoGang = -1

// Victim is an instance that is preemptible and was not told to stop. Its node need not be among the nodes: then
// nothing can be placed there, but the victim may have to go with its gang or for its pool.
type Victim struct {
	Slot facts.SlotRef
	Node facts.NodeIndex
	// Need comes free on its node and in its pool.
	Need      terms.Amounts
	Pool      int
	Revocable bool
	Stage     Stage
	Priority  uint32
	// Since is when it started, or was ordered to.
	Since terms.Time
	// Gang is the number of its job's gang, NoGang if it has none.
	Gang int
}

// Stage is how far an instance is. Those that are less far give way first.
type Stage = preemptible.Stage

// The stages.
const (
	BackingOff = preemptible.BackingOff
	Ordered    = preemptible.Ordered
	Running    = preemptible.Running
)

// Gang is a job that is of no use with fewer instances than its gang has. All its instances that are no victims yet are
// in the input.
type Gang struct {
	// Surplus is, by task, how many instances may go before the gang breaks.
	Surplus []uint32
}

// Plan is what gives way, and where what is wanted can run then.
type Plan struct {
	// Victims are in the order in which they are chosen: the first are the least valuable.
	Victims []Chosen
	// Seats are in the order of wants and nodes.
	Seats []Seat
}

// Chosen is a victim by its number in the input, and the rule that allows to end it.
type Chosen struct {
	Victim int
	Rule   Rule
}

// Rule says why an instance may be ended.
type Rule uint8

const (
	// ByRevocable is because it is revocable.
	ByRevocable Rule = iota + 1
	// ByEntitlement is because its pool holds more than it is entitled to.
	ByEntitlement
	// ByPriority is because its own pool has more important work.
	ByPriority
	// ByShare is because its job gets fewer of the virtual peers of its pool.
	ByShare
	// ByTaskShare is because its task gets fewer of those of its job.
	ByTaskShare
	// ByPlace is because the counts of virtual peers are only met if another has the one it has.
	ByPlace
	// ByDaemon is because a daemon that has an instance on every node needs the room on this one.
	ByDaemon
)

// String returns the rule in words.
func (r Rule) String() string {
	return [...]string{"", "it was revocable", "its pool held more than it was entitled to", "it was less important",
		"its job gets fewer of the virtual peers of its pool", "its task gets fewer of the virtual peers of its job",
		"it was on a virtual peer that others need, who cannot run elsewhere", "a daemon of its node needs the room"}[r]
}

// Seat is how many instances of a want have room on a node.
type Seat struct {
	Want  int
	Node  facts.NodeIndex
	Count uint32
}
