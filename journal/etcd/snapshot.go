package etcd

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"starling/journal"
)

// deletesMax bounds the records deleted in one transaction: an engine's default.
const deletesMax = 128

// errMoved tells that another cut was made meanwhile.
var errMoved = errors.New("the journal was trimmed by another meanwhile")

// cut is what the engine keeps about the snapshot that stands. The zero value is no snapshot.
type cut struct {
	Index  journal.Index `json:"index"`
	Chunks uint32        `json:"chunks"`
	Sum    string        `json:"sum"` // in hexadecimal digits
	// Base is the index before the journal's first record: 0, unless it began with a snapshot.
	Base journal.Index `json:"base"`
	// Revision is that at which the record at Index was put, 0 if it never was here.
	Revision int64 `json:"revision"`
	// version is the revision at which this was put.
	version int64
}

func decodeCut(kv *mvccpb.KeyValue) (cut, error) {
	c := cut{version: kv.ModRevision}
	if err := json.Unmarshal(kv.Value, &c); err != nil {
		return cut{}, fmt.Errorf("key %q says %q: %w: %w", kv.Key, kv.Value, err, errDamaged)
	}
	return c, nil
}

// PutChunk implements journal.Journal.
func (j *Journal) PutChunk(ctx context.Context, s journal.Snapshot, number uint32, chunk []byte) error {
	if err := journal.CheckChunk(s, number, chunk); err != nil {
		return err
	}
	during, done := j.during(ctx, attemptMax)
	defer done()
	if _, err := j.client.Put(during, j.keys.chunk(s, number), string(chunk)); err != nil {
		return j.failed(ctx, fmt.Sprintf("put chunk %d of the snapshot at %d", number, s.Index), err)
	}
	return nil
}

// Chunk implements journal.Journal.
func (j *Journal) Chunk(ctx context.Context, s journal.Snapshot, number uint32) ([]byte, error) {
	during, done := j.during(ctx, attemptMax)
	defer done()
	got, err := j.client.Get(during, j.keys.chunk(s, number))
	if err == nil && len(got.Kvs) == 0 {
		err = journal.ErrNoChunk
	}
	if err != nil {
		return nil, j.failed(ctx, fmt.Sprintf("read chunk %d of the snapshot at %d", number, s.Index), err)
	}
	return got.Kvs[0].Value, nil
}

// Snapshot implements journal.Journal.
func (j *Journal) Snapshot(ctx context.Context) (journal.Snapshot, error) {
	during, done := j.during(ctx, attemptMax)
	defer done()
	_, trimmed, err := j.ends(during)
	if err != nil {
		return journal.Snapshot{}, j.failed(ctx, "read the snapshot", err)
	}
	s := journal.Snapshot{Index: trimmed.Index, Chunks: trimmed.Chunks}
	if trimmed.Index == 0 {
		return s, nil
	}
	sum, err := hex.DecodeString(trimmed.Sum)
	if err != nil || len(sum) != len(s.Sum) {
		return s, j.failed(ctx, "read the snapshot", fmt.Errorf("its sum is %q: %w", trimmed.Sum, errDamaged))
	}
	copy(s.Sum[:], sum)
	return s, nil
}

// Trim implements journal.Journal.
func (j *Journal) Trim(ctx context.Context, s journal.Snapshot) error {
	during, done := j.during(ctx, 0)
	defer done()
	if err := j.trim(during, s); err != nil {
		return j.failed(ctx, fmt.Sprintf("trim up to %d", s.Index), err)
	}
	return nil
}

func (j *Journal) trim(ctx context.Context, s journal.Snapshot) error {
	head, trimmed, err := j.ends(ctx)
	if err != nil {
		return err
	}
	entries, err := j.list(ctx, 0, head.revision)
	if err != nil {
		return err
	}
	if s.Index > trimmed.Index {
		if trimmed, err = j.stand(ctx, s, trimmed, head, entries); err != nil {
			return err
		}
	}
	n := 0
	for n < len(entries) && entries[n].revision <= trimmed.Revision {
		n++
	}
	for done := 0; done < n; done += deletesMax {
		if err := j.delete(ctx, entries[done:min(n, done+deletesMax)]); err != nil {
			return err
		}
	}
	_, err = j.client.Delete(ctx, j.keys.chunks, clientv3.WithRange(j.keys.chunksFrom(trimmed.Index)))
	return err
}

// stand lets a snapshot stand for records that stand by themselves until now.
func (j *Journal) stand(ctx context.Context, s journal.Snapshot, before cut, head position, all []entry) (cut, error) {
	if head.index > 0 && s.Index > head.index {
		return cut{}, fmt.Errorf("it is of record %d, the last is %d: %w", s.Index, head.index, journal.ErrAhead)
	}
	got, err := j.client.Get(ctx, j.keys.chunk(s, 0), clientv3.WithRange(j.keys.chunk(s, s.Chunks)),
		clientv3.WithCountOnly())
	if err != nil {
		return cut{}, err
	}
	if got.Count != int64(s.Chunks) {
		return cut{}, fmt.Errorf("%d of %d chunks are there: %w", got.Count, s.Chunks, journal.ErrNoChunk)
	}
	next := cut{Index: s.Index, Chunks: s.Chunks, Sum: hex.EncodeToString(s.Sum[:]), Base: before.Base}
	same := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(j.keys.snapshot), "=", before.version)}
	if head.index == 0 {
		next.Base = s.Index
		same = append(same, clientv3.Compare(clientv3.CreateRevision(j.keys.head), "=", 0))
	} else {
		left := 0 // by a cut that was broken off
		for left < len(all) && all[left].revision <= before.Revision {
			left++
		}
		if at := left + int(s.Index-before.Index) - 1; at < len(all) && len(all)-left == int(head.index-before.Index) {
			next.Revision = all[at].revision
		} else {
			return cut{}, errMoved
		}
	}
	value, err := json.Marshal(next)
	if err != nil {
		return cut{}, err
	}
	put, err := j.client.Txn(ctx).If(same...).Then(clientv3.OpPut(j.keys.snapshot, string(value))).Commit()
	if err == nil && !put.Succeeded {
		err = errMoved
	}
	return next, err
}

// delete deletes records, except those that were put again meanwhile.
func (j *Journal) delete(ctx context.Context, entries []entry) error {
	same, deletes := make([]clientv3.Cmp, len(entries)), make([]clientv3.Op, len(entries))
	for i, e := range entries {
		same[i] = clientv3.Compare(clientv3.ModRevision(e.key), "=", e.revision)
		deletes[i] = clientv3.OpDelete(e.key)
	}
	got, err := j.client.Txn(ctx).If(same...).Then(deletes...).Commit()
	if err != nil || got.Succeeded || len(entries) == 1 {
		return err
	}
	for i := range entries {
		if err := j.delete(ctx, entries[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}
