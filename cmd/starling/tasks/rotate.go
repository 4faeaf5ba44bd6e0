package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/words"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/files"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/terms"
)

// rotation is a version of a secret that instances are to get.
type rotation struct {
	pool, name string
	version    uint32
}

func (n *rotation) secret() string { return n.pool + "/" + n.name }

func newSecretRotate(r *remote.Remote) *cobra.Command {
	to, within := uint32(0), time.Minute
	rotate := &cobra.Command{
		Use:   "rotate SECRET [FILE]",
		Short: "Put a secret again, and wait until all instances that read it have that",
		Long: `Put what a file holds, or the standard input, as the next version of a secret, and wait until all instances that run and read its
newest version have it. With --to the value of an earlier version that is kept comes back, as the next version. Tasks that ask for no signal
(on_change) are named: their instances use the new version when they read the file again, or after "starling job restart".

` + whichSecret,
		Example:           "  starling secret rotate team/db-password new-password\n  starling secret rotate team/db-password --to 3",
		Args:              usage.Arguments(1, 2),
		ValidArgsFunction: completeSecrets(r),
	}
	rotate.RunE = func(command *cobra.Command, args []string) error {
		again := command.Flags().Changed("to")
		var value []byte
		var err error
		switch {
		case again && (to == 0 || len(args) > 1):
			err = exit.Fail(exit.Usage, "--to takes a VERSION as \"starling secret show\" lists them, and no FILE")
		case !again:
			value, err = files.Secret(append(args, "-")[1], command.InOrStdin())
		}
		if err != nil {
			return err
		}
		return dialed(r, func(ctx context.Context, peer *client.Client, args []string) error {
			n := &rotation{}
			n.pool, n.name = secretNamed(args[0])
			put := func() (*starlingv1.PutSecretResponse, error) { return peer.PutSecret(ctx, n.pool, n.name, value) }
			if again {
				put = func() (*starlingv1.PutSecretResponse, error) { return peer.PutSecretAgain(ctx, n.pool, n.name, to) }
			}
			answer, err := put()
			if err != nil {
				return err
			}
			n.version = answer.GetVersion()
			if err := n.await(ctx, r, peer, within); err != nil {
				return err
			}
			return r.ShowNext(answer, func() string { return fmt.Sprintf("%s version %d\n", n.secret(), n.version) })
		})(command, args)
	}
	rotate.Flags().Uint32Var(&to, "to", 0, "put this kept `VERSION` again")
	rotate.Flags().DurationVar(&within, "wait", within, "how long to wait for all instances, a `DURATION`")
	return rotate
}

// await waits until all instances that read the secret have the version, and tells how far they are.
func (n *rotation) await(ctx context.Context, r *remote.Remote, peer *client.Client, within time.Duration) error {
	progress := console.NewProgress(r.Console, []string{n.secret()})
	for end := time.Now().Add(within); ; {
		all, waiting, silent, err := n.readers(ctx, peer)
		if err != nil {
			return err
		}
		progress.Set(n.secret(), fmt.Sprintf("%d of %s have version %d", all-len(waiting), words.Counted(all, "instance"),
			n.version))
		switch {
		case len(waiting) == 0 && len(silent) > 0:
			r.Hint("%s: no signal (on_change) tells that it is another: it counts when the file is read again", strings.Join(silent, ", "))
			return nil
		case len(waiting) == 0:
			return nil
		case time.Now().After(end):
			return exit.Fail(exit.Timeout, "%s has version %d, but these instances do not have it yet: %s", n.secret(), n.version,
				strings.Join(waiting, ", "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second / 2):
		}
	}
}

// readWithin is the window of the statistics with which the versions come, in milliseconds.
const readWithin = 50

// readers counts the instances that run and read the newest version of the secret, names those that do not have it, and
// the tasks among them that ask for no signal.
func (n *rotation) readers(ctx context.Context, peer *client.Client) (all int, waiting, silent []string, err error) {
	listed, err := peer.Secrets(ctx, n.pool)
	if err != nil {
		return 0, nil, nil, err
	}
	for _, job := range secretIn(listed, n.name).GetJobs() {
		stats, err := peer.InstanceStats(ctx, &starlingv1.InstanceStatsRequest{Job: job, WindowMillis: readWithin})
		if err != nil {
			return 0, nil, nil, err
		}
		for _, one := range stats.GetInstances() {
			at := slices.IndexFunc(one.GetSecrets(), func(s *starlingv1.InstanceSecret) bool {
				return s.GetUse().GetName() == n.name && s.GetUse().GetVersion() == 0
			})
			if at < 0 {
				continue
			}
			if all++; one.GetSecrets()[at].GetVersion() < n.version {
				waiting = append(waiting, one.GetAllocation())
			}
			task := job + "." + one.GetTask()
			if one.GetSecrets()[at].GetUse().GetOnChange() == terms.NoSignal.String() && !slices.Contains(silent, task) {
				silent = append(silent, task)
			}
		}
	}
	return all, waiting, silent, nil
}
