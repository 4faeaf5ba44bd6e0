package agent

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/host"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/settings"
	"starling/cmd/starling/usage"
	"starling/command"
	"starling/journal/etcd/datadir"
	"starling/journal/etcd/quorum"
	"starling/peer"
	"starling/trust"
)

// recovery is the way back after a majority of the quorum was lost.
type recovery struct {
	*console.Console
	config *settings.Agent
	others []string
	yes    bool

	folder *host.Folder
	secure *tls.Config // nil until another member is asked
}

func newRecover(r *remote.Remote) *cobra.Command {
	file, v := "", &recovery{Console: r.Console}
	command := &cobra.Command{
		Use:   "recover",
		Short: "Begin anew from this machine, when most that kept the journal are lost for good",
		Long: `Begin anew from what this machine has of the journal, when most of the machines that kept it are lost for good. Without
a majority nothing can be written; where one can be brought back, do that instead, and nothing is lost.

Do it on one machine only, on that which has most: with its agent stopped, and with the settings of that agent. First it
tells what it found, what may be missing, and which members do not answer, and changes nothing until that is confirmed.
It refuses where a majority runs, where the journal was moved elsewhere meanwhile, and where another one that is left has
more: name those with --others, by their data directories or by the URLs of their members. What was there is kept beside,
in DIR/etcd.old.

Then start the agent again, and restart the agents of other machines that are left, also those that run: they rejoin with
what they are told by this one. The tasks go on. A machine that had lost its data joins anew, by the line of "starling
token create".`,
		Example: `  starling recover --config /etc/starling/agent.yaml
  starling recover --data /var/lib/starling --others https://10.0.0.2:2379 --yes`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			var err error
			if v.config, err = settings.Read(command, cmp.Or(file, os.Getenv("STARLING_CONFIG"))); err != nil {
				return exit.Fail(exit.Usage, "%w", err)
			}
			ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return v.run(ctx)
		},
	}
	command.Flags().StringVar(&file, "config", "", "read the agent's settings from a YAML `FILE`; also STARLING_CONFIG")
	command.Flags().StringSliceVar(&v.others, "others", nil, "data `DIR`s, or URLs, of other members that are left")
	command.Flags().BoolVar(&v.yes, "yes", false, "do it without asking")
	settings.Declare(command)
	return command
}

func (v *recovery) run(ctx context.Context) error {
	if _, err := os.Stat(v.config.Data); err != nil {
		return fmt.Errorf("find the data directory: %w\nhint: name it with --data DIR", err)
	}
	var err error
	if v.folder, err = host.HoldFolder(v.config.Data); err != nil {
		return err
	}
	defer v.folder.Release()
	known, err := v.folder.Belongs(v.config.Node)
	if err != nil {
		return err
	}
	dir := filepath.Join(v.folder.Path, memberFolder)
	if _, err := quorum.Complete(dir, filepath.Join(v.folder.Path, quorumFile)); err != nil {
		return err
	}
	log, err := quorum.ReadLog(dir)
	if errors.Is(err, datadir.ErrNoMember) {
		return fmt.Errorf("%w\nhint: this machine did not keep the journal; recover on one that did, and that is left", err)
	}
	if err != nil {
		return err
	}
	if err := v.elsewhere(ctx); err != nil {
		return err
	}
	if err := v.compare(ctx, log); err != nil {
		return err
	}
	made, err := quorum.Recover(ctx, string(v.config.Node), dir,
		host.EngineLog{Log: slog.New(slog.DiscardHandler), Folder: dir, Tell: v.Hint})
	if err != nil {
		return err
	}
	if err := v.decide(ctx, made, known); err != nil {
		return errors.Join(err, made.Drop())
	}
	if err := made.Keep(filepath.Join(v.folder.Path, quorumFile)); err != nil {
		return err
	}
	v.Hint("node %s keeps the journal alone now: start its agent, and restart those of the others; what was there is in %s.old", v.config.Node, dir)
	return nil
}

// elsewhere refuses when the journal was moved while this machine was away: the cluster lives, and would be two.
func (v *recovery) elsewhere(ctx context.Context) error {
	keys, err := v.keys()
	if err != nil {
		return err
	}
	if _, err = findQuorum(ctx, machines(v.config, keys), keys); isElsewhere(err) {
		return exit.Fail(exit.Conflict, "a machine of the cluster answers, and others than its machines keep the journal by now: "+
			"nothing is to be recovered\nhint: change the settings here as those of the others were when `starling journal copy` moved it, "+
			"and start the agent")
	}
	return nil
}

