package tasks

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/terms"
	"starling/terms/access"
)

func newSecret(r *remote.Remote) *cobra.Command {
	return usage.Group("secret", "Keep secrets that instances may read", r.Writes(newSecretPut(r)), newSecretList(r),
		r.Writes(newSecretRemove(r)))
}

// whichSecret says how secrets are named.
const whichSecret = "A secret is named as jobs are, by its pool and a name: team/db-password; without a pool it is one of the\n" +
	"pool default. Jobs of that pool read it, not those of pools below."

func newSecretPut(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "put SECRET [FILE]",
		Short: "Keep what a file holds as a secret, or as its next version",
		Long: `Keep what a file holds as a secret, or as its next version; without FILE, or with -, what is written to the standard input. It has
at most 64 KiB. A machine that holds the key of the cluster's authority seals it before it enters the journal, and opens it only for machines on
which an instance runs whose task names it under "secrets". Nobody else gets it back.

Instances that run and have it get the new version within seconds, and the signal that their task says.

` + whichSecret,
		Example: "  printf %s \"$PASSWORD\" | starling secret put team/db-password\n  starling secret put tls-key server.key",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			value, err := secretIn(command.InOrStdin(), args[1:])
			if err != nil {
				return err
			}
			return r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
				pool, name := secretNamed(args[0])
				answer, err := peer.PutSecret(ctx, pool, name, value)
				if err != nil {
					return err
				}
				return r.ShowNext(answer, func() string {
					return fmt.Sprintf("%s/%s version %d\n", pool, name, answer.GetVersion())
				})
			})(command, args)
		},
	}
}

// secretNamed splits the name of a secret.
func secretNamed(text string) (pool, name string) {
	at := strings.LastIndexByte(text, '/')
	if at < 0 {
		return string(terms.DefaultPool), text
	}
	return text[:at], text[at+1:]
}

// secretIn reads what is to be kept.
func secretIn(from io.Reader, path []string) ([]byte, error) {
	if len(path) > 0 && path[0] != "-" {
		file, err := os.Open(path[0])
		if err != nil {
			return nil, exit.Fail(exit.Usage, "%w", err)
		}
		defer file.Close()
		from = file
	}
	value, err := io.ReadAll(io.LimitReader(from, access.SecretBytesMax+1))
	switch {
	case err != nil:
		return nil, err
	case len(value) > access.SecretBytesMax:
		return nil, exit.Fail(exit.Usage, "a secret has at most 64 KiB, and this has more: what is large belongs into a volume or "+
			"an image, with a secret that opens it")
	case len(value) == 0:
		return nil, exit.Fail(exit.Usage, "there is nothing to keep: give a FILE, or write it to the standard input")
	}
	return value, nil
}

func newSecretList(r *remote.Remote) *cobra.Command {
	return remote.Past(&cobra.Command{
		Use:               "ls [POOL]",
		Short:             "List secrets and which jobs name them, not what they hold",
		Example:           "  starling secret ls\n  starling secret ls team",
		Args:              usage.AtMostOne("POOL"),
		ValidArgsFunction: completeSecrets(r),
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
			answer, err := peer.Secrets(ctx, strings.Join(args, ""))
			if err != nil {
				return err
			}
			return r.Show(answer, func() *console.Table {
				t := console.NewTable("SECRET", "VERSION", "PUT", "JOBS")
				for _, s := range answer.GetSecrets() {
					age := r.Now(answer.GetTime()).Sub(s.GetPutAt().AsTime()).Round(time.Second).String() + " ago"
					t.Row(s.GetPool()+"/"+s.GetName(), fmt.Sprint(s.GetVersion()), age, console.Dash(strings.Join(s.GetJobs(), ", ")))
				}
				return t
			})
		}),
	})
}

func newSecretRemove(r *remote.Remote) *cobra.Command {
	yes := false
	remove := &cobra.Command{
		Use:   "rm SECRET",
		Short: "Remove a secret",
		Long: `Remove a secret. Instances that run keep what they have; others that name it do not start any more.

` + whichSecret,
		Example:           "  starling secret rm team/db-password",
		Args:              usage.OneArgument("SECRET"),
		ValidArgsFunction: completeSecrets(r),
		RunE: func(command *cobra.Command, args []string) error {
			return r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
				pool, name := secretNamed(args[0])
				answer, err := peer.Secrets(ctx, pool)
				if err != nil {
					return err
				}
				if jobs := jobsNaming(answer, name); !yes && len(jobs) > 0 {
					err := r.Confirm(fmt.Sprintf("remove %s/%s, which %s name: their instances do not start without it", pool, name,
						strings.Join(jobs, ", ")))
					if err != nil {
						return err
					}
				}
				removed, err := peer.RemoveSecret(ctx, pool, name)
				if err != nil {
					return err
				}
				return r.ShowNext(removed, func() string { return pool + "/" + name + "\n" })
			})(command, args)
		},
	}
	remove.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask, although jobs name it")
	return remove
}

func jobsNaming(answer *starlingv1.ListSecretsResponse, name string) []string {
	for _, s := range answer.GetSecrets() {
		if s.GetName() == name {
			return s.GetJobs()
		}
	}
	return nil
}

func completeSecrets(r *remote.Remote) cobra.CompletionFunc {
	return r.Complete(func(ctx context.Context, peer *client.Client, _ string) (names []cobra.Completion, err error) {
		answer, err := peer.Secrets(ctx, "")
		for _, s := range answer.GetSecrets() {
			names = append(names, s.GetPool()+"/"+s.GetName())
		}
		return names, err
	})
}
