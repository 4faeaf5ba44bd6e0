package output

import (
	"fmt"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Growth tells followers when something was written in their folder. One file system watcher serves them all.
type Growth struct {
	watcher *fsnotify.Watcher
	closed  chan struct{}
	done    sync.WaitGroup

	mu        sync.Mutex
	followers map[string]map[*Subscription]struct{} // by folder
}

// Subscription is one follower's.
type Subscription struct {
	growth *Growth
	folder string
	grown  chan struct{}
}

// WatchGrowth starts to watch; Close ends it.
func WatchGrowth() (*Growth, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch task output (is fs.inotify.max_user_instances reached?): %w", err)
	}
	g := &Growth{watcher: watcher, closed: make(chan struct{}), followers: map[string]map[*Subscription]struct{}{}}
	g.done.Go(g.watch)
	return g, nil
}

// watch hands events on until the watcher is closed.
func (g *Growth) watch() {
	for {
		select {
		case event, open := <-g.watcher.Events:
			if !open {
				return
			}
			g.wake(filepath.Dir(event.Name))
		case _, open := <-g.watcher.Errors:
			if !open {
				return
			}
			g.wakeAll() // events may have been lost
		}
	}
}

func (g *Growth) wake(folder string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.followers[folder] {
		s.wake()
	}
}

func (g *Growth) wakeAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, all := range g.followers {
		for s := range all {
			s.wake()
		}
	}
}

// Subscribe tells a new follower of the folder. That the folder cannot be watched is no error: followers look by
// themselves from time to time.
func (g *Growth) Subscribe(folder string) *Subscription {
	g.mu.Lock()
	defer g.mu.Unlock()
	folder = filepath.Clean(folder)
	s := &Subscription{growth: g, folder: folder, grown: make(chan struct{}, 1)}
	if g.followers[folder] == nil {
		g.followers[folder] = map[*Subscription]struct{}{}
		_ = g.watcher.Add(folder)
	}
	g.followers[folder][s] = struct{}{}
	s.wake() // what was written before the folder was watched
	return s
}

// Grown receives a value after something was written.
func (s *Subscription) Grown() <-chan struct{} { return s.grown }

func (s *Subscription) wake() {
	select {
	case s.grown <- struct{}{}:
	default:
	}
}

// Closed is closed when nobody watches any more.
func (s *Subscription) Closed() <-chan struct{} { return s.growth.closed }

// Cancel ends the subscription; it may be called again.
func (s *Subscription) Cancel() {
	g := s.growth
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.followers[s.folder]
	delete(all, s)
	if all != nil && len(all) == 0 {
		delete(g.followers, s.folder)
		_ = g.watcher.Remove(s.folder)
	}
}

// Close stops watching, and ends all followers with an error; it is called once.
func (g *Growth) Close() error {
	close(g.closed)
	err := g.watcher.Close()
	g.done.Wait()
	return err
}
