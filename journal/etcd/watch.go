package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"starling/journal"
)

const (
	// queueMax and queueBytesMax bound what waits for a slow deliver. Beyond it the watch is dropped, and taken up
	// again where the reader is by then.
	queueMax      = 1024
	queueBytesMax = 64 << 20
	// behindMin is how many revisions a reader may at least be behind before it reads rather than watches: an engine
	// serves a watch that fell behind at 10,000 a second, however fast the machine, and a writer may be faster.
	behindMin = 20_000
)

// watch delivers what is appended after the last record, until the watch ends or cannot be trusted any more.
func (r *reader) watch(ctx context.Context) error {
	// Since the last watch the engine may have been given other data. A stream ends with the engine that it began with.
	switch _, err := r.lookAtHead(ctx); {
	case errors.Is(err, errDamaged) || errors.Is(err, errRescan):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", errInterrupted, err)
	}
	f := r.journal.watch(ctx, r.journal.keys.journal,
		clientv3.WithPrefix(), clientv3.WithRev(r.last.revision+1), clientv3.WithCreatedNotify(), clientv3.WithFilterDelete())
	defer f.close()
	// Until the engine has answered there is nothing to compare with the head: then the next attempt, at another
	// member, must come soon.
	check := time.NewTicker(readMax)
	defer check.Stop()
	answered := false
	var seen, before position // the head and the last record at the check before
	for {
		select {
		case answer, open := <-f.answers:
			if !open {
				return errInterrupted
			}
			if !answered {
				answered = true
				check.Reset(r.journal.checkEvery)
			}
			if err := r.take(f.dequeued(answer)); err != nil {
				return err
			}
		case <-check.C:
			if !answered {
				return fmt.Errorf("no answer: %w", errInterrupted)
			}
			if seen.index > r.last.index && r.last == before {
				return fmt.Errorf("nothing came in a while though the head moved: %w", errInterrupted)
			}
			switch head, err := r.lookAtHead(ctx); {
			case errors.Is(err, errDamaged) || errors.Is(err, errRescan):
				return err
			case err == nil:
				seen, before = head, r.last
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lookAtHead returns the head, which cannot lie before what was read. It looks whether the last record that was read is
// still what it was.
func (r *reader) lookAtHead(ctx context.Context) (position, error) {
	during, done := context.WithTimeout(ctx, readMax)
	defer done()
	head, trimmed, err := r.journal.ends(during)
	if err == nil {
		err = r.goesBack(head)
	}
	if err != nil || r.lastKey == "" || r.last.index <= trimmed.Index {
		return head, err
	}
	got, err := r.journal.client.Get(during, r.lastKey, clientv3.WithKeysOnly())
	if err == nil && (len(got.Kvs) == 0 || got.Kvs[0].ModRevision != r.last.revision) {
		err = r.missing(during, "record %d is another than was read", r.last.index)
	}
	return head, err
}

// goesBack is an error if the head lies before what was read: the engine's data is older than it was.
func (r *reader) goesBack(head position) error {
	switch {
	case head.index < r.last.index:
		return fmt.Errorf("%d records were read, it has %d: %w", r.last.index, head.index, errDamaged)
	case head.revision < r.last.revision:
		return fmt.Errorf("record %d was read at revision %d, the last now is at %d: %w", r.last.index, r.last.revision,
			head.revision, errDamaged)
	}
	return nil
}

// take passes on the records of one answer of the watch.
func (r *reader) take(answer clientv3.WatchResponse) error {
	if answer.CompactRevision != 0 {
		return fmt.Errorf("compacted at revision %d: %w", answer.CompactRevision, errRescan)
	}
	if err := answer.Err(); err != nil {
		return fmt.Errorf("%w: %w", errInterrupted, err)
	}
	batch, last, err := r.batch(answer.Events)
	if err != nil || last == r.last {
		return err
	}
	if err := r.pass(batch, last); err != nil {
		return err
	}
	// To list costs something for every record, so it must be for more than a few.
	behind := answer.Header.GetRevision() - last.revision
	if behind > behindMin && behind > int64(last.index)/10 {
		return fmt.Errorf("%d revisions behind: %w", behind, errRescan)
	}
	return nil
}

// batch returns the records that events show, and the position of the last of them.
func (r *reader) batch(events []*clientv3.Event) (batch []journal.Record, last position, err error) {
	last = r.last
	var appended *mvccpb.KeyValue // the record at the revision of the event, once that was seen
	for _, event := range events {
		kv := event.Kv
		if kv.ModRevision <= last.revision {
			continue
		}
		switch string(kv.Key) {
		case r.journal.keys.snapshot:
			if trimmed, err := decodeCut(kv); err != nil || trimmed.Index > last.index {
				return nil, last, fmt.Errorf("what follows was trimmed: %w", errRescan)
			}
			continue
		case r.journal.keys.seal:
			return nil, last, fmt.Errorf("the journal was sealed: %w", errRescan)
		case r.journal.keys.head:
		default:
			appended = kv
			continue
		}
		// The head was put as often as there are records until this one.
		index := r.trimmed.Base + journal.Index(kv.Version)
		if appended == nil || appended.ModRevision != kv.ModRevision || index != last.index+1 {
			return nil, last, fmt.Errorf("index %d after %d: %w", index, last.index, errRescan)
		}
		record, err := r.record(appended.Key, appended.Value, index)
		if err != nil {
			return nil, last, err
		}
		batch = append(batch, record)
		last = position{index, kv.ModRevision}
	}
	return batch, last, nil
}

// feed stands between a watch and a reader that may be slow: etcd's client would keep any amount of events for it.
type feed struct {
	answers chan clientv3.WatchResponse // closed when the watch has ended or was dropped
	bytes   atomic.Int64                // in answers
	cancel  context.CancelFunc
}

// ofOneStream is known of a watch whose stream was opened.
type ofOneStream struct{}

// openOnce keeps etcd's client from opening a second stream for a watch, which it does for one that ended with its
// engine: what comes then may be of other data.
func openOnce() grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(ctx context.Context, description *grpc.StreamDesc, to *grpc.ClientConn,
		method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
		if opened, ok := ctx.Value(ofOneStream{}).(*atomic.Bool); ok && opened.Swap(true) {
			return nil, status.Error(codes.Aborted, "the stream of the watch has ended")
		}
		return open(ctx, description, to, method, options...)
	})
}

// watch begins a watch, and returns before the engine has answered. It runs on a stream of its own: etcd's client
// would else put all watches on one, and so the next watch on the very stream that fell silent.
func (j *Journal) watch(ctx context.Context, key string, options ...clientv3.OpOption) *feed {
	ctx = context.WithValue(ctx, ofOneStream{}, new(atomic.Bool))
	ctx = metadata.AppendToOutgoingContext(clientv3.WithRequireLeader(ctx),
		"starling-watch", strconv.FormatInt(j.watches.Add(1), 10))
	ctx, cancel := context.WithCancel(ctx)
	f := &feed{answers: make(chan clientv3.WatchResponse, queueMax), cancel: cancel}
	go func() {
		defer close(f.answers)
		f.pump(j.client.Watch(ctx, key, options...))
	}()
	return f
}

// pump moves answers until the watch ends, or drops it when too much waits.
func (f *feed) pump(watch clientv3.WatchChan) {
	for answer := range watch {
		if f.bytes.Add(size(answer)) > queueBytesMax && len(f.answers) > 0 {
			break
		}
		select {
		case f.answers <- answer:
			continue
		default:
		}
		break
	}
	// The client closes a watch that was cancelled; until then somebody must take what it still sends.
	f.cancel()
	for range watch {
	}
}

// dequeued returns answer and takes it off what waits.
func (f *feed) dequeued(answer clientv3.WatchResponse) clientv3.WatchResponse {
	f.bytes.Add(-size(answer))
	return answer
}

// close ends the watch and waits until nothing of it runs any more.
func (f *feed) close() {
	f.cancel()
	for range f.answers {
	}
}

// size returns about how many bytes answer holds.
func size(answer clientv3.WatchResponse) int64 {
	const perEvent = 256
	bytes := int64(0)
	for _, e := range answer.Events {
		bytes += int64(len(e.Kv.Value)) + perEvent
	}
	return bytes
}
