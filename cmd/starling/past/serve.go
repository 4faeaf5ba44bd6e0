package past

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"starling/api"
	"starling/api/door"
	"starling/api/wire"
	"starling/archive"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/files"
	"starling/cmd/starling/recorded"
	"starling/cmd/starling/remote"
	"starling/peer"
)

// serveFile lets commands ask about a file until a signal comes.
func serveFile(ctx context.Context, r *remote.Remote, path, version string) error {
	own, isSocket := strings.CutPrefix(r.Address, wire.UnixPrefix)
	if r.Address != "" && (!isSocket || own == "") {
		return exit.Fail(exit.Usage, "a file is asked about over a socket, which is for its user alone: --address %sPATH, not %q",
			wire.UnixPrefix, r.Address)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	all, err := files.Replay(path, 0, nil)
	if err != nil {
		return err
	}
	first, end := all.First, all.State.Index
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
	served.Answer(api.NewServer(recorded.New(opened, first, end),
		api.Options{Version: version, Rules: peer.RulesNewest, Log: slog.New(slog.DiscardHandler)}), nil)
	at := wire.UnixPrefix + socket
	fmt.Fprintf(r.Out, "entries %d to %d of %s, to be asked at %s\n", first+1, end, path, at)
	fmt.Fprintf(r.Out, "next: starling --address %s --at %d ps\n", at, end)
	<-ctx.Done()
	return served.Close()
}