// keys are what this machine is known by.
func (v *recovery) keys() (*trust.Keys, error) {
	keys, err := trust.Load(filepath.Join(v.folder.Path, trust.Folder))
	if err != nil {
		return nil, fmt.Errorf("ask other machines: %w", err)
	}
	return keys, nil
}

// compare refuses when another one that is left has more.
func (v *recovery) compare(ctx context.Context, own quorum.Log) error {
	for _, other := range v.others {
		if strings.Contains(other, "://") {
			answers, err := v.ask(ctx, other, other, own)
			if err == nil && !answers {
				err = exit.Fail(exit.Conflict, "--others: nobody answers at %s, so it is not known whether that member has more\n"+
					"hint: look for a mistake in the URL; leave it out if that member is lost for good", other)
			}
			if err != nil {
				return err
			}
			continue
		}
		theirs, err := quorum.ReadLog(filepath.Join(other, memberFolder))
		if err != nil {
			return fmt.Errorf("--others: %w", err)
		}
		if theirs.Compare(own) > 0 {
			return exit.Fail(exit.Conflict, "%s has more: its log ends at term %d, index %d, and that here at term %d, index %d\n"+
				"hint: recover there", other, theirs.Term, theirs.Index, own.Term, own.Index)
		}
	}
	return nil
}

// ask asks a member that may run, and refuses if it has more, or has a leader. It tells whether the member answers.
func (v *recovery) ask(ctx context.Context, name, url string, own quorum.Log) (answers bool, err error) {
	if v.secure == nil {
		keys, err := v.keys()
		if err != nil {
			return false, err
		}
		v.secure = trust.ClientTLS(keys.Shows)
	}
	seen, err := quorum.See(ctx, url, v.secure)
	switch {
	case err != nil:
		return false, nil
	case seen.HasLeader:
		return true, exit.Fail(exit.Conflict, "member %s answers and has a leader: a majority runs, and nothing is to be recovered\n"+
			"hint: start the agent here", name)
	case seen.Index > own.Index:
		return true, exit.Fail(exit.Conflict, "member %s has more: its log reaches index %d at least, and that here ends at %d\n"+
			"hint: stop its agent and recover there", name, seen.Index, own.Index)
	}
	return true, nil
}

// decide tells what was found, and asks whether to go on with that.
func (v *recovery) decide(ctx context.Context, made *quorum.Recovery, known host.Belonging) error {
	last := "of which no time is known"
	if entry, err := command.Decode(made.Last.Payload, peer.RulesNewest); err == nil {
		last = "of " + console.Time(time.UnixMilli(int64(entry.Time)))
	}
	v.Hint("node %s of cluster %s has the journal up to entry %d, %s", v.config.Node, cmp.Or(known.Cluster, "without a name"),
		made.Head, last)
	v.Hint("its log ends at term %d, index %d, of which a majority was known to have %d", made.Log.Term, made.Log.Index,
		made.Log.Committed)
	voters, answering := 0, 0
	for _, m := range made.Members {
		if m.Learner {
			continue
		}
		voters++
		if m.ID == made.Log.ID {
			continue
		}
		answers, err := v.ask(ctx, m.Node, m.Client, made.Log)
		if err != nil {
			return err
		}
		state := "nobody answers"
		if answers {
			answering++
			state = "it answers, has no majority and not more than this one"
		}
		v.Hint("member %s at %s: %s", m.Node, m.Client, state)
	}
	if voters == 1 {
		return exit.Fail(exit.Conflict, "this machine keeps the journal alone already, and nothing is to be recovered\n"+
			"hint: start the agent here")
	}
	v.Hint("what others had acknowledged after that may be missing: jobs submitted, changed or stopped since then")
	v.Hint("%d of %d members answer; bring back %d of the others instead if you can, for then nothing is lost", answering+1,
		voters, voters/2+1-answering-1)
	return v.confirm()
}

func (v *recovery) confirm() error {
	if v.yes {
		return nil
	}
	v.Hint("let node %s keep the journal alone, and the others rejoin without what they have? Type yes:", v.config.Node)
	answer, err := bufio.NewReader(v.In).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		return exit.Fail(exit.Usage, "nothing was changed, for the answer was not yes: %w", cmp.Or(err, errors.New("it was another")))
	}
	return nil
}
