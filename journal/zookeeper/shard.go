package zookeeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-zookeeper/zk"

	"starling/journal"
)

// shard is a part of the journal. Once sealed it takes no record any more.
type shard struct {
	number uint64
	// Base is the index before that of its first record.
	Base   journal.Index `json:"base"`
	Sealed bool          `json:"sealed,omitempty"`
	// To says where the journal goes on, if this is the last shard of one that was sealed as a whole.
	To string `json:"to,omitempty"`
}

// The versions of a shard's node.
const (
	openVersion   = 0
	sealedVersion = 1
)

func (s *shard) encode() []byte {
	data, _ := json.Marshal(s) // numbers and truths always can be
	return data
}

func decodeShard(number uint64, data []byte) (shard, error) {
	s := shard{number: number}
	if err := json.Unmarshal(data, &s); err != nil {
		return shard{}, fmt.Errorf("shard %d says %q: %w: %w", number, data, err, errDamaged)
	}
	return s, nil
}

// Append implements journal.Journal.
func (j *Journal) Append(ctx context.Context, r journal.Record) error {
	if err := r.Check(); err != nil {
		return err
	}
	if over := j.over(ctx); over != nil {
		return over
	}
	during, done := j.during(ctx, attemptMax)
	defer done()
	if err := j.append(during, newStored(r)); err != nil {
		return j.failed(ctx, fmt.Sprintf("append %s/%d", r.Writer, r.Seq), err)
	}
	return nil
}

func (j *Journal) append(ctx context.Context, s stored) error {
	known := j.known()
	for {
		sequence, err := j.put(ctx, &s, known.number)
		switch {
		case errors.Is(err, zk.ErrNodeExists):
			return nil // a resend is as good as the first
		case errors.Is(err, zk.ErrBadVersion):
		case errors.Is(err, zk.ErrNoNode): // of this shard or this writer
			if _, err := j.make(ctx, j.paths.writer(s.Writer)); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			if sequence+1 >= j.shardRecords {
				// It is appended, whatever becomes of this: then the next one tries.
				_ = j.seal(ctx, known)
			}
			return nil
		}
		if known, err = j.present(ctx); err != nil {
			return err
		}
		if known.To != "" {
			return j.isAppended(ctx, &s)
		}
	}
}

// isAppended returns nil for a resend into a journal that is sealed, as a whole.
func (j *Journal) isAppended(ctx context.Context, s *stored) error {
	there, err := ask(ctx, j, func(c *zk.Conn) (bool, error) {
		there, _, err := c.Exists(j.paths.appended(s.Writer, s.Seq))
		return there, err
	})
	if err == nil && !there {
		err = journal.ErrSealed
	}
	return err
}

// put appends the record to a shard, and returns its sequence number there.
func (j *Journal) put(ctx context.Context, s *stored, shard uint64) (sequence int, err error) {
	if err := j.putParts(ctx, s, shard); err != nil {
		return 0, err
	}
	done, err := j.multi(ctx,
		&zk.CheckVersionRequest{Path: j.paths.shard(shard), Version: openVersion},
		j.create(j.paths.appended(s.Writer, s.Seq), nil, zk.FlagPersistent),
		j.create(j.paths.records(shard)+"/"+recordPrefix, s.encode(), zk.FlagSequence))
	if err != nil {
		return 0, err
	}
	return sequenceOf(done[2].String)
}

// make creates a node unless it is there, and tells whether it was not.
func (j *Journal) make(ctx context.Context, path string) (bool, error) {
	_, err := ask(ctx, j, func(c *zk.Conn) (string, error) { return c.Create(path, nil, zk.FlagPersistent, j.acl) })
	if errors.Is(err, zk.ErrNodeExists) {
		return false, nil
	}
	return err == nil, err
}

// known returns the last shard that is known here.
func (j *Journal) known() shard {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.shard
}

// present returns the shard that is not sealed, or the last of a journal that is, and remembers it.
func (j *Journal) present(ctx context.Context) (shard, error) {
	s, err := j.readShard(ctx, j.known().number)
	for {
		if errors.Is(err, zk.ErrNoNode) { // there is none yet, or it was trimmed
			s, err = j.lastShard(ctx)
		}
		for err == nil && s.Sealed && s.To == "" {
			s, err = j.after(ctx, s)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return shard{}, err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if s.number >= j.shard.number {
		j.shard = s
	}
	return s, nil
}

func (j *Journal) readShard(ctx context.Context, number uint64) (shard, error) {
	return ask(ctx, j, func(c *zk.Conn) (shard, error) { return j.shardNode(c, number) })
}

func (j *Journal) shardNode(c *zk.Conn, number uint64) (shard, error) {
	data, _, err := c.Get(j.paths.shard(number))
	if err != nil {
		return shard{}, err
	}
	return decodeShard(number, data)
}

// children lists the nodes below one, in the order of their names.
func (j *Journal) children(ctx context.Context, path string) ([]string, error) {
	names, err := current(ctx, j, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(path)
		return names, err
	})
	slices.Sort(names)
	return names, err
}

// shardNumbers lists the shards in their order.
func (j *Journal) shardNumbers(ctx context.Context) ([]uint64, error) {
	names, err := j.children(ctx, j.paths.shards)
	if err != nil {
		return nil, err
	}
	numbers := make([]uint64, len(names))
	for i, name := range names {
		if numbers[i], err = strconv.ParseUint(name, 10, 64); err != nil {
			return nil, fmt.Errorf("node %q is not a shard: %w", name, errDamaged)
		}
	}
	return numbers, nil
}

// lastShard returns the last shard, and makes the first if there never was one.
func (j *Journal) lastShard(ctx context.Context) (shard, error) {
	numbers, err := j.shardNumbers(ctx)
	if err != nil {
		return shard{}, err
	}
	if len(numbers) > 0 {
		return j.readShard(ctx, numbers[len(numbers)-1])
	}
	// The version of their parent tells that there was a first one, whatever was trimmed since.
	never := &zk.SetDataRequest{Path: j.paths.shards, Version: 0}
	if _, err := j.multi(ctx, append(j.createShard(shard{}), never)...); !isRace(err) {
		return shard{}, err
	}
	return shard{}, zk.ErrNoNode
}

// isRace tells whether something else was done first.
func isRace(err error) bool {
	return errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode)
}

