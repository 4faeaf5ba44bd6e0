package users

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/door"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/trust"
)

func newToken(r *remote.Remote) *cobra.Command {
	return usage.Group("token", "Let machines join", newTokenCreate(r), newTokenList(r), newTokenRemove(r))
}

func newTokenCreate(r *remote.Remote) *cobra.Command {
	request := door.TokenRequest{}
	life := ""
	command := &cobra.Command{
		Use:   "create",
		Short: "Print a line by which a machine joins",
		Long: `Print a line to paste on another machine: starling agent --join LINE. It holds the addresses of the cluster, the
hash of its certificate authority and a secret. The machine that joins asks nobody who does not have that authority,
proves that it knows the secret without sending it, and gets a certificate for a key that it makes itself.

Whoever has the line can join until it expires or has been used, once unless --uses says more. Other users of a machine
see what stands in its commands: where there are any, put the line into a file that is yours alone, starling agent --join FILE. Only nodes that hold the authority's key make
tokens and renew certificates: the first one, and those that join with a token of --keeper. Have two or three.`,
		Example: `  starling token create                      # on the first machine
  starling agent --node b --join LINE ...    # on the next one`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, args []string) error {
			lasts, err := duration(command, "life", life)
			if err == nil && request.Uses == 0 {
				err = usage.Error(command, errors.New("--uses must be 1 or more"))
			}
			if err != nil {
				return err
			}
			request.LifeSeconds = int64(lasts.Seconds())
			return r.Asking(func(ctx context.Context, peer *client.Client, _ []string) error {
				token, err := peer.CreateToken(ctx, request)
				if err != nil {
					return notKept(err)
				}
				token.Addresses = addressesFirst(ctx, peer, token.Addresses[0])
				line, err := token.Line()
				if err != nil {
					return err
				}
				r.Hint("good for %s: on the next machine, starling agent --join LINE; who has the line can join", life)
				return r.ShowData(map[string]string{"line": line}, func() error {
					_, err := fmt.Fprintln(r.Out, line)
					return err
				})
			})(command, args)
		},
	}
	command.Flags().StringVar(&life, "life", "15m", "how long the token is good for, a `DURATION` up to "+
		fmt.Sprintf("%dh", int(trust.TokenLifeMax.Hours())))
	command.Flags().Uint32Var(&request.Uses, "uses", 1, "how many machines may join by it")
	command.Flags().StringVar(&request.Node, "node", "", "`NAME` of the only node that may join by it (default: any)")
	command.Flags().BoolVar(&request.Keeper, "keeper", false,
		"give the machine the key of the certificate authority, so that it makes tokens and renews certificates as well")
	return command
}
