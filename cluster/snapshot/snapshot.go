package snapshot

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/cluster/registry"
	"starling/cluster/tree"
	"starling/terms"
	"starling/terms/codec"
	"starling/terms/fingerprint"
	"starling/terms/rules"
)

// format is the first byte of every snapshot.
const format = 1

// ErrNewer tells that facts are of newer rules than this program knows, or of a newer format.
var ErrNewer = errors.New("the snapshot was written by a newer version of starling: use that one")

// rowsMax bounds every list. What a list may really hold is bounded by the limits of the value.
const rowsMax = math.MaxInt32

type coder = codec.Coder

// Encode returns the bytes of the facts.
func Encode(f *facts.All) []byte {
	specs := &specs{numbers: map[string]uint64{}}
	body := codec.Writer()
	specs.all(body, f)
	c := codec.Writer()
	c.Data = append(c.Data, format)
	head(c, &f.Head)
	specs.table(c)
	return append(c.Data, body.Data...)
}

// Decode returns the facts with these bytes, for a program that knows rules up to a number. It never panics. That the
// facts are those of a value that there was, the digest of what cluster.Rebuild makes of them tells.
func Decode(data []byte, knows rules.Number) (*facts.All, error) {
	switch {
	case len(data) == 0:
		return nil, errors.New("the snapshot is empty")
	case data[0] == 0:
		return nil, errors.New("this is not a snapshot: it begins with 0")
	case data[0] > format:
		return nil, fmt.Errorf("format %d: %w", data[0], ErrNewer)
	}
	c, f := &coder{Data: data[1:], In: knows}, &facts.All{Pools: &tree.Pools{}, Ring: &membership.Facts{}}
	if head(c, &f.Head); c.Failure == "" && f.Rules > knows {
		return nil, fmt.Errorf("version %d of the rules: %w", f.Rules, ErrNewer)
	}
	specs := &specs{}
	specs.table(c)
	if specs.all(c, f); c.Failure == "" && len(c.Data) > 0 {
		c.Fail("has %d bytes too many", len(c.Data))
	}
	if c.Failure != "" {
		return nil, fmt.Errorf("the snapshot is damaged: it %s", c.Failure)
	}
	return f, nil
}

// Chunks returns the bytes in pieces of a size; the last may be shorter.
func Chunks(data []byte, size int) [][]byte { return slices.Collect(slices.Chunk(data, size)) }

func index[T ~uint64](c *coder, all ...*T) {
	for _, v := range all {
		codec.Integer(c, v, math.MaxUint64)
	}
}

func times(c *coder, all ...*terms.Time) {
	for _, v := range all {
		codec.Integer(c, v, math.MaxInt64)
	}
}

// text codes a text that was bounded where it came from.
func text[T ~string](c *coder, v *T) { codec.Text(c, v, math.MaxInt32) }

func head(c *coder, h *facts.Head) {
	codec.Integer(c, &h.Rules, math.MaxUint32)
	index(c, &h.Index)
	times(c, &h.Time)
	limits(c, &h.Limits)
	codec.Integer(c, &h.LastJob, math.MaxUint32)
	index(c, &h.RequestNext, &h.Holds)
	codec.Flags(c, &h.Unfinished, &h.PlacementDirty, &h.PreemptionDirty)
	codec.List(c, &h.DirtyNodes, rowsMax, node)
	snapshots(c, &h.Snapshots)
}

func snapshots(c *coder, n *facts.Snapshots) {
	codec.Uint32s(c, &n.Entries)
	index(c, &n.Bytes)
	index(c, &n.Due)
	times(c, &n.DueAt)
	codec.List(c, &n.Vouches, rowsMax, func(c *coder, v *facts.Vouch) {
		text(c, &v.Peer)
		v.Snapshot.Code(c)
	})
	n.Confirmed.Code(c)
	text(c, &n.By)
}

