package etcd

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"starling/journal"
)

// lookEvery is how often a watched pulse is looked at although no event of it came.
const lookEvery = time.Second

// watcher is one WatchPulse. Events of the engine only say when to look; what is there is read.
type watcher struct {
	journal *Journal
	id      string
	changed func(journal.PulseState)

	shown   bool // whether anything was told yet
	created int64
	value   string // both of the pulse that was told last; created is 0 if it did not live

	hints *feed // nil while there is no watch
}

// WatchPulse implements journal.Journal.
func (j *Journal) WatchPulse(ctx context.Context, id string, changed func(journal.PulseState)) error {
	if err := journal.CheckName(id); err != nil {
		return fmt.Errorf("watch pulse: %w", err)
	}
	during, done := j.during(ctx, 0)
	defer done()
	w := &watcher{journal: j, id: id, changed: changed}
	defer w.unwatch()
	for during.Err() == nil {
		w.look(during)
		w.wait(during)
	}
	return j.over(ctx)
}

// look reads the pulse and tells what has changed. Without an answer it tells nothing: silence is not death.
func (w *watcher) look(ctx context.Context) {
	key := w.journal.keys.pulse(w.id)
	got, err := hedged(ctx, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return w.journal.client.Get(ctx, key)
	})
	if err != nil {
		return
	}
	if w.hints == nil {
		w.hints = w.journal.watch(ctx, key, clientv3.WithRev(got.Header.Revision+1))
	}
	if len(got.Kvs) == 0 {
		w.tell(0, nil)
		return
	}
	w.tell(got.Kvs[0].CreateRevision, got.Kvs[0])
}

// tell calls changed if something is new, and first with the end of the pulse that lived before, if another lives now.
func (w *watcher) tell(created int64, kv *mvccpb.KeyValue) {
	now := stateOf(w.id, kv)
	value := string(now.Value)
	if w.shown && created == w.created && value == w.value {
		return
	}
	if w.shown && created != w.created && created != 0 && w.created != 0 {
		w.changed(journal.PulseState{ID: w.id})
	}
	w.shown, w.created, w.value = true, created, value
	w.changed(now)
}

// wait returns when it is time to look again.
func (w *watcher) wait(ctx context.Context) {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	for {
		var hints <-chan clientv3.WatchResponse
		if w.hints != nil {
			hints = w.hints.answers
		}
		select {
		case hint, open := <-hints:
			if open && hint.Err() == nil {
				w.hints.dequeued(hint)
				return
			}
			// A watch that fails is begun anew at the next look, not at once: it may fail again.
			w.unwatch()
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// unwatch ends the watch if there is one.
func (w *watcher) unwatch() {
	if w.hints != nil {
		w.hints.close()
		w.hints = nil
	}
}

// Pulses implements journal.Journal.
func (j *Journal) Pulses(ctx context.Context) ([]journal.PulseState, error) {
	during, done := j.during(ctx, attemptMax)
	defer done()
	got, err := j.client.Get(during, j.keys.pulses, clientv3.WithPrefix())
	if err != nil {
		return nil, j.failed(ctx, "list pulses", err)
	}
	alive := make([]journal.PulseState, len(got.Kvs))
	for i, kv := range got.Kvs {
		alive[i] = stateOf(string(kv.Key[len(j.keys.pulses):]), kv)
	}
	return alive, nil
}

// stateOf returns what the key of pulse id shows; kv is nil if there is none.
func stateOf(id string, kv *mvccpb.KeyValue) journal.PulseState {
	state := journal.PulseState{ID: id, Alive: kv != nil}
	if kv != nil && len(kv.Value) > 0 {
		state.Value = kv.Value
	}
	return state
}
