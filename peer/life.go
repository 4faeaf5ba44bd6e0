package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"starling/cluster"
	"starling/journal"
)

// Identity remembers which life a node is in, and how often the process has started under it.
type Identity interface {
	// Load returns what Save kept last, zeros if nothing was.
	Load() (incarnation, starts uint32, err error)
	// Save keeps both; they are durable when it returns.
	Save(incarnation, starts uint32) error
}

// FileIdentity keeps the identity in a file.
type FileIdentity struct{ Path string }

type identityFile struct {
	Incarnation uint32 `json:"incarnation"`
	Starts      uint32 `json:"starts"`
}

// Load reads the file; a missing one is no error.
func (f FileIdentity) Load() (incarnation, starts uint32, err error) {
	data, err := os.ReadFile(f.Path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil
	}
	var content identityFile
	if err == nil {
		err = json.Unmarshal(data, &content)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("identity of this node: %w; delete %s to begin a new life", err, f.Path)
	}
	return content.Incarnation, content.Starts, nil
}

// Save replaces the file as a whole.
func (f FileIdentity) Save(incarnation, starts uint32) error {
	data, err := json.Marshal(identityFile{incarnation, starts})
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(f.Path), ".identity-*")
	if err != nil {
		return fmt.Errorf("identity of this node: %w", err)
	}
	defer os.Remove(file.Name())
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), f.Path)
	}
	if err != nil {
		return fmt.Errorf("identity of this node: %w", err)
	}
	return nil
}

// MemoryIdentity forgets with the process.
type MemoryIdentity struct{ incarnation, starts uint32 }

// Load returns what Save kept.
func (m *MemoryIdentity) Load() (incarnation, starts uint32, err error) {
	return m.incarnation, m.starts, nil
}

// Save keeps both until the process ends.
func (m *MemoryIdentity) Save(incarnation, starts uint32) error {
	m.incarnation, m.starts = incarnation, starts
	return nil
}

// life is an incarnation with its pulse.
type life struct {
	peer   cluster.PeerID
	starts uint32
	pulse  journal.Pulse
	err    error
}

// startLife finds the life to lead, and brings it to the loop when its pulse beats.
func (p *Peer) startLife(ctx context.Context) {
	p.living = true
	next := p.core.NextIncarnation(p.config.Node)
	departed := uint32(0)
	if node := p.core.state.NodeOf(p.config.Node); node != nil {
		departed = node.Departed
	}
	if old := p.life.pulse; old != nil {
		old.Abandon()
		p.life.pulse = nil
	}
	p.group.Add(1)
	go func() {
		defer p.group.Done()
		for ctx.Err() == nil {
			found := p.findLife(ctx, departed, next)
			if found.err == nil {
				select {
				case p.lives <- found:
				case <-ctx.Done():
					found.pulse.Abandon()
				}
				return
			}
			p.log.Warn("no pulse yet; trying again", "error", found.err)
			pause(ctx, time.Second)
		}
	}()
}

// findLife takes up the remembered life if its pulse still beats and the value knows no end of it; otherwise it begins
// a new one, which is remembered before anybody hears of it. No start is counted until the pulse is this node's: what
// another process of the same name has created must not be taken up as one's own.
func (p *Peer) findLife(ctx context.Context, departed, next uint32) life {
	incarnation, starts, err := p.config.Identity.Load()
	if err != nil {
		return life{err: err}
	}
	if incarnation > departed && starts > 0 {
		if err := p.config.Identity.Save(incarnation, starts+1); err != nil {
			return life{err: err}
		}
		id := cluster.NewPeerID(p.config.Node, incarnation)
		pulse, err := p.config.Journal.Pulse(ctx, string(id), p.config.PulseTTL, true)
		if err == nil {
			return life{peer: id, starts: starts + 1, pulse: pulse}
		}
		if !errors.Is(err, journal.ErrNoPulse) {
			return life{err: err}
		}
	}
	incarnation = max(incarnation+1, next)
	if err := p.config.Identity.Save(incarnation, 0); err != nil {
		return life{err: err}
	}
	id := cluster.NewPeerID(p.config.Node, incarnation)
	pulse, err := p.config.Journal.Pulse(ctx, string(id), p.config.PulseTTL, false)
	if err != nil {
		return life{err: fmt.Errorf("pulse of %s: %w", id, err)}
	}
	if err := p.config.Identity.Save(incarnation, 1); err != nil {
		pulse.Abandon()
		return life{err: err}
	}
	return life{peer: id, starts: 1, pulse: pulse}
}

// begin leads the life that was found.
func (p *Peer) begin(next life) {
	p.life, p.living = next, false
	if p.self.Swap(&next.peer); p.core.Self() == "" {
		close(p.lived)
	}
	p.core.Begin(next.peer, next.starts, &p.config.Offer)
	p.log.Info("life begins", "peer", next.peer, "starts", next.starts, "entry", p.core.state.Index)
}

// revive brings back a pulse that ended although its peer lives, if the value still counts on it.
func (p *Peer) revive(ctx context.Context) {
	lost := p.life
	p.log.Warn("the pulse was lost: the journal could not be reached in time", "peer", lost.peer)
	p.life.pulse = nil
	p.group.Add(1)
	go func() {
		defer p.group.Done()
		for ctx.Err() == nil {
			pulse, err := p.config.Journal.Pulse(ctx, string(lost.peer), p.config.PulseTTL, false)
			if err == nil || errors.Is(err, journal.ErrPulseTaken) {
				p.post(ctx, func() { p.revived(lost.peer, pulse) })
				return
			}
			pause(ctx, time.Second)
		}
	}()
}

func (p *Peer) revived(id cluster.PeerID, pulse journal.Pulse) {
	switch {
	case pulse == nil:
	case p.life.peer == id && p.life.pulse == nil:
		p.life.pulse = pulse
	default:
		pulse.Abandon()
	}
}
