// Command demo shows the whole of Starling in a minute: three peers as three processes, real work, one kill.
//
// It starts three agents with an etcd quorum among them, has 24 instances compress and checksum every package of the
// Go standard library's source while three instances of a service answer HTTP, and kills one peer with everything on
// it. Then it checks what was promised: the ring is closed, what was lost runs elsewhere, the service was never
// without an answer, the checksums are those of a plain run, and all digests are equal. It says what happened when,
// fails if any of it did not, and leaves nothing behind.
//
// The programs that the two jobs run are this program too: "demo pack" and "demo serve".
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// demoMax bounds the whole demo but for building the binary.
const demoMax = 2 * time.Minute

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "pack":
		err = packPart(ctx)
	case len(os.Args) == 2 && os.Args[1] == "serve":
		err = serve(ctx)
	case len(os.Args) == 1:
		err = show(ctx)
	default:
		err = errors.New("usage: go run ./e2e/demo")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	return 0
}

// show tells the whole story, and clears everything away however it ends.
func show(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "starling-demo-")
	if err != nil {
		return err
	}
	s := &story{began: time.Now(), folder: folder}
	err = s.build(ctx)
	limited, cancel := context.WithTimeout(ctx, demoMax)
	defer cancel()
	if err == nil {
		err = s.tellAll(limited)
	}
	if err != nil {
		s.tell("FAILED: %v", err)
		s.fleet.printLogs(os.Stderr)
	}
	if cleared := s.clear(context.WithoutCancel(ctx)); cleared != nil {
		err = errors.Join(err, fmt.Errorf("clear away: %w", cleared))
	}
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted; everything was cleared away")
	case limited.Err() != nil:
		return errors.Join(err, fmt.Errorf("it took longer than %s", demoMax))
	case err != nil:
		return errors.New("the demo failed")
	}
	s.tell("all as promised; everything was cleared away")
	return nil
}
