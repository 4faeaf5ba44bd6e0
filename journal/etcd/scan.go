package etcd

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"starling/journal"
)

const (
	// keysPerPage bounds one answer of keys without values, at about 80 bytes each. For every page the engine counts
	// all keys that remain, hence few and large ones.
	keysPerPage = 1 << 20
	// fetchRecordsMax bounds the records fetched at once: an engine's default for the operations of a transaction.
	fetchRecordsMax = 128
	// fetchBytes is what one fetch aims at, judging from the one before.
	fetchBytes = 4 << 20
)

// entry is where a record lies in the engine.
type entry struct {
	revision int64
	key      string
}

// scan delivers all records that are there now and were not delivered.
//
// It lists all keys, because the engine has no index by revision that outlives a compaction, but fetches only what
// is to be delivered. Records are only ever added, so it need not read at one revision: what the head counted when
// the scan began is found by every later read.
func (r *reader) scan(ctx context.Context) error {
	head, err := r.journal.head(ctx)
	if err != nil {
		return err
	}
	if head.index < r.last.index {
		return fmt.Errorf("%d records were read, it has %d: %w", r.last.index, head.index, errDamaged)
	}
	if head.index == 0 {
		r.last = head
		return nil
	}
	entries, err := r.list(ctx, head)
	if err != nil {
		return err
	}
	if r.last.index > 0 && entries[r.last.index-1].revision != r.last.revision {
		return fmt.Errorf("record %d has moved: %w", r.last.index, errDamaged)
	}
	next := max(r.last.index+1, r.from)
	if next > head.index {
		return r.pass(nil, head)
	}
	return r.fetch(ctx, entries[next-1:], next)
}

// list returns where all records up to head lie, in their order: entry i is that of index i+1.
func (r *reader) list(ctx context.Context, head position) ([]entry, error) {
	entries := make([]entry, 0, head.index)
	end := clientv3.GetPrefixRangeEnd(r.journal.keys.records)
	for key := r.journal.keys.records; ; {
		page, err := r.journal.client.Get(ctx, key,
			clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(keysPerPage))
		if err != nil {
			return nil, err
		}
		for _, kv := range page.Kvs {
			if kv.ModRevision <= head.revision {
				entries = append(entries, entry{kv.ModRevision, string(kv.Key)})
			}
		}
		if !page.More {
			break
		}
		key = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
	if len(entries) != int(head.index) {
		return nil, fmt.Errorf("it counted %d records and has %d: %w", head.index, len(entries), errDamaged)
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.revision, b.revision) })
	return entries, nil
}

// fetch reads the records of entries, the first of which has index next, and passes them on.
func (r *reader) fetch(ctx context.Context, entries []entry, next journal.Index) error {
	n := min(8, len(entries))
	for len(entries) > 0 {
		records, bytes, err := r.read(ctx, entries[:n], next)
		if err != nil {
			return err
		}
		next += journal.Index(n)
		if err := r.pass(records, position{next - 1, entries[n-1].revision}); err != nil {
			return err
		}
		entries = entries[n:]
		perRecord := bytes/n + 1
		n = min(max(fetchBytes/perRecord, 1), fetchRecordsMax, len(entries))
	}
	return nil
}

// read returns the records of entries, the first of which has index next, and the bytes of their payloads.
func (r *reader) read(ctx context.Context, entries []entry, next journal.Index) ([]journal.Record, int, error) {
	reads := make([]clientv3.Op, len(entries))
	for i, e := range entries {
		reads[i] = clientv3.OpGet(e.key)
	}
	got, err := r.journal.client.Txn(ctx).Then(reads...).Commit()
	if err != nil {
		return nil, 0, err
	}
	records, bytes := make([]journal.Record, len(entries)), 0
	for i, e := range entries {
		kvs := got.Responses[i].GetResponseRange().Kvs
		if len(kvs) != 1 || kvs[0].ModRevision != e.revision {
			return nil, 0, fmt.Errorf("record %s is gone or changed: %w", e.key, errDamaged)
		}
		if records[i], err = r.record(kvs[0].Key, kvs[0].Value, next+journal.Index(i)); err != nil {
			return nil, 0, err
		}
		bytes += len(kvs[0].Value)
	}
	return records, bytes, nil
}
