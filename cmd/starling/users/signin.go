package users

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/oauth2"

	"starling/api/client"
	"starling/api/door"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/trust"
)

// letSignIn lets a user sign in, and prints by what that one finds the cluster.
func letSignIn(r *remote.Remote, request door.UserRequest) func(*cobra.Command, []string) error {
	return r.Asking(func(ctx context.Context, peer *client.Client, _ []string) error {
		pin, err := peer.LetSignIn(ctx, request)
		if err != nil {
			return notKept(err)
		}
		pin.Addresses = addressesFirst(ctx, peer, pin.Addresses[0])
		line, err := pin.Line()
		if err != nil {
			return err
		}
		fmt.Fprintln(r.Out, line)
		r.Hint("%s signs in with: starling login --oidc LINE, which is the same for all users and no secret", request.Name)
		return nil
	})
}

// signIn has the user sign in with a browser, of this machine or any, to the cluster of a line or to the one that there
// are credentials for.
func signIn(ctx context.Context, r *remote.Remote, args []string, here bool) (*trust.Credentials, error) {
	addresses, known, err := clusterOf(ctx, r, args)
	if err != nil {
		return nil, err
	}
	if here {
		return client.SignInHere(ctx, addresses, known, func(page string) {
			fmt.Fprintf(r.Err, "open %s\n", page)
		})
	}
	return client.SignIn(ctx, addresses, known, func(device *oauth2.DeviceAuthResponse) {
		fmt.Fprintf(r.Err, "open %s and enter the code %s\n", device.VerificationURI, device.UserCode)
		if device.VerificationURIComplete != "" {
			fmt.Fprintf(r.Err, "or open %s and compare the code\n", device.VerificationURIComplete)
		}
	})
}

// clusterOf returns where a cluster answers, and what is shown to it.
func clusterOf(ctx context.Context, r *remote.Remote, args []string) ([]string, []trust.Shows, error) {
	if len(args) == 1 {
		line, err := lineOf(args[0], trust.PinPrefix, r.In)
		if err != nil {
			return nil, nil, exit.Fail(exit.Usage, "read where the cluster is: %w", err)
		}
		pin, err := trust.ParsePin(line)
		if err != nil {
			return nil, nil, exit.Fail(exit.Usage, "%w", err)
		}
		known, err := pin.Shows(ctx)
		if err != nil {
			return nil, nil, exit.Fail(exit.Unreachable, "%w", err)
		}
		return pin.Addresses, known, nil
	}
	file, err := trust.DefaultFile()
	if err != nil {
		return nil, nil, err
	}
	kept, err := trust.ReadFile(file)
	switch {
	case err != nil:
		return nil, nil, exit.Fail(exit.Usage, "%w", err)
	case len(kept) != 1:
		return nil, nil, exit.Fail(exit.Usage, "there are credentials for %d clusters in %s: say to which one to sign in\nhint: "+
			"starling login --oidc LINE, with the line that an admin has from `starling user add NAME --oidc`", len(kept), file)
	}
	known := trust.ShowsOf(kept)
	for i := range known {
		known[i].Certificate = nil
	}
	return kept[0].Addresses, known, nil
}
