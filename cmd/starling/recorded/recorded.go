// Package recorded answers for entries that an archive keeps as a peer would that has folded them and does nothing.
package recorded

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"starling/api"
	"starling/archive"
	"starling/cluster"
	"starling/cluster/registry"
	"starling/command"
	"starling/driver"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
)

// Peer answers; it is safe for concurrent use.
type Peer struct {
	archive     *archive.Archive
	oldest, end terms.Index
	// why it can only be read.
	why error
	// silent is why the journal does not answer, nil for what needs none; since is the time of the newest entry.
	silent error
	since  time.Time
	// known is who is known to the cluster, nil where that is not asked.
	known *registry.Registry
	// done ends what waits for more.
	done chan struct{}
}

// errFile is what a file cannot do.
var errFile = errors.New("this is a file of entries, not a cluster: it can only be read")

// New answers for a file with the entries behind the oldest index.
func New(of *archive.Archive, oldest, end terms.Index) *Peer {
	return &Peer{archive: of, oldest: oldest, end: end, why: errFile, done: make(chan struct{})}
}

// Meanwhile answers for a peer to whom the journal does not answer yet: with what it knew when it ended. The error says
// why there is nothing of that.
func Meanwhile(ctx context.Context, of *archive.Archive, silent error) (*Peer, error) {
	now := time.Now()
	end, err := of.IndexAt(ctx, now, now)
	if err != nil {
		return nil, err
	}
	state, err := of.At(ctx, end)
	if err != nil {
		return nil, err
	}
	oldest, err := of.Oldest(ctx, end)
	if err != nil {
		return nil, err
	}
	p := &Peer{archive: of, oldest: oldest, end: end, why: silent, silent: silent,
		since: time.UnixMilli(int64(state.Time)), done: make(chan struct{})}
	if state.Rules >= rules.Registry {
		p.known = state.Registry()
	}
	return p, nil
}

// Close ends what waits for more entries.
func (p *Peer) Close() { close(p.done) }

// Self is nobody.
func (p *Peer) Self() terms.PeerID { return "" }

// Status tells up to where the entries go, and why there is no more.
func (p *Peer) Status() report.PeerStatus {
	return report.PeerStatus{Phase: "replayed", Index: p.end,
		Troubles: []report.Trouble{{Kind: report.NotMember, Reason: p.why.Error()}}}
}

// State is the newest value.
func (p *Peer) State(ctx context.Context, least terms.Index) (*cluster.State, error) {
	return p.archive.At(ctx, max(least, p.end))
}

// Head is the newest entry.
func (p *Peer) Head(context.Context) (terms.Index, error) { return p.end, p.silent }

// Archive has all of them.
func (p *Peer) Archive() api.Archive { return p.archive }

// Registry is who was known.
func (p *Peer) Registry() (all *registry.Registry, inForce bool) { return p.known, p.known != nil }

// Submit refuses.
func (p *Peer) Submit(context.Context, command.Command) (report.Receipt, error) {
	return report.Receipt{}, p.why
}

// Remembered visits the entries.
func (p *Peer) Remembered(ctx context.Context, from terms.Index, visit func(*report.Folded) error) error {
	return p.archive.Walk(ctx, max(from, p.oldest+1)-1, p.end, func(_ *cluster.State, f *report.Folded) error {
		return visit(f)
	})
}

// Follow visits the entries, and then waits: there will be no more.
func (p *Peer) Follow(ctx context.Context, from terms.Index, visit func(*report.Folded) error) error {
	if err := p.Remembered(ctx, from, visit); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.done:
		return p.why
	}
}

// Silence tells since when the journal does not answer; a file needs none.
func (p *Peer) Silence() (since time.Time, why error) { return p.since, p.silent }

// SealSecret refuses.
func (p *Peer) SealSecret(context.Context, terms.PoolPath, string, []byte) (access.Secret, error) {
	return access.Secret{}, p.why
}

// Folder has none.
func (p *Peer) Folder(string) (*os.Root, error) { return nil, os.ErrNotExist }

// Logs has none.
func (p *Peer) Logs(context.Context, string, driver.LogOptions) (io.ReadCloser, error) {
	return nil, os.ErrNotExist
}

// SendOutput has none.
func (p *Peer) SendOutput(context.Context, terms.OutputSet, io.Writer) error { return os.ErrNotExist }

// VolumeBytes has none.
func (p *Peer) VolumeBytes(context.Context, terms.VolumeSet) (map[string]int64, error) {
	return nil, os.ErrNotExist
}

// SendVolumes has none.
func (p *Peer) SendVolumes(context.Context, terms.VolumeSet, io.Writer) error { return os.ErrNotExist }

// TakeVolumes refuses.
func (p *Peer) TakeVolumes(*command.MoveVolumes, io.Reader) (report.Receipt, error) {
	return report.Receipt{}, p.why
}

// SecretVersions knows of none: no instance runs here.
func (*Peer) SecretVersions(terms.AllocationID) map[string]uint32 { return nil }

// Exec refuses.
func (p *Peer) Exec(context.Context, terms.AllocationID, []string, driver.Session) (int, error) {
	return driver.NoExitCode, p.why
}

// Attach refuses.
func (p *Peer) Attach(context.Context, terms.AllocationID, driver.Session) (int, error) {
	return driver.NoExitCode, p.why
}

// Sessions are none.
func (p *Peer) Sessions(terms.AllocationID) []driver.SessionStatus { return nil }

// Usage refuses.
func (p *Peer) Usage([]string) (driver.Usage, error) { return driver.Usage{}, p.why }

// GPUs has none.
func (p *Peer) GPUs(context.Context) []driver.GPUUse { return nil }

// Pulses are those of all members, as if each had folded all.
func (p *Peer) Pulses(ctx context.Context) (all []report.PulseView, err error) {
	s, err := p.State(ctx, 0)
	if err != nil {
		return nil, err
	}
	s.EachMember(func(one terms.PeerID) bool {
		all = append(all, report.PulseView{Peer: one, Alive: true, Index: s.Index, Digest: s.Digest()})
		return true
	})
	return all, nil
}
