// Package users has the commands that let machines and users into a cluster.
package users

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/wire"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/jobspec"
)

// Commands returns "starling token", "starling user", "starling ca", "starling login", "starling can" and
// "starling whoami".
func Commands(r *remote.Remote) []*cobra.Command {
	return []*cobra.Command{newToken(r), newUser(r), newAuthority(r), newLogin(r), newCan(r), newWhoAmI(r)}
}

// addressesMax bounds the addresses in a line, so that it can still be pasted.
const addressesMax = 5

// addressesFirst returns the addresses of some nodes of the cluster, this one first. A cluster that is only forming
// has no others yet.
func addressesFirst(ctx context.Context, peer *client.Client, first string) []string {
	all := []string{first}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	answer, err := peer.AllPeers(short)
	if err != nil {
		return all
	}
	for _, one := range answer.GetPeers() {
		if at := one.GetAddress(); at != "" && at != first && len(all) < addressesMax {
			all = append(all, at)
		}
	}
	return all
}

// duration reads a flag of how long something is good for.
func duration(command *cobra.Command, name, text string) (time.Duration, error) {
	const most = 10 * 365 * 24 * time.Hour
	millis, err := jobspec.ParseDuration(text, most.Milliseconds())
	if err != nil {
		return 0, usage.Error(command, fmt.Errorf("--%s: %w", name, err))
	}
	return time.Duration(millis) * time.Millisecond, nil
}

// notKept says what to do where the peer that was asked cannot sign.
func notKept(err error) error {
	var failure *wire.Failure
	if errors.As(err, &failure) && failure.Code == wire.Conflict {
		return exit.Fail(exit.Conflict, "%w\nhint: --address says which node is asked", err)
	}
	return err
}
