package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"starling/journal"
)

// deletesMax bounds the records deleted in one transaction.
const deletesMax = 64

// dropShards deletes the shards with nothing but records up to an index, in their order. The one that takes records is
// sealed, if it has such records, so that the next cut deletes it.
func (j *Journal) dropShards(ctx context.Context, upTo journal.Index) error {
	head, last, err := j.head(ctx)
	if err != nil {
		return err
	}
	if last.To == "" && last.Base < min(upTo, head) {
		if err := j.seal(ctx, last); err != nil {
			return err
		}
		if _, err := j.present(ctx); err != nil {
			return err
		}
	}
	numbers, err := j.shardNumbers(ctx)
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(numbers); i++ {
		next, err := j.readShard(ctx, numbers[i+1])
		if err == nil && next.Base > upTo {
			return nil
		}
		if err == nil {
			err = j.dropShard(ctx, numbers[i])
		}
		switch {
		case errors.Is(err, zk.ErrNotEmpty): // a part came late, or another cut is at work: the next one does it
			return nil
		case err != nil && !errors.Is(err, zk.ErrNoNode): // another cut was faster
			return err
		}
	}
	return nil
}

// dropShard deletes a shard and all that belongs to it.
func (j *Journal) dropShard(ctx context.Context, number uint64) error {
	names, err := j.children(ctx, j.paths.records(number))
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	writers := make(map[string]bool)
	for at := 0; at < len(names); at += deletesMax {
		if err := j.dropRecords(ctx, number, names[at:min(at+deletesMax, len(names))], writers); err != nil {
			return err
		}
	}
	for writer := range writers { // unless it has records in later shards
		if err := j.drop(ctx, j.paths.writer(writer)); err != nil && !errors.Is(err, zk.ErrNotEmpty) {
			return err
		}
	}
	if err := j.dropWith(ctx, j.paths.parts(number)); err != nil {
		return err
	}
	if err := j.drop(ctx, j.paths.records(number)); err != nil {
		return err
	}
	return j.drop(ctx, j.paths.shard(number))
}

// dropRecords deletes records, each together with what tells that it was appended, and notes their writers.
func (j *Journal) dropRecords(ctx context.Context, shard uint64, names []string, writers map[string]bool) error {
	records, err := all(ctx, j, len(names), func(c *zk.Conn, i int) (stored, error) {
		data, _, err := c.Get(j.paths.records(shard) + "/" + names[i])
		if errors.Is(err, zk.ErrNoNode) { // by another cut
			return stored{}, nil
		}
		if err != nil {
			return stored{}, err
		}
		return decodeStored(data)
	})
	if err != nil {
		return err
	}
	var pairs []any
	for i, r := range records {
		if r.Writer != "" {
			writers[r.Writer] = true
			pairs = append(pairs, &zk.DeleteRequest{Path: j.paths.appended(r.Writer, r.Seq), Version: -1},
				&zk.DeleteRequest{Path: j.paths.records(shard) + "/" + names[i], Version: -1})
		}
	}
	if _, err := j.multi(ctx, pairs...); !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	for ; len(pairs) > 0; pairs = pairs[2:] {
		_, err := j.multi(ctx, pairs[:2]...)
		if errors.Is(err, zk.ErrNoNode) {
			// If there is something at the place of the first now, it is of a resend, and stays.
			err = j.drop(ctx, pairs[1].(*zk.DeleteRequest).Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drop deletes a node if it is there.
func (j *Journal) drop(ctx context.Context, path string) error {
	_, err := ask(ctx, j, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(path, -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// dropWith deletes a node and those below it.
func (j *Journal) dropWith(ctx context.Context, path string) error {
	names, err := j.children(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := j.drop(ctx, path+"/"+name); err != nil {
			return err
		}
	}
	return j.drop(ctx, path)
}

// dropChunks deletes what was put for snapshots before an index.
func (j *Journal) dropChunks(ctx context.Context, before journal.Index) error {
	names, err := j.children(ctx, j.paths.snapshot)
	if err != nil {
		return err
	}
	for _, name := range names {
		var at uint64
		if _, err := fmt.Sscanf(name, "%016x", &at); err != nil || journal.Index(at) >= before {
			continue
		}
		if err := j.dropWith(ctx, j.paths.snapshot+"/"+name); err != nil && !errors.Is(err, zk.ErrNotEmpty) {
			return err
		}
	}
	return nil
}
