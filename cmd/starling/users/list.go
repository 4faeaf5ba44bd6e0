package users

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/door"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
)

// show prints a list as the user has asked for.
func show[T any](r *remote.Remote, all []T, header []string, row func(*T) []string) error {
	return r.ShowData(all, func() error {
		table := console.NewTable(header...)
		table.Colour = r.OutColour
		for i := range all {
			table.Row(row(&all[i])...)
		}
		return table.Write(r.Out)
	})
}

func newTokenList(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the tokens by which machines may join yet",
		Args:  usage.NoArguments,
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, _ []string) error {
			all, err := peer.Tokens(ctx)
			if err != nil {
				return err
			}
			return show(r, all, []string{"TOKEN", "NODE", "KEEPER", "USES LEFT", "EXPIRES"}, func(t *door.KnownToken) []string {
				return []string{t.ID, console.Dash(t.Node), fmt.Sprint(t.Keeper), fmt.Sprint(t.Uses),
					console.Time(t.Expires)}
			})
		}),
	}
}

func newTokenRemove(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "remove TOKEN",
		Short: "End a token: no machine joins by it any more",
		Args:  usage.OneArgument("token's id, as \"starling token ls\" lists it"),
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
			return peer.RemoveToken(ctx, args[0])
		}),
	}
}

func newUserList(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the credentials of users",
		Args:  usage.NoArguments,
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, _ []string) error {
			all, err := peer.Users(ctx)
			if err != nil {
				return err
			}
			return show(r, all, []string{"USER", "ROLE", "KEY", "EXPIRES"}, func(u *door.KnownUser) []string {
				if u.Key == "" {
					return []string{u.Name, u.Role, "oidc", "-"}
				}
				return []string{u.Name, u.Role, u.Key, console.Time(u.Expires)}
			})
		}),
	}
}

func newUserRemove(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "End all credentials of a user, everywhere and at once",
		Args:  usage.OneArgument("user's name"),
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
			return peer.RemoveUser(ctx, args[0])
		}),
	}
}
