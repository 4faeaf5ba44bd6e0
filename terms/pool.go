package terms

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// AmountCount is the number of kinds that pools divide: the resources, and some kinds of device.
const AmountCount = VirtualPeers + 1

// Amounts is an amount of every kind that pools divide. It is a small array and no table by name, because it is
// computed with whenever demand changes. All code runs over it alike: one more device is one more constant and name.
type Amounts [AmountCount]int64

// Within tells whether each amount is between nothing and the most.
func (a *Amounts) Within(most int64) bool {
	for _, amount := range a {
		if amount < 0 || amount > most {
			return false
		}
	}
	return true
}

// Minus returns a less other.
func (a Amounts) Minus(other Amounts) Amounts {
	for k := range a {
		a[k] -= other[k]
	}
	return a
}

// Add adds so many times another amount.
func (a *Amounts) Add(other *Amounts, times int64) {
	for k := range a {
		a[k] += other[k] * times
	}
}

// Times returns how often a need fits into an amount, at most most, as far as the kinds go that are needed.
func (a *Amounts) Times(into *Amounts, most uint32) uint32 {
	count := int64(most)
	for k := range a {
		if a[k] > 0 {
			count = min(count, into[k]/a[k])
		}
	}
	return uint32(max(count, 0))
}

// Unlimited as a pool's limit is more than there can be of anything.
const Unlimited = 2 * BytesMax

// Overcommitted tells whether revocable work uses what others reserved and leave idle, beyond every entitlement. Only
// processor time can be taken back at once; revocable work takes the other kinds out of its pool's own entitlement.
func (k Kind) Overcommitted() bool { return k == CPU }

// PoolPath names a pool by the names that lead to it: "analytics/etl". The root, which is the cluster, has the empty
// path.
type PoolPath string

// PathDepthMax bounds the names in the path of a pool, PathBytesMax the path: a job's name has room behind it.
const (
	PathDepthMax = 8
	PathBytesMax = JobNameBytesMax - 32
)

// Problem returns what is wrong with the path, or "".
func (p PoolPath) Problem() string {
	if depth := strings.Count(string(p), "/") + 1; depth > PathDepthMax {
		return fmt.Sprintf("must have at most %d names, has %d", PathDepthMax, depth)
	}
	for rest, first := string(p), true; ; first = false {
		name, below, more := strings.Cut(rest, "/")
		if first && name == "root" {
			return `"root" is the whole tree, whose quota is what the cluster has: begin with the name of a pool below it`
		}
		if reason := NameProblem(name, false); reason != "" {
			return fmt.Sprintf("name %q %s", name, reason)
		}
		if rest = below; !more {
			break
		}
	}
	if len(p) > PathBytesMax {
		return fmt.Sprintf("must have at most %d characters, has %d", PathBytesMax, len(p))
	}
	return ""
}

// DefaultPool takes the jobs that name no pool. It is there from the start.
const DefaultPool PoolPath = "default"

// Quota is what a pool may have of one kind.
type Quota struct {
	// Reservation is promised, Limit never exceeded. Share is the pool's weight when what is free is divided among
	// siblings; with 0 it gets its reservation and no more.
	Reservation, Limit, Share int64
	// Static keeps the reservation for the pool even while it is idle; otherwise it is lent.
	Static bool
}

// Percent is a part of a pool's reservation, 0 to 100, or NoPercent.
type Percent uint8

// NoPercent bounds nothing.
const NoPercent Percent = 255

// SlackPercentDefault is the slack limit of a pool that states none.
const SlackPercentDefault Percent = 20

// PreemptionDelayMillisDefault is the preemption delay of a pool that states none.
const PreemptionDelayMillisDefault = 1000

// Pool is a resource pool as its author wrote it. Jobs live in the leaves of the tree of pools.
type Pool struct {
	Path   PoolPath
	Quotas [AmountCount]Quota
	// ControllerLimit bounds the instances that lead others, SlackLimit the revocable ones, but of overcommitted kinds.
	ControllerLimit, SlackLimit Percent
	// PreemptionDelayMillis is how long work that the pool is entitled to waits for room before others give way, so
	// that nothing is ended for what comes free by itself in a moment.
	PreemptionDelayMillis uint32
	// JobScheduler divides the virtual peers of the pool among its jobs.
	JobScheduler JobScheduler
	// Owners are the users to whom the pool belongs: they rule what is below it. Operators, Submitters and Viewers are
	// users who may do as such a role says, in the pool and below it. Pools have those three since rules.Registry.
	Owners, Operators, Submitters, Viewers []string
	// RunAs are users as which jobs of the pool, and of those below it, may run besides their own: see MayRunAs. Pools
	// have it since rules.Authorities.
	RunAs []string
	// SpecBytes bounds what the specs of its own jobs that have not ended take, in all kept versions; 0 is
	// SpecBytesDefault. Pools have it since rules.Volumes.
	SpecBytes int64
	// HostPaths are those that jobs of the pool, and of those below it, may use: none if the outermost pool names none.
	// DeviceKinds are the kinds of devices that they may ask for: all if no pool names some. Of pools below each other
	// those count that all have which name some. Capabilities are those that their containers may have beside the usual
	// ones, as HostPaths are. Pools have all three since rules.HostPaths.
	HostPaths, DeviceKinds, Capabilities []string
}