func limits(c *coder, l *terms.Limits) {
	codec.Uint32s(c, &l.Jobs, &l.FinishedJobs, &l.FinishedSlots, &l.Tasks, &l.JobInstances, &l.Instances, &l.Gang,
		&l.Versions, &l.Attempts, &l.Requests, &l.Nodes, &l.Lives, &l.Pools, &l.Placements, &l.Preemptions, &l.Trials)
	codec.Uint32s(c, &l.SnapshotEntries, &l.ChunkBytes)
	index(c, &l.SnapshotBytes)
	codec.Integer(c, &l.JobAmount, math.MaxInt64)
	codec.Integer(c, &l.PoolAmount, math.MaxInt64)
	codec.Integer(c, &l.ClusterAmount, math.MaxInt64)
}

func node(c *coder, n *facts.NodeIndex) { codec.Integer(c, n, math.MaxUint32) }

// specs are the different specs of a snapshot, by their bytes: who writes numbers them as they come, who reads has
// them by number.
type specs struct {
	numbers map[string]uint64
	bytes   []string
	read    []*terms.Job
	// rules are those of the facts.
	rules rules.Number
}

// table codes the specs themselves, each with the version of its encoding.
func (s *specs) table(c *coder) {
	if c.Writing {
		codec.List(c, &s.bytes, rowsMax, func(c *coder, one *string) { c.Data = append(c.Data, *one...) })
		return
	}
	codec.List(c, &s.read, rowsMax, func(c *coder, one **terms.Job) {
		*one = new(terms.Job)
		coded(c, *one)
	})
}

// coded codes a spec, in the lowest version that has all of it.
func coded(c *coder, spec *terms.Job) {
	version := uint16(0)
	if c.Writing {
		version = spec.Version()
	}
	codec.Integer(c, &version, math.MaxUint16)
	if _, known := terms.VersionSince(version); !known && c.Failure == "" {
		c.Fail("holds a job in version %d, which this program does not know", version)
	}
	c.Version = version
	spec.Code(c)
	c.Version = codec.Newest
}

// spec codes which spec a version of a job has.
func (s *specs) spec(c *coder, v *facts.JobVersion) {
	number := uint64(0)
	if c.Writing {
		one := codec.Writer()
		coded(one, v.Spec)
		known := false
		if number, known = s.numbers[string(one.Data)]; !known {
			number = uint64(len(s.bytes))
			s.numbers[string(one.Data)], s.bytes = number, append(s.bytes, string(one.Data))
		}
	}
	c.Number(&number, uint64(max(len(s.bytes), len(s.read))))
	switch {
	case c.Writing || c.Failure != "":
	case number >= uint64(len(s.read)):
		c.Fail("names spec %d of %d", number, len(s.read))
	default:
		v.Spec = s.read[number]
		v.SpecHash, v.SpecBytes = fingerprint.Measured(v.Spec)
	}
}

// all codes what comes after the head and the specs.
func (s *specs) all(c *coder, f *facts.All) {
	s.rules = f.Rules
	c.Version = terms.PoolVersionFirst
	switch {
	case f.Rules >= rules.HostPaths:
		c.Version = terms.PoolVersion
	case f.Rules >= rules.Volumes:
		c.Version = terms.PoolVersionSpecBytes
	case f.Rules >= rules.Authorities:
		c.Version = terms.PoolVersionUsers
	case f.Rules >= rules.Registry:
		c.Version = terms.PoolVersionRoles
	}
	f.Pools.Code(c)
	c.Version = codec.Newest
	f.Ring.Code(c)
	if f.Rules < rules.Volumes {
		c.Version = terms.OfferVersionFirst
	}
	codec.List(c, &f.Nodes, rowsMax, nodeRow)
	c.Version = codec.Newest
	codec.List(c, &f.Jobs, rowsMax, s.job)
	codec.List(c, &f.Requests, rowsMax, request)
	codec.List(c, &f.SoftSince, rowsMax, func(c *coder, row *facts.Row[facts.TaskKey, terms.Time]) {
		index(c, &row.Key)
		times(c, &row.Value)
	})
	codec.List(c, &f.Nominations, rowsMax, nomination)
	codec.List(c, &f.Starving, rowsMax, func(c *coder, row *facts.Row[tree.ID, facts.Starving]) {
		codec.Integer(c, &row.Key, math.MaxUint32)
		times(c, &row.Value.At)
		codec.Flags(c, &row.Value.Failed)
	})
	codec.List(c, &f.Shared, rowsMax, func(c *coder, row *facts.Row[tree.ID, uint64]) {
		codec.Integer(c, &row.Key, math.MaxUint32)
		index(c, &row.Value)
	})
	if f.Rules < rules.Registry {
		return
	}
	known := f.Registry != nil
	codec.Flags(c, &known)
	if known && !c.Writing {
		f.Registry = new(registry.Registry)
	}
	if known {
		f.Registry.Code(c, f.Rules)
	}
	if f.Rules >= rules.Volumes {
		codec.List(c, &f.Volumes, rowsMax, func(c *coder, row *facts.Row[terms.VolumeSet, facts.Volumes]) {
			if volumes(c, row); f.Rules >= rules.KeptVolumes {
				times(c, &row.Value.Until)
			}
		})
	}
}

