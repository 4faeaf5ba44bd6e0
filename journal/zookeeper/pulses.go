package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"starling/journal"
)

// lookEvery is how often a watched node is looked at although no event of it came.
const lookEvery = time.Second

// node is a node that is watched.
type node struct {
	data []byte
	stat *zk.Stat // nil if there is none
	// changed tells of the next change, or that the watch is lost.
	changed <-chan zk.Event
}

// look reads a node and watches it. All who look at it share a watch.
func (j *Journal) look(ctx context.Context, path string) (node, error) {
	s, err := j.session(ctx)
	if err != nil {
		return node{}, err
	}
	return answered(ctx, s, func(c *zk.Conn) (node, error) {
		if _, err := c.Sync(path); err != nil {
			return node{}, err
		}
		return s.look(c, path)
	})
}

func (s *session) look(c *zk.Conn, path string) (node, error) {
	if hint := s.hint(path); hint != nil {
		data, stat, err := c.Get(path)
		if errors.Is(err, zk.ErrNoNode) {
			return node{changed: hint}, nil
		}
		return node{data, stat, hint}, err
	}
	data, stat, hint, err := c.GetW(path)
	if errors.Is(err, zk.ErrNoNode) {
		var exists bool
		if exists, _, hint, err = c.ExistsW(path); err != nil {
			return node{}, err
		}
		stat = nil
		if exists { // since a moment
			data, stat, err = c.Get(path)
		}
	}
	if err != nil {
		return node{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hints[path] = hint
	return node{data, stat, hint}, nil
}

// hint returns what tells of the next change of a node, nil if nothing does. It forgets what has happened.
func (s *session) hint(path string) <-chan zk.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.hints, func(_ string, hint <-chan zk.Event) bool {
		select {
		case <-hint: // the library closes what it has told
			return true
		default:
			return false
		}
	})
	return s.hints[path]
}

// watcher is one WatchPulse.
type watcher struct {
	journal *Journal
	id      string
	changed func(journal.PulseState)

	shown bool // whether anything was told yet
	alive bool
	life  uint64
	value string
}

// WatchPulse implements journal.Journal.
func (j *Journal) WatchPulse(ctx context.Context, id string, changed func(journal.PulseState)) error {
	if err := journal.CheckName(id); err != nil {
		return fmt.Errorf("watch pulse: %w", err)
	}
	during, done := j.during(ctx, 0)
	defer done()
	w := &watcher{journal: j, id: id, changed: changed}
	for during.Err() == nil {
		hint, pause := w.look(during), lookEvery
		if hint == nil {
			pause = pauseMin // no answer tells nothing: silence is not death
		}
		timer := time.NewTimer(pause)
		select {
		case <-hint:
		case <-timer.C:
		case <-during.Done():
		}
		timer.Stop()
	}
	return j.over(ctx)
}

// look reads the pulse and tells what has changed. It returns what tells when to look again, nil without an answer.
func (w *watcher) look(ctx context.Context) <-chan zk.Event {
	path := w.journal.paths.pulse(w.id)
	short, cancel := context.WithTimeout(ctx, attemptMax)
	defer cancel()
	n, err := w.journal.look(short, path)
	if err == nil && n.stat == nil && (w.alive || !w.shown) {
		// Nobody is told of an end by a server that may be behind.
		_, err = current(short, w.journal, func(c *zk.Conn) (bool, error) {
			data, stat, err := c.Get(path)
			if errors.Is(err, zk.ErrNoNode) {
				return true, nil
			}
			n.data, n.stat = data, stat
			return true, err
		})
	}
	if err != nil {
		return nil
	}
	if n.stat == nil {
		w.tell(journal.PulseState{ID: w.id}, 0)
		return n.changed
	}
	life, value, err := decodePulse(n.data)
	if err != nil {
		return nil
	}
	w.tell(journal.PulseState{ID: w.id, Alive: true, Value: value}, life)
	return n.changed
}

// tell calls changed if something is new, and first with the end of the pulse that lived before, if another lives now.
func (w *watcher) tell(now journal.PulseState, life uint64) {
	if w.shown && w.alive == now.Alive && w.life == life && w.value == string(now.Value) {
		return
	}
	if w.shown && w.alive && now.Alive && w.life != life {
		w.changed(journal.PulseState{ID: w.id})
	}
	w.shown, w.alive, w.life, w.value = true, now.Alive, life, string(now.Value)
	w.changed(now)
}

// Pulses implements journal.Journal.
func (j *Journal) Pulses(ctx context.Context) ([]journal.PulseState, error) {
	if over := j.over(ctx); over != nil {
		return nil, over
	}
	during, done := j.during(ctx, attemptMax)
	defer done()
	alive, err := j.listPulses(during)
	if err != nil {
		return nil, j.failed(ctx, "list pulses", err)
	}
	return alive, nil
}

func (j *Journal) listPulses(ctx context.Context) ([]journal.PulseState, error) {
	names, err := synced(ctx, j, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(j.paths.pulses)
		return names, err
	})
	if err != nil {
		return nil, err
	}
	states, err := all(ctx, j, len(names), func(c *zk.Conn, i int) (journal.PulseState, error) {
		id, err := unescaped(names[i])
		if err != nil {
			return journal.PulseState{}, err
		}
		data, _, err := c.Get(j.paths.pulses + "/" + names[i])
		if errors.Is(err, zk.ErrNoNode) {
			return journal.PulseState{ID: id}, nil
		}
		if err != nil {
			return journal.PulseState{}, err
		}
		_, value, err := decodePulse(data)
		return journal.PulseState{ID: id, Alive: true, Value: value}, err
	})
	alive := slices.DeleteFunc(states, func(s journal.PulseState) bool { return !s.Alive })
	slices.SortFunc(alive, func(a, b journal.PulseState) int { return strings.Compare(a.ID, b.ID) })
	return alive, err
}