// SpecBytesDefault is the most that the specs of a pool's jobs take where it states none, and those of all ended jobs.
const SpecBytesDefault = 64 << 20

// SpecBytesMost returns the most that the specs of the pool's jobs may take.
func (s *Pool) SpecBytesMost() int64 { return cmp.Or(s.SpecBytes, SpecBytesDefault) }

// AnyUser in Pool.RunAs is every user but root.
const AnyUser = "*"

// MayRunAs tells whether a list of users has the user of a task.
func MayRunAs(list []string, user string) bool {
	root := user == "root" || user != "" && strings.Trim(user, "0") == ""
	return slices.Contains(list, user) || !root && slices.Contains(list, AnyUser)
}

// PoolVersion is that of the encoding of a pool that has all of its fields, PoolVersionSpecBytes without those of
// rules.HostPaths, PoolVersionUsers without SpecBytes, PoolVersionRoles without RunAs, PoolVersionFirst without roles.
const (
	PoolVersionFirst     = 1
	PoolVersionRoles     = 2
	PoolVersionUsers     = 3
	PoolVersionSpecBytes = 4
	PoolVersion          = 5
)

// Version returns the lowest version of the encoding that has all fields of the pool which are not zero.
func (s *Pool) Version() uint16 {
	switch {
	case len(s.HostPaths)+len(s.DeviceKinds)+len(s.Capabilities) > 0:
		return PoolVersion
	case s.SpecBytes != 0:
		return PoolVersionSpecBytes
	case len(s.RunAs) > 0:
		return PoolVersionUsers
	case len(s.Operators)+len(s.Submitters)+len(s.Viewers) > 0:
		return PoolVersionRoles
	}
	return PoolVersionFirst
}

// NewPool returns a pool without reservation and limit, and with the defaults for all else.
func NewPool(path PoolPath) Pool {
	s := Pool{Path: path, ControllerLimit: NoPercent, SlackLimit: SlackPercentDefault,
		PreemptionDelayMillis: PreemptionDelayMillisDefault}
	for k := range s.Quotas {
		s.Quotas[k] = Quota{Limit: Unlimited, Share: 1}
	}
	return s
}

// SlackMost returns the most that revocable work may have of the pool's own entitlement.
func (s *Pool) SlackMost(k Kind) int64 {
	if k.Overcommitted() {
		return 0
	}
	return s.SlackLimit.of(s.Quotas[k].Reservation)
}

// ControllerMost returns the most that controllers may have.
func (s *Pool) ControllerMost(k Kind) int64 { return s.ControllerLimit.of(s.Quotas[k].Reservation) }

// Limited tells whether the pool has a limit of any kind.
func (s *Pool) Limited() bool {
	return slices.ContainsFunc(s.Quotas[:], func(q Quota) bool { return q.Limit != Unlimited })
}

// Static tells whether the pool keeps a reservation while it is idle.
func (s *Pool) Static() bool {
	return slices.ContainsFunc(s.Quotas[:], func(q Quota) bool { return q.Static && q.Reservation > 0 })
}

// of returns that part of an amount, rounded down; Unlimited for NoPercent.
func (p Percent) of(amount int64) int64 {
	if p == NoPercent {
		return Unlimited
	}
	return amount/100*int64(p) + amount%100*int64(p)/100
}

// Compare orders pools by name, each directly before all that is below it.
func (p PoolPath) Compare(other PoolPath) int {
	for i := range min(len(p), len(other)) {
		if a, b := p[i], other[i]; a != b {
			return cmp.Compare(placeOf(a), placeOf(b))
		}
	}
	return cmp.Compare(len(p), len(other))
}

// placeOf orders the bytes of paths: what parts names comes before all that names are made of.
func placeOf(b byte) byte {
	if b == '/' {
		return 0
	}
	return b
}