func (j *Journal) createShard(s shard) []any {
	return []any{
		j.create(j.paths.shard(s.number), s.encode(), zk.FlagPersistent),
		j.create(j.paths.records(s.number), nil, zk.FlagPersistent),
		j.create(j.paths.parts(s.number), nil, zk.FlagPersistent),
	}
}

// seal lets a shard take no more records. It was sealed by another if its version has changed.
func (j *Journal) seal(ctx context.Context, s shard) error {
	s.Sealed = true
	_, err := ask(ctx, j, func(c *zk.Conn) (*zk.Stat, error) {
		return c.Set(j.paths.shard(s.number), s.encode(), openVersion)
	})
	if errors.Is(err, zk.ErrBadVersion) {
		return nil
	}
	return err
}

// Seal implements journal.Journal. The shard that is not sealed becomes the last one.
func (j *Journal) Seal(ctx context.Context, to string) (journal.Seal, error) {
	if over := j.over(ctx); over != nil {
		return journal.Seal{}, over
	}
	during, done := j.during(ctx, attemptMax)
	defer done()
	for {
		head, last, err := j.head(during)
		switch {
		case err != nil:
			return journal.Seal{}, j.failed(ctx, "read the seal", err)
		case last.To != "":
			return journal.Seal{Index: head, To: last.To}, nil
		case to == "":
			return journal.Seal{}, nil
		}
		last.To = to
		if err := j.seal(during, last); err != nil {
			return journal.Seal{}, j.failed(ctx, "seal the journal", err)
		}
	}
}

// after returns the shard after one that is sealed, and makes it if nobody has. It returns zk.ErrNoNode if that was
// trimmed.
func (j *Journal) after(ctx context.Context, s shard) (shard, error) {
	next, err := j.readShard(ctx, s.number+1)
	if !errors.Is(err, zk.ErrNoNode) {
		return next, err
	}
	n, err := j.count(ctx, s)
	if err != nil { // another has made it, and this one may be on its way out
		if next, err := j.readShard(ctx, s.number+1); err == nil {
			return next, nil
		}
		return shard{}, err
	}
	return j.makeAfter(ctx, s, s.Base+n)
}

// makeAfter makes the shard after one that is sealed, or returns the one that another has made. Shards are trimmed in
// their order: as long as this one is there, the next was not trimmed yet.
func (j *Journal) makeAfter(ctx context.Context, s shard, base journal.Index, also ...any) (shard, error) {
	next := shard{number: s.number + 1, Base: base}
	sealed := &zk.CheckVersionRequest{Path: j.paths.shard(s.number), Version: sealedVersion}
	_, err := j.multi(ctx, append(append(j.createShard(next), sealed), also...)...)
	if !errors.Is(err, zk.ErrNodeExists) {
		return next, err
	}
	return current(ctx, j, func(c *zk.Conn) (shard, error) { return j.shardNode(c, next.number) })
}

// count returns how many records a sealed shard has.
func (j *Journal) count(ctx context.Context, s shard) (journal.Index, error) {
	return current(ctx, j, func(c *zk.Conn) (journal.Index, error) {
		_, stat, err := c.Get(j.paths.records(s.number))
		if err != nil {
			return 0, err
		}
		return journal.Index(stat.NumChildren), whole(s.number, stat)
	})
}

// whole returns an error if records of a shard were deleted.
func whole(shard uint64, records *zk.Stat) error {
	if records.Cversion != records.NumChildren {
		return fmt.Errorf("shard %d had records that are gone: %w", shard, errDamaged)
	}
	return nil
}

// Head implements journal.Journal.
func (j *Journal) Head(ctx context.Context) (journal.Index, error) {
	if over := j.over(ctx); over != nil {
		return 0, over
	}
	during, done := j.during(ctx, attemptMax)
	defer done()
	head, _, err := j.head(during)
	if err != nil {
		return 0, j.failed(ctx, "read the head", err)
	}
	return head, nil
}

// head returns the index of the last record, and the shard that takes the next.
func (j *Journal) head(ctx context.Context) (journal.Index, shard, error) {
	for {
		known, err := j.present(ctx)
		if err != nil {
			return 0, shard{}, err
		}
		count := journal.Index(0)
		s, err := current(ctx, j, func(c *zk.Conn) (shard, error) {
			// In this order: if it is not sealed then, its last record was the last of all when they were counted.
			// One that was known to end the journal before has had its last.
			_, stat, err := c.Get(j.paths.records(known.number))
			if err != nil {
				return shard{}, err
			}
			s, err := j.shardNode(c, known.number)
			if err != nil || s.Sealed && known.To == "" {
				return s, err
			}
			count = journal.Index(stat.NumChildren)
			return s, whole(known.number, stat)
		})
		switch {
		case errors.Is(err, zk.ErrNoNode): // it was trimmed
		case err != nil:
			return 0, shard{}, err
		case !s.Sealed || known.To != "":
			return s.Base + count, s, nil
		}
	}
}
