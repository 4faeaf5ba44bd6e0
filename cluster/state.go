package cluster

import (
	"slices"

	"github.com/tidwall/btree"

	"starling/cluster/division"
	"starling/cluster/doubt"
	"starling/cluster/ended"
	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/cluster/names"
	"starling/cluster/preemptible"
	"starling/cluster/registry"
	"starling/cluster/requests"
	"starling/cluster/room"
	"starling/cluster/shapes"
	"starling/cluster/tree"
	"starling/cluster/vector"
	"starling/cluster/volumes"
	"starling/cluster/want"
	"starling/cluster/workload"
	"starling/terms"
	"starling/terms/fingerprint"
	"starling/terms/rules"
)

// State is the value that every peer holds: its facts, and an index of what follows from them, kept up to date with
// every change. Rebuild makes the index anew. It is not safe for concurrent use: other goroutines take copies of it
// Frozen.
type State struct {
	epoch *vector.Epoch
	facts.Head
	membership.Membership

	// The facts: jobs and nodes with those in their rows, and the tables. softSince is since when tasks with soft
	// constraints wait, nominations what is kept for waiting jobs, starving are the pools whose work waits for room
	// that others have, shared tells from what the virtual peers of each pool were divided last, volumes are what slots
	// do not say of sets of volumes, pools is the tree of resource pools, registry is who is known.
	jobs        btree.Map[terms.JobID, *workload.Job]
	nodes       vector.Of[*Node]
	softSince   btree.Map[facts.TaskKey, terms.Time]
	nominations btree.Map[terms.JobID, facts.Nomination]
	starving    btree.Map[tree.ID, facts.Starving]
	shared      btree.Map[tree.ID, uint64]
	volumes     volumes.Table
	pools       *tree.Pools
	registry    *registry.Registry
	requests    requests.Table

	// The index.

	jobNames  names.Table
	nodeNames btree.Map[terms.NodeName, facts.NodeIndex]
	finished  ended.Table
	// waiting is the queue of what waits.
	waiting btree.BTreeG[workload.QueueEntry]
	// LackRoom are the jobs of which updates lack room, those first that have not looked for it for the longest time;
	// some lack none any more.
	LackRoom []terms.JobID
	// deadlines are what is due at a time: seats, tasks that are complete, updates of jobs and drains of nodes.
	deadlines btree.BTreeG[due]
	// daemons are the daemon jobs that have not finished, workflows those whose tasks have an order, sharers those that
	// virtual peers run.
	daemons, workflows, sharers btree.Set[terms.JobID]
	// followers are the jobs that wait for others.
	followers btree.BTreeG[follower]
	// counters, wakeUps and timeouts tell what runs around nodes and what waits for it to change.
	counters btree.Map[string, *counter]
	wakeUps  btree.Map[facts.TaskKey, wakeUp]
	timeouts btree.BTreeG[timeout]
	// shapes are those of what holds devices.
	shapes shapes.Table
	// accounts is what the jobs of each pool hold and ask for, at its tree.ID. Offered is what nodes hold, and what
	// those that take work have free besides.
	accounts vector.Of[workload.Account]
	offered  terms.Amounts
	// wants is the most that jobs that have not finished have ever wanted, volunteered what all nodes offer.
	wants       want.Wants
	volunteered terms.Amounts
	// preemptible tells what could be preempted, and what stops already.
	preemptible preemptible.Index
	// rooms is what nodes have left.
	rooms   room.Rooms
	classes btree.Map[string, uint32]
	// divisions tell which nodes have which values of attributes that tasks are spread over.
	divisions []*division.Division
	// draining are the nodes that are being emptied.
	draining btree.Set[facts.NodeIndex]
	// doubts are the jobs of which no node could run a task, or of which that is to be asked.
	doubts doubt.List
	// digest is the sum over the rows.
	digest uint64

	// expired are the jobs that are forgotten at the end of the entry, dirtyRosters those whose list of members may
	// have changed; none between two entries.
	expired, dirtyRosters []terms.JobID
	// visited counts rows that were changed or that a pass looked at; nothing depends on it.
	visited uint64
	// offerChanges counts changes of what nodes offer, of whether they take work, and of the rules.
	offerChanges uint64
	// Scratch is memory that a fold and its pass of scheduling use anew with each entry; nothing depends on what is in it.
	Scratch struct{ Fold, Pass any }
	// edited takes the jobs that are edited, if it is not nil; nothing depends on it.
	edited *[]terms.JobID
}

// TraceJobs notes in edited each job that is added, changed or forgotten from now on, nearly always once in a row: also
// in copies of s, of which a pass may take one for the value itself, but not in what is frozen.
func (s *State) TraceJobs(edited *[]terms.JobID) { s.edited = edited }

func (s *State) noteEdited(id terms.JobID) {
	if all := s.edited; all != nil && (len(*all) == 0 || (*all)[len(*all)-1] != id) {
		*all = append(*all, id)
	}
}

// Visit counts rows that a pass looks at; 64 nodes whose room is compared at once are one.
func (s *State) Visit(rows int) { s.visited += uint64(rows) }

// OfferChanges returns how often changed what a node offers, whether it takes work, or the rules.
func (s *State) OfferChanges() uint64 { return s.offerChanges }

// Visited returns how many rows were looked at or changed since the value was made.
func (s *State) Visited() uint64 { return s.visited }

// due is a deadline of a seat; of a task that is complete, if the number is taskDeadline; of a job's update, if the
// task is jobDeadline; or of a node, if the job is 0.
type due struct {
	at   terms.Time
	slot facts.SlotRef
}

// NewState returns the value before the first entry, under the default limits.
func NewState() *State { return NewStateWithin(terms.DefaultLimits()) }

