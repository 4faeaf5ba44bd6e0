package access

import (
	"fmt"

	"github.com/spf13/cobra"

	"starling/api/door"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/trust"
)

func newToken(r *remote.Remote) *cobra.Command {
	return usage.Group("token", "Let machines join", newTokenCreate(r))
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

Whoever has the line can join until it expires, also more than once. Only nodes that hold the authority's key make
tokens and renew certificates: the first one, and those that join with a token of --keeper. Have two or three.`,
		Example: `  starling token create                      # on the first machine
  starling agent --node b --join LINE ...    # on the next one`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			lasts, err := duration(command, "life", life)
			if err != nil {
				return err
			}
			request.LifeSeconds = int64(lasts.Seconds())
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			defer peer.Close()
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			token, err := peer.CreateToken(ctx, request)
			if err != nil {
				return notKept(err)
			}
			token.Addresses = addressesFirst(ctx, peer, token.Addresses[0])
			line, err := token.Line()
			if err != nil {
				return err
			}
			fmt.Fprintln(r.Out, line)
			r.Hint("good for %s: on the next machine, starling agent --join LINE; who has the line can join", life)
			return nil
		},
	}
	command.Flags().StringVar(&life, "life", "15m", "how long the token is good for, a `DURATION` up to "+
		fmt.Sprintf("%dh", int(trust.TokenLifeMax.Hours())))
	command.Flags().StringVar(&request.Node, "node", "", "`NAME` of the only node that may join by it (default: any)")
	command.Flags().BoolVar(&request.Keeper, "keeper", false,
		"give the machine the key of the certificate authority, so that it makes tokens and renews certificates as well")
	return command
}
