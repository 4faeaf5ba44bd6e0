package zookeeper

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-zookeeper/zk"

	"starling/journal"
)

// cut is what the ensemble keeps about the snapshot that stands. The zero value is no snapshot.
type cut struct {
	Index  journal.Index `json:"index"`
	Chunks uint32        `json:"chunks"`
	Sum    string        `json:"sum"` // in hexadecimal digits
	// version is that of the node that says so.
	version int32
}

// trimmed returns the snapshot that stands.
func (j *Journal) trimmed(ctx context.Context) (cut, error) {
	return synced(ctx, j, func(c *zk.Conn) (cut, error) {
		data, stat, err := c.Get(j.paths.snapshot)
		if err != nil {
			return cut{}, err
		}
		now := cut{version: stat.Version}
		if len(data) > 0 {
			err = json.Unmarshal(data, &now)
		}
		if err != nil {
			return cut{}, fmt.Errorf("node %s says %q: %w: %w", j.paths.snapshot, data, err, errDamaged)
		}
		return now, nil
	})
}

// PutChunk implements journal.Journal.
func (j *Journal) PutChunk(ctx context.Context, s journal.Snapshot, number uint32, chunk []byte) error {
	if err := journal.CheckChunk(s, number, chunk); err != nil {
		return err
	}
	if over := j.over(ctx); over != nil {
		return over
	}
	during, done := j.during(ctx, attemptMax)
	defer done()
	if err := j.putChunk(during, s, number, chunk); err != nil {
		return j.failed(ctx, fmt.Sprintf("put chunk %d of the snapshot at %d", number, s.Index), err)
	}
	return nil
}

func (j *Journal) putChunk(ctx context.Context, s journal.Snapshot, number uint32, chunk []byte) error {
	path := j.paths.chunk(s, number)
	for {
		_, err := ask(ctx, j, func(c *zk.Conn) (string, error) {
			return c.Create(path, chunk, zk.FlagPersistent, j.acl)
		})
		switch {
		case errors.Is(err, zk.ErrNodeExists):
			_, err = ask(ctx, j, func(c *zk.Conn) (*zk.Stat, error) { return c.Set(path, chunk, -1) })
			if !errors.Is(err, zk.ErrNoNode) {
				return err
			}
		case !errors.Is(err, zk.ErrNoNode):
			return err
		}
		if _, err := j.make(ctx, j.paths.chunks(s)); err != nil {
			return err
		}
	}
}