// NewStateWithin returns the value before the first entry, under the given limits.
func NewStateWithin(limits terms.Limits) *State {
	unlocked := btree.Options{NoLocks: true}
	return &State{
		epoch: new(vector.Epoch), Head: facts.Head{Rules: rules.First, Limits: limits},
		digest: fingerprint.Limits(&limits), pools: tree.First(), volumes: volumes.New(),
		waiting: *btree.NewBTreeGOptions(func(a, b workload.QueueEntry) bool { return a.Before(&b) }, unlocked),
		deadlines: *btree.NewBTreeGOptions(func(a, b due) bool {
			return a.at < b.at || a.at == b.at && a.slot.Compare(b.slot) < 0
		}, unlocked),
		timeouts: *btree.NewBTreeGOptions(func(a, b timeout) bool {
			return a.at < b.at || a.at == b.at && a.key < b.key
		}, unlocked),
		followers: *btree.NewBTreeGOptions(follower.before, unlocked),
		finished:  ended.New(),
		requests:  requests.New(),
	}
}

// Copy returns a State equal to s that will not change with it, in constant time. Rows are shared until either
// changes them: s is marked for that, so that nobody else may use it meanwhile. What many are to copy, Freeze.
func (s *State) Copy() *State {
	c := *s
	c.Scratch.Fold, c.Scratch.Pass = nil, nil
	s.epoch, c.epoch = new(vector.Epoch), new(vector.Epoch)
	c.Membership = s.Membership.Copy()
	c.jobs, c.jobNames, c.finished = *s.jobs.Copy(), s.jobNames.Copy(), s.finished.Copy()
	c.waiting, c.deadlines, c.followers = *s.waiting.Copy(), *s.deadlines.Copy(), *s.followers.Copy()
	c.daemons, c.workflows, c.sharers, c.draining = *s.daemons.Copy(), *s.workflows.Copy(), *s.sharers.Copy(),
		*s.draining.Copy()
	c.shapes, c.nodeNames, c.classes, c.doubts = s.shapes.Copy(), *s.nodeNames.Copy(), *s.classes.Copy(), s.doubts.Copy()
	c.nominations, c.starving, c.shared = *s.nominations.Copy(), *s.starving.Copy(), *s.shared.Copy()
	c.preemptible, c.volumes = s.preemptible.Copy(), s.volumes.Copy()
	c.counters, c.wakeUps, c.timeouts, c.softSince = *s.counters.Copy(), *s.wakeUps.Copy(), *s.timeouts.Copy(),
		*s.softSince.Copy()
	c.requests = s.requests.Copy()
	c.DirtyNodes, c.dirtyRosters, c.expired = slices.Clone(s.DirtyNodes), slices.Clone(s.dirtyRosters),
		slices.Clone(s.expired)
	return &c
}

// Frozen is a value that never changes again. Many goroutines may take copies of it at a time: that writes nothing of
// it.
type Frozen struct{ s *State }

// Freeze returns the value as it is now, in constant time. Like Copy, it marks s.
func (s *State) Freeze() Frozen {
	c := s.Copy()
	c.edited = nil
	return Frozen{c}
}

// Copy returns a State of the caller's own.
func (f Frozen) Copy() *State {
	marked := *f.s
	return marked.Copy()
}

// Index is the last entry folded into it.
func (f Frozen) Index() terms.Index { return f.s.Index }

// Digest is a hash of all facts: values with equal digests have equal ones from then on, whatever is folded.
func (s *State) Digest() uint64 {
	h := s.Head.Hash(s.digest+s.volumes.Digest, s.Membership.Digest(), s.pools.Hash)
	if s.registry != nil {
		h = fingerprint.Mix(h, s.registry.Hash)
	}
	return h
}

// Registry is who is known, nil for nobody.
func (s *State) Registry() *registry.Registry { return s.registry }

// SetRegistry replaces who is known.
func (s *State) SetRegistry(r *registry.Registry) {
	s.registry = r
	s.Visit(1)
}

// NextDeadline returns the earliest time at which the value wants to be told the time; ok is false if it never does.
func (s *State) NextDeadline() (at terms.Time, ok bool) {
	if s.Unfinished {
		return s.Time, true
	}
	first, ok := s.deadlines.Min()
	at = first.at
	if timeout, timeouts := s.timeouts.Min(); timeouts && (!ok || timeout.at < at) {
		at, ok = timeout.at, true
	}
	if due, starving := s.StarvingDue(); starving && (!ok || due < at) {
		at, ok = due, true
	}
	if _, due, kept := s.volumes.Due(); kept && (!ok || due < at) {
		at, ok = due, true
	}
	return at, ok
}

// Due returns one deadline whose time has come; ok is false if there is none. Whoever asks must deal with it: it is due
// until what it belongs to has another, or none.
func (s *State) Due() (r facts.SlotRef, ok bool) {
	first, ok := s.deadlines.Min()
	if !ok || first.at > s.Time {
		return facts.SlotRef{}, false
	}
	return first.slot, true
}

// Remember keeps the outcome of a request by its key (see command.RequestKey), which must not be empty.
func (s *State) Remember(key string, r facts.Request) {
	s.requests.Add(s.RequestNext, key, r)
	s.RequestNext++
	s.digest += r.Hash(key)
	if s.requests.Len() > int(s.Limits.Requests) {
		key, old := s.requests.Forget(s.Rules)
		s.digest -= old.Hash(key)
	}
}

// RequestOf returns the remembered outcome of a request, by its key.
func (s *State) RequestOf(key string) (r facts.Request, ok bool) { return s.requests.Of(key) }
