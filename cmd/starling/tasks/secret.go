package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/files"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/terms"
)

func newSecret(r *remote.Remote) *cobra.Command {
	return usage.Group("secret", "Keep secrets that instances may read", r.Writes(newSecretPut(r)), newSecretList(r),
		newSecretShow(r), r.Writes(newSecretRotate(r)), r.Writes(newSecretRemove(r)))
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

Instances that run and have it get the new version within seconds, and the signal that their task says. The last five versions are
kept, so that a task may name one: a version that a job names which has not finished stays, and older ones go in its place.

` + whichSecret,
		Example: "  printf %s \"$PASSWORD\" | starling secret put team/db-password\n  starling secret put tls-key server.key",
		Args:    usage.Arguments(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			value, err := files.Secret(append(args, "-")[1], command.InOrStdin())
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
					t.Row(s.GetPool()+"/"+s.GetName(), fmt.Sprint(s.GetVersion()), age(r, answer, s.GetPutAt()),
						console.Dash(strings.Join(s.GetJobs(), ", ")))
				}
				return t
			})
		}),
	})
}

// age is how long ago something was put.
func age(r *remote.Remote, answer *starlingv1.ListSecretsResponse, at *timestamppb.Timestamp) string {
	return r.Now(answer.GetTime()).Sub(at.AsTime()).Round(time.Second).String() + " ago"
}

func newSecretShow(r *remote.Remote) *cobra.Command {
	return remote.Past(&cobra.Command{
		Use:   "show SECRET",
		Short: "List the versions of a secret that are kept, and which jobs name each",
		Long: `List the versions of a secret that are kept, oldest first, and which jobs name each, not what they hold. Jobs that name none read the
newest, "starling secret ls" has them.

` + whichSecret,
		Example:           "  starling secret show team/db-password",
		Args:              usage.OneArgument("SECRET"),
		ValidArgsFunction: completeSecrets(r),
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
			pool, name := secretNamed(args[0])
			answer, err := peer.Secrets(ctx, pool)
			if err != nil {
				return err
			}
			one := secretIn(answer, name)
			if one == nil {
				return exit.Fail(exit.Failed, "pool %s has no secret %s: see \"starling secret ls\"", pool, name)
			}
			return r.Show(one, func() *console.Table {
				t := console.NewTable("VERSION", "PUT", "JOBS")
				for _, v := range one.GetVersions() {
					t.Row(fmt.Sprint(v.GetVersion()), age(r, answer, v.GetPutAt()), console.Dash(strings.Join(v.GetJobs(), ", ")))
				}
				return t
			})
		}),
	})
}

func newSecretRemove(r *remote.Remote) *cobra.Command {
	yes, version := false, uint32(0)
	remove := &cobra.Command{
		Use:   "rm SECRET",
		Short: "Remove a secret with all its versions, or one of these",
		Long: `Remove a secret with all its versions, or one that is not the newest. Instances that run keep what they have; others that name it do
not start any more.

` + whichSecret,
		Example:           "  starling secret rm team/db-password\n  starling secret rm team/db-password --version 3",
		Args:              usage.OneArgument("SECRET"),
		ValidArgsFunction: completeSecrets(r),
		RunE: func(command *cobra.Command, args []string) error {
			return dialed(r, func(ctx context.Context, peer *client.Client, args []string) error {
				if command.Flags().Changed("version") && version == 0 {
					return exit.Fail(exit.Usage, "--version takes a VERSION: see \"starling secret show\"")
				}
				pool, name := secretNamed(args[0])
				answer, err := peer.Secrets(ctx, pool)
				if err != nil {
					return err
				}
				what := pool + "/" + name
				if version != 0 {
					what = fmt.Sprintf("version %d of %s", version, what)
				}
				if jobs := jobsOf(secretIn(answer, name), version); !yes && len(jobs) > 0 {
					err := r.Confirm(fmt.Sprintf("remove %s, which %s name: their instances do not start without it", what,
						strings.Join(jobs, ", ")))
					if err != nil {
						return err
					}
				}
				removed, err := peer.RemoveSecret(ctx, pool, name, version)
				if err != nil {
					return err
				}
				return r.ShowNext(removed, func() string { return what + "\n" })
			})(command, args)
		},
	}
	remove.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask, although jobs name it")
	remove.Flags().Uint32Var(&version, "version", 0, "remove this `VERSION` alone (default all)")
	return remove
}

// jobsOf lists the jobs that name a secret, or a version of it.
func jobsOf(secret *starlingv1.Secret, version uint32) []string {
	if version == 0 {
		return secret.GetJobs()
	}
	for _, v := range secret.GetVersions() {
		if v.GetVersion() == version {
			return v.GetJobs()
		}
	}
	return nil
}

// secretIn finds a secret among those of one pool, nil if it is not there.
func secretIn(answer *starlingv1.ListSecretsResponse, name string) *starlingv1.Secret {
	at := slices.IndexFunc(answer.GetSecrets(), func(s *starlingv1.Secret) bool { return s.GetName() == name })
	if at < 0 {
		return nil
	}
	return answer.GetSecrets()[at]
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
