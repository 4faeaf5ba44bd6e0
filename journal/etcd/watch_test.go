package etcd

import (
	"errors"
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"starling/journal"
)

// TestTake hands a reader answers as no engine should give them.
func TestTake(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []clientv3.WatchResponse
		want    int // records delivered
		fails   error
	}{
		{"in order", answers(append1(1, 10), append1(2, 11)), 2, nil},
		{"in one answer", answers(join(append1(1, 10), append1(2, 15))), 2, nil},
		{"split between record and head", answers(append1(1, 10)[:1], append1(1, 10)[1:]), 0, errRescan},
		{"repeated", answers(append1(1, 10), append1(1, 10), join(append1(1, 10), append1(2, 11))), 2, nil},
		{"one missing", answers(append1(1, 10), append1(3, 12)), 1, errRescan},
		{"record missing", answers(append1(1, 10), append1(2, 11)[1:]), 1, errRescan},
		{"first missing", answers(append1(2, 10)), 0, errRescan},
		{"compacted", []clientv3.WatchResponse{{CompactRevision: 7, Canceled: true}}, 0, errRescan},
		{"cancelled", []clientv3.WatchResponse{{Canceled: true}}, 0, errInterrupted},
		{"far behind", []clientv3.WatchResponse{{Events: append1(1, 10), Header: &pb.ResponseHeader{Revision: 50_000}}}, 1,
			errRescan},
		{"progress", answers(append1(1, 10), nil), 1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := 0
			r := &reader{
				journal: newJournal(newEngine(&way{}), newKeyspace(""), false), writers: make(map[string]string),
				deliver: func(batch []journal.Record) error {
					for _, record := range batch {
						got++
						if int(record.Index) != got || int(record.Seq) != got || record.Writer != "w" {
							t.Errorf("delivery %d is %+v", got, record)
						}
					}
					return nil
				},
			}
			var err error
			for _, a := range c.answers {
				if err = r.take(a); err != nil {
					break
				}
			}
			if !errors.Is(err, c.fails) {
				t.Errorf("got error %v, want %v", err, c.fails)
			}
			if got != c.want {
				t.Errorf("%d records delivered, want %d", got, c.want)
			}
		})
	}
}

// append1 is what a watch tells of the append of record n, at a revision.
func append1(n, revision int64) []*clientv3.Event {
	put := func(key string, version int64) *clientv3.Event {
		kv := &mvccpb.KeyValue{Key: []byte(key), ModRevision: revision, Version: version}
		return (*clientv3.Event)(&mvccpb.Event{Type: mvccpb.PUT, Kv: kv})
	}
	return []*clientv3.Event{put(fmt.Sprintf("journal/record/w/%016x", n), 1), put("journal/head", n)}
}

func join(events ...[]*clientv3.Event) []*clientv3.Event {
	var all []*clientv3.Event
	for _, e := range events {
		all = append(all, e...)
	}
	return all
}

func answers(events ...[]*clientv3.Event) []clientv3.WatchResponse {
	var all []clientv3.WatchResponse
	for _, e := range events {
		all = append(all, clientv3.WatchResponse{Events: e})
	}
	return all
}
