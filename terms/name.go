package terms

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Index is a position in the journal; the first entry has index 1, 0 is before all.
type Index uint64

// Time is milliseconds since 1970-01-01 UTC, as told by entries.
type Time int64

// NodeName names a machine for ever: its host name, or what its owner chose. See NameProblem for its form.
type NodeName string

// PeerID is one incarnation of a node: "a~3" is the third life of node a. Peers are ordered by this string.
type PeerID string

// JobName is the path of the pool that a job lives in and its own name: "analytics/etl/nightly". A job of DefaultPool
// has its own name alone. It is unique among the jobs that have not been forgotten.
type JobName string

// JobNameBytesMax bounds a job's name with the path of its pool.
const JobNameBytesMax = 127

// Split returns the path of the pool and the job's own name.
func (n JobName) Split() (pool PoolPath, own string) {
	at := strings.LastIndexByte(string(n), '/')
	if at < 0 {
		return DefaultPool, string(n)
	}
	return PoolPath(n[:at]), string(n[at+1:])
}

// Pool returns the path of the pool that the job lives in.
func (n JobName) Pool() PoolPath {
	pool, _ := n.Split()
	return pool
}

// NewJobName returns the name of a job in a pool.
func NewJobName(pool PoolPath, own string) JobName {
	if pool == DefaultPool || pool == "" {
		return JobName(own)
	}
	return JobName(string(pool) + "/" + own)
}

// Problem returns what is wrong with the name, or "".
func (n JobName) Problem() string {
	if len(n) > JobNameBytesMax {
		return fmt.Sprintf("must have at most %d characters with the path of its pool, has %d", JobNameBytesMax, len(n))
	}
	pool, own := n.Split()
	if reason := NameProblem(own, false); reason != "" {
		return reason
	}
	if pool == DefaultPool && own != string(n) {
		return fmt.Sprintf("is %s: jobs of the pool %s are named without it", own, DefaultPool)
	}
	return pool.Problem()
}

// TaskName is unique within its job.
type TaskName string

// JobID numbers jobs in the order of their submission, from 1; it is never used again.
type JobID uint32

// NameBytesMax bounds every name.
const NameBytesMax = 63

// PeerIDBytesMax bounds the id of a peer: a name and an incarnation.
const PeerIDBytesMax = NameBytesMax + 12

// NewPeerID names the given incarnation of a node.
func NewPeerID(node NodeName, incarnation uint32) PeerID {
	return PeerID(string(node) + "~" + strconv.FormatUint(uint64(incarnation), 10))
}

// Split returns the node and the incarnation, 0 if the id has none.
func (p PeerID) Split() (NodeName, uint32) {
	node, number, found := strings.Cut(string(p), "~")
	if !found {
		return NodeName(node), 0
	}
	incarnation, err := strconv.ParseUint(number, 10, 32)
	if err != nil || strconv.FormatUint(incarnation, 10) != number {
		return NodeName(p), 0
	}
	return NodeName(node), uint32(incarnation)
}

// Node returns the node that the peer is a life of.
func (p PeerID) Node() NodeName {
	node, _ := p.Split()
	return node
}

// NameProblem returns what is wrong with a name, or "". Names are 1 to NameBytesMax bytes of a-z, A-Z, 0-9, "-" and
// "_", and begin with a letter or digit; node names may also hold ".".
func NameProblem(name string, dots bool) string {
	switch {
	case name == "":
		return "must not be empty"
	case len(name) > NameBytesMax:
		return fmt.Sprintf("must have at most %d characters, has %d", NameBytesMax, len(name))
	}
	for i := range len(name) {
		c := name[i]
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alphanumeric && (i == 0 || c != '-' && c != '_' && (c != '.' || !dots)) {
			allowed := `letters, digits, "-" and "_"`
			if dots {
				allowed = `letters, digits, "-", "_" and "."`
			}
			return fmt.Sprintf("must be of %s and begin with a letter or digit; %q is not allowed at position %d", allowed,
				rune(c), i+1)
		}
	}
	return ""
}

// Shown returns a reason of NameProblem as it is told to people: with the letter of the name that is not ASCII, and its
// place. NameProblem tells the first byte of that, and cannot be changed: reasons are part of the value.
func Shown(reason, name string) string {
	place := 0
	for at, letter := range name {
		if place++; letter >= utf8.RuneSelf {
			told := fmt.Sprintf("%q is not allowed at position %d", rune(name[at]), at+1)
			return strings.Replace(reason, told, fmt.Sprintf("%q is not allowed at position %d", letter, place), 1)
		}
	}
	return reason
}

