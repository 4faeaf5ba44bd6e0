package users

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/terms/access"
)

func newWhoAmI(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Tell who you are to the cluster, and your roles",
		Long: `Tell who you are to the cluster, and which roles you have: in the whole cluster, and those that pools give you, for themselves
and all below them. "starling can" tells what somebody may do with them.`,
		Args: usage.NoArguments,
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, _ []string) error {
			me, err := peer.WhoAmI(ctx)
			if err != nil {
				return err
			}
			if !r.ForPeople() {
				text, err := json.Marshal(me)
				if err != nil {
					return err
				}
				return r.PrintJSON(append(text, '\n'))
			}
			fmt.Fprintf(r.Out, "%s: %s in the whole cluster\n", me.Name, cmp.Or(me.Role, access.NoRole.String()))
			for _, in := range me.Pools {
				fmt.Fprintf(r.Out, "%s: %s in pool %s\n", me.Name, in.Role, in.Pool)
			}
			return nil
		}),
	}
}
