// Package page shows the cluster to a browser of this machine: starling ui.
package page

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/web"
)

// New returns the command.
func New(r *remote.Remote) *cobra.Command {
	printOnly := false
	command := &cobra.Command{
		Use:   "ui",
		Short: "Show the cluster in a browser, with a slider over its past",
		Long: `Open a page of the cluster in the browser of this machine, signed in as who runs this command. It is there until Ctrl-C.

The page is served at the loopback address, by this program: any peer is asked, with your credentials, as by every other
command. Its link signs in one browser, once, within a minute. The browser then has your rights.`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			signals, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			defer peer.Close()
			return serve(signals, r, peer, printOnly)
		},
	}
	command.Flags().BoolVar(&printOnly, "print", false, "print the link, and open no browser")
	return command
}

// serve shows the page until it is told to stop.
func serve(ctx context.Context, r *remote.Remote, peer *client.Client, printOnly bool) error {
	asked, cancel := context.WithTimeout(ctx, remote.AnswerWithin)
	_, err := peer.Info(asked) // whoever cannot reach a peer, or may not ask it, hears of it here
	cancel()
	if err != nil {
		return err
	}
	page, err := web.Open(peer)
	if err != nil {
		return err
	}
	link := page.Link(web.LinkLife)
	if printOnly || !open(link) {
		fmt.Fprintln(r.Out, link)
		r.Hint("this link signs in one browser, within a minute; Ctrl-C ends the page")
	} else {
		r.Hint("the page is open in your browser; Ctrl-C ends it")
	}
	<-ctx.Done()
	return page.Close()
}

// open opens an address in a browser, and tells whether there is one.
func open(address string) bool {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	} else if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return false
	}
	path, err := exec.LookPath(program)
	return err == nil && exec.Command(path, address).Run() == nil
}