func volumes(c *coder, row *facts.Row[terms.VolumeSet, facts.Volumes]) {
	text(c, &row.Key.Slot.Job)
	text(c, &row.Key.Slot.Task)
	codec.Uint32s(c, &row.Key.Slot.Index)
	codec.Integer(c, &row.Key.Job, math.MaxUint32)
	codec.Integer(c, &row.Value.User, math.MaxUint32)
	node(c, &row.Value.Node)
	codec.Flags(c, &row.Value.Empty)
	index(c, &row.Value.Order)
	times(c, &row.Value.Since)
}

func request(c *coder, row *facts.Row[string, facts.Request]) {
	text(c, &row.Key)
	index(c, &row.Value.Index)
	codec.Integer(c, &row.Value.Refusal.Code, uint64(facts.Unavailable))
	text(c, &row.Value.Refusal.Reason)
	text(c, &row.Value.Job)
}

func nomination(c *coder, row *facts.Row[terms.JobID, facts.Nomination]) {
	codec.Integer(c, &row.Key, math.MaxUint32)
	codec.Flags(c, &row.Value.Backfill)
	codec.List(c, &row.Value.Seats, rowsMax, func(c *coder, seat *facts.NominatedSeat) {
		task := uint64(seat.Task)
		c.Number(&task, math.MaxUint16)
		seat.Task = int(task)
		node(c, &seat.Node)
		codec.Uint32s(c, &seat.Count)
		for k := range seat.Need {
			codec.Integer(c, &seat.Need[k], math.MaxInt64)
		}
	})
	codec.List(c, &row.Value.Leaving, rowsMax, slotRef)
}

func slotRef(c *coder, r *facts.SlotRef) {
	codec.Integer(c, &r.Job, math.MaxUint32)
	codec.Uint32s(c, &r.Index)
	codec.Integer(c, &r.Task, math.MaxUint16)
	codec.Integer(c, &r.Seat, uint64(facts.SeatCount)-1)
}

func nodeRow(c *coder, n *facts.Node) {
	text(c, &n.Name)
	text(c, &n.Peer)
	codec.Uint32s(c, &n.Departed)
	codec.List(c, &n.Sessions, rowsMax, func(c *coder, s *facts.Session) {
		codec.Uint32s(c, &s.Incarnation)
		index(c, &s.Seq)
	})
	offers := n.Offer != nil
	if codec.Flags(c, &offers); offers {
		if !c.Writing {
			n.Offer = new(terms.Offer)
		}
		n.Offer.Code(c)
	}
	codec.Flags(c, &n.Drain.On)
	times(c, &n.Drain.Deadline)
	codec.List(c, &n.Ports, rowsMax, func(c *coder, u *facts.PortUse) {
		codec.Integer(c, &u.Number, math.MaxUint16)
		text(c, &u.Name)
		slotRef(c, &u.Slot)
	})
	codec.List(c, &n.Devices, rowsMax, func(c *coder, u *facts.DeviceUse) {
		text(c, &u.Kind)
		codec.Uint32s(c, &u.Number)
		codec.Integer(c, &u.Amount, math.MaxUint32)
		slotRef(c, &u.Slot)
	})
	codec.Integer(c, &n.PortNext, math.MaxUint16)
}