// SlotName is a slot as people write it: job, task and number.
type SlotName struct {
	Job   JobName
	Task  TaskName
	Index uint32
}

// String returns for example "web.server[2]".
func (n SlotName) String() string {
	return fmt.Sprintf("%s.%s[%d]", n.Job, n.Task, n.Index)
}

// AllocationID is one attempt to fill a slot: the slot and the index of the entry that ordered it. It is unique for
// ever, and the order is the fence: a node refuses an order for a slot that is older than one it has obeyed.
type AllocationID struct {
	Slot  SlotName
	Order Index
}

// String returns for example "web.server[2]#4711".
func (a AllocationID) String() string {
	return fmt.Sprintf("%s#%d", a.Slot, a.Order)
}

// Compare orders slots by job, task and number.
func (n SlotName) Compare(b SlotName) int {
	return cmp.Or(cmp.Compare(n.Job, b.Job), cmp.Compare(n.Task, b.Task), cmp.Compare(n.Index, b.Index))
}

// Compare orders allocations by job, task, slot and order.
func (a AllocationID) Compare(b AllocationID) int {
	return cmp.Or(a.Slot.Compare(b.Slot), cmp.Compare(a.Order, b.Order))
}

// ParseAllocationID is the inverse of String; ok is false for what String never returns.
func ParseAllocationID(text string) (id AllocationID, ok bool) {
	slot, order, found1 := strings.Cut(text, "#")
	job, rest, found2 := strings.Cut(slot, ".")
	task, number, found3 := strings.Cut(strings.TrimSuffix(rest, "]"), "[")
	index, err1 := strconv.ParseUint(number, 10, 32)
	at, err2 := strconv.ParseUint(order, 10, 64)
	id = AllocationID{Slot: SlotName{Job: JobName(job), Task: TaskName(task), Index: uint32(index)}, Order: Index(at)}
	ok = found1 && found2 && found3 && err1 == nil && err2 == nil && id.String() == text
	return id, ok
}

// VolumeSet names the volumes of one slot: that of the slot's name, and the number of the job of which a slot first had
// them, or one that was given to volumes that began anew.
type VolumeSet struct {
	Slot SlotName
	Job  JobID
}

// Compare orders sets by slot, older ones of a slot first.
func (v VolumeSet) Compare(b VolumeSet) int {
	return cmp.Or(v.Slot.Compare(b.Slot), cmp.Compare(v.Job, b.Job))
}

// String returns for example "db.main[2]@17".
func (v VolumeSet) String() string { return fmt.Sprintf("%s@%d", v.Slot, v.Job) }

// ParseVolumeSet is the inverse of String; ok is false for what String never returns.
func ParseVolumeSet(text string) (set VolumeSet, ok bool) {
	slot, job, found := strings.Cut(text, "@")
	id, named := ParseAllocationID(slot + "#0")
	number, err := strconv.ParseUint(job, 10, 32)
	set = VolumeSet{Slot: id.Slot, Job: JobID(number)}
	return set, found && named && err == nil && set.String() == text
}

// OutputSet names the folders of one allocation of a workflow: what it leaves for others, and what it got of them.
type OutputSet struct {
	Allocation AllocationID
	Job        JobID
}

// String returns for example "words.count[2]#4711@17".
func (o OutputSet) String() string { return fmt.Sprintf("%s@%d", o.Allocation, o.Job) }

// ParseOutputSet is the inverse of String; ok is false for what String never returns.
func ParseOutputSet(text string) (set OutputSet, ok bool) {
	allocation, job, found := strings.Cut(text, "@")
	id, named := ParseAllocationID(allocation)
	number, err := strconv.ParseUint(job, 10, 32)
	set = OutputSet{Allocation: id, Job: JobID(number)}
	return set, found && named && err == nil && set.String() == text
}

// The numbers of users that are jobs' own: above those that systemd, containers and directories give out.
const (
	OwnUserFirst = 0x70000000
	OwnUsers     = 0x0fffffff
)

// OwnUser returns the number of the user that is a job's own. It is the same on every machine, so that what volumes and
// outputs hold stays the job's. No two jobs that are known have the same since number 18 of the rules.
func (n JobName) OwnUser() uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(n))
	return OwnUserFirst + h.Sum32()%OwnUsers
}