// Chunk implements journal.Journal.
func (j *Journal) Chunk(ctx context.Context, s journal.Snapshot, number uint32) ([]byte, error) {
	if over := j.over(ctx); over != nil {
		return nil, over
	}
	during, done := j.during(ctx, attemptMax)
	defer done()
	chunk, err := synced(during, j, func(c *zk.Conn) ([]byte, error) {
		chunk, _, err := c.Get(j.paths.chunk(s, number))
		return chunk, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		err = journal.ErrNoChunk
	}
	if err != nil {
		return nil, j.failed(ctx, fmt.Sprintf("read chunk %d of the snapshot at %d", number, s.Index), err)
	}
	return chunk, nil
}

// Snapshot implements journal.Journal.
func (j *Journal) Snapshot(ctx context.Context) (journal.Snapshot, error) {
	if over := j.over(ctx); over != nil {
		return journal.Snapshot{}, over
	}
	during, done := j.during(ctx, attemptMax)
	defer done()
	now, err := j.trimmed(during)
	if err != nil {
		return journal.Snapshot{}, j.failed(ctx, "read the snapshot", err)
	}
	s := journal.Snapshot{Index: now.Index, Chunks: now.Chunks}
	if now.Index == 0 {
		return s, nil
	}
	sum, err := hex.DecodeString(now.Sum)
	if err != nil || len(sum) != len(s.Sum) {
		return s, j.failed(ctx, "read the snapshot", fmt.Errorf("its sum is %q: %w", now.Sum, errDamaged))
	}
	copy(s.Sum[:], sum)
	return s, nil
}

// Trim implements journal.Journal.
func (j *Journal) Trim(ctx context.Context, s journal.Snapshot) error {
	if over := j.over(ctx); over != nil {
		return over
	}
	during, done := j.during(ctx, 0)
	defer done()
	if err := j.trim(during, s); err != nil {
		return j.failed(ctx, fmt.Sprintf("trim up to %d", s.Index), err)
	}
	return nil
}

func (j *Journal) trim(ctx context.Context, s journal.Snapshot) error {
	for {
		now, err := j.trimmed(ctx)
		if err != nil {
			return err
		}
		if s.Index > now.Index {
			err := j.stand(ctx, s, now)
			if isRace(err) { // with another cut
				continue
			}
			if err != nil {
				return err
			}
			now.Index = s.Index
		}
		if err := j.dropShards(ctx, now.Index); err != nil {
			return err
		}
		return j.dropChunks(ctx, now.Index)
	}
}

// stand lets a snapshot stand for records that stand by themselves until now.
func (j *Journal) stand(ctx context.Context, s journal.Snapshot, before cut) error {
	head, last, err := j.head(ctx)
	if err != nil {
		return err
	}
	if head > 0 && s.Index > head {
		return fmt.Errorf("it is of record %d, the last is %d: %w", s.Index, head, journal.ErrAhead)
	}
	if err := j.haveChunks(ctx, s); err != nil {
		return err
	}
	data, err := json.Marshal(cut{Index: s.Index, Chunks: s.Chunks, Sum: hex.EncodeToString(s.Sum[:])})
	if err != nil {
		return err
	}
	set := &zk.SetDataRequest{Path: j.paths.snapshot, Data: data, Version: before.version}
	if head > 0 {
		_, err := j.multi(ctx, set)
		return err
	}
	if last.To != "" {
		return journal.ErrSealed
	}
	// The first record comes behind the snapshot, so into a shard that begins there.
	if err := j.seal(ctx, last); err != nil {
		return err
	}
	if n, err := j.count(ctx, last); err != nil || n > 0 {
		return errors.Join(err, zk.ErrBadVersion) // it has its first record meanwhile
	}
	next, err := j.makeAfter(ctx, last, s.Index, set)
	if err == nil && next.Base != s.Index {
		return zk.ErrBadVersion
	}
	return err
}

// haveChunks returns journal.ErrNoChunk if a chunk of a snapshot is missing.
func (j *Journal) haveChunks(ctx context.Context, s journal.Snapshot) error {
	names, err := synced(ctx, j, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(j.paths.chunks(s))
		return names, err
	})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	have := uint32(0)
	for _, name := range names {
		if number, err := strconv.ParseUint(name, 16, 32); err == nil && uint32(number) < s.Chunks {
			have++
		}
	}
	if have != s.Chunks {
		return fmt.Errorf("%d of %d chunks are there: %w", have, s.Chunks, journal.ErrNoChunk)
	}
	return nil
}

// Cluster implements journal.Journal.
func (j *Journal) Cluster(ctx context.Context, proposed string) (string, error) {
	if over := j.over(ctx); over != nil {
		return "", over
	}
	during, done := j.during(ctx, attemptMax)
	defer done()
	if proposed != "" {
		_, err := ask(during, j, func(c *zk.Conn) (string, error) {
			return c.Create(j.paths.cluster, []byte(proposed), zk.FlagPersistent, j.acl)
		})
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return "", j.failed(ctx, "keep the cluster's id", err)
		}
	}
	id, err := synced(during, j, func(c *zk.Conn) ([]byte, error) {
		data, _, err := c.Get(j.paths.cluster)
		return data, err
	})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", j.failed(ctx, "read the cluster's id", err)
	}
	return string(id), nil
}
