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

// scan delivers all records that are there now and were not delivered. If the journal was sealed before, those are all.
//
// It lists all keys, because the engine has no index by revision that outlives a compaction, but fetches only what
// is to be delivered. Records are added, and those up to a cut deleted after that was told, so it need not read at one
// revision: what the head counted when the scan began is found by every later read, or the cut has moved.
func (r *reader) scan(ctx context.Context) error {
	sealedTo, err := r.journal.sealedTo(ctx)
	if err != nil {
		return err
	}
	head, trimmed, err := r.journal.ends(ctx)
	if err != nil {
		return err
	}
	r.trimmed, r.sealed = trimmed, sealedTo != ""
	if err := r.goesBack(head); err != nil {
		return err
	}
	next := max(r.last.index+1, r.from, 1)
	switch {
	case next <= trimmed.Index:
		return journal.ErrTrimmed
	case head.index == trimmed.Index:
		return r.pass(nil, head)
	}
	entries, err := r.journal.list(ctx, trimmed.Revision, head.revision)
	if err != nil {
		return err
	}
	if len(entries) != int(head.index-trimmed.Index) {
		return r.missing(ctx, "it counted %d records and has %d", head.index-trimmed.Index, len(entries))
	}
	if known := r.last.index; known > trimmed.Index && !r.isLast(entries[known-trimmed.Index-1]) {
		return fmt.Errorf("record %d has moved: %w", known, errDamaged)
	}
	if next > head.index {
		return r.pass(nil, head)
	}
	return r.fetch(ctx, entries[next-trimmed.Index-1:], next)
}

// isLast tells whether the last record that was read lies there.
func (r *reader) isLast(e entry) bool {
	return e.revision == r.last.revision && (r.lastKey == "" || e.key == r.lastKey)
}

// missing tells why something is not there: it was trimmed after the scan began, which then begins anew, or it is lost.
func (r *reader) missing(ctx context.Context, format string, a ...any) error {
	switch _, now, err := r.journal.ends(ctx); {
	case err != nil:
		return err
	case now != r.trimmed:
		return errRescan
	}
	return fmt.Errorf(format+": %w", append(a, errDamaged)...)
}

// list returns where all records lie that were put after one revision and until another, in their order.
func (j *Journal) list(ctx context.Context, after, until int64) ([]entry, error) {
	var entries []entry
	end := clientv3.GetPrefixRangeEnd(j.keys.records)
	for key := j.keys.records; ; {
		page, err := j.client.Get(ctx, key, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(keysPerPage))
		if err != nil {
			return nil, err
		}
		entries = slices.Grow(entries, len(page.Kvs))
		for _, kv := range page.Kvs {
			if kv.ModRevision > after && kv.ModRevision <= until {
				entries = append(entries, entry{kv.ModRevision, string(kv.Key)})
			}
		}
		if !page.More {
			break
		}
		key = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
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
			return nil, 0, r.missing(ctx, "record %s is gone or changed", e.key)
		}
		if records[i], err = r.record(kvs[0].Key, kvs[0].Value, next+journal.Index(i)); err != nil {
			return nil, 0, err
		}
		bytes += len(kvs[0].Value)
	}
	return records, bytes, nil
}
