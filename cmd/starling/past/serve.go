package past

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"starling/api"
	"starling/api/door"
	"starling/api/wire"
	"starling/archive"
	"starling/cluster"
	"starling/cluster/registry"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/files"
	"starling/cmd/starling/remote"
	"starling/command"
	"starling/driver"
	"starling/peer"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/access"
)

// recorded answers for a file of entries as a peer would that has folded them and does nothing.
type recorded struct {
	archive     *archive.Archive
	oldest, end terms.Index
}

// errRecorded is what a file cannot do.
var errRecorded = errors.New("this is a file of entries, not a cluster: it can only be read")

func (r *recorded) Self() terms.PeerID { return "" }

func (r *recorded) Status() report.PeerStatus {
	return report.PeerStatus{Phase: "replayed", Index: r.end,
		Troubles: []report.Trouble{{Kind: report.NotMember, Reason: errRecorded.Error()}}}
}

func (r *recorded) State(ctx context.Context, least terms.Index) (*cluster.State, error) {
	return r.archive.At(ctx, max(least, r.end))
}

func (r *recorded) Head(context.Context) (terms.Index, error) { return r.end, nil }

func (r *recorded) Archive() api.Archive { return r.archive }

func (r *recorded) Registry() (all *registry.Registry, inForce bool) { return nil, false }

func (r *recorded) Submit(context.Context, command.Command) (report.Receipt, error) {
	return report.Receipt{}, errRecorded
}

// Follow visits the entries of the file, and then waits: there will be no more.
func (r *recorded) Follow(ctx context.Context, from terms.Index, visit func(*report.Folded) error) error {
	err := r.archive.Walk(ctx, max(from, r.oldest+1)-1, r.end, func(_ *cluster.State, f *report.Folded) error {
		return visit(f)
	})
	if err == nil {
		<-ctx.Done()
		err = ctx.Err()
	}
	return err
}

// Silence is never: what is recorded needs no engine.
func (r *recorded) Silence() (since time.Time, why error) { return time.Time{}, nil }

func (r *recorded) SealSecret(context.Context, terms.PoolPath, string, []byte) (access.Secret, error) {
	return access.Secret{}, errRecorded
}

func (r *recorded) Folder(string) (*os.Root, error) { return nil, os.ErrNotExist }

func (r *recorded) Logs(context.Context, string, driver.LogOptions) (io.ReadCloser, error) {
	return nil, os.ErrNotExist
}

func (r *recorded) SendOutput(context.Context, terms.OutputSet, io.Writer) error {
	return os.ErrNotExist
}

func (r *recorded) SendVolumes(context.Context, terms.VolumeSet, io.Writer) error {
	return os.ErrNotExist
}

func (r *recorded) TakeVolumes(*command.MoveVolumes, io.Reader) (report.Receipt, error) {
	return report.Receipt{}, errRecorded
}

func (r *recorded) Exec(context.Context, terms.AllocationID, []string, driver.Session) (int, error) {
	return driver.NoExitCode, errors.New("nothing runs in what is recorded")
}

func (r *recorded) Usage([]string) (driver.Usage, error) { return driver.Usage{}, errRecorded }

func (r *recorded) GPUs(context.Context) []driver.GPUUse { return nil }

// Pulses are those of all members, as if each had folded all.
func (r *recorded) Pulses(ctx context.Context) (all []report.PulseView, err error) {
	s, err := r.State(ctx, 0)
	if err != nil {
		return nil, err
	}
	s.EachMember(func(p terms.PeerID) bool {
		all = append(all, report.PulseView{Peer: p, Alive: true, Index: s.Index, Digest: s.Digest()})
		return true
	})
	return all, nil
}

// serveFile lets commands ask about a file until a signal comes.
func serveFile(ctx context.Context, r *remote.Remote, path, version string) error {
	own, isSocket := strings.CutPrefix(r.Address, wire.UnixPrefix)
	if r.Address != "" && (!isSocket || own == "") {
		return exit.Fail(exit.Usage, "a file is asked about over a socket, which is for its user alone: --address %sPATH, not %q",
			wire.UnixPrefix, r.Address)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	first, end, err := files.Replay(path, 0, nil)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "starling-replay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	opened, err := archive.OpenPast(path, peer.RulesNewest)
	if err != nil {
		return err
	}
	socket := cmp.Or(own, filepath.Join(folder, "api"))
	served, err := door.Open(door.Config{Socket: socket})
	if err != nil {
		return err
	}
	served.Answer(api.NewServer(&recorded{opened, first, end.Index},
		api.Options{Version: version, Rules: peer.RulesNewest, Log: slog.New(slog.DiscardHandler)}), nil)
	at := wire.UnixPrefix + socket
	fmt.Fprintf(r.Out, "entries %d to %d of %s, to be asked at %s\n", first+1, end.Index, path, at)
	fmt.Fprintf(r.Out, "next: starling --address %s --at %d ps\n", at, end.Index)
	<-ctx.Done()
	return served.Close()
}
