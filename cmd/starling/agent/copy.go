package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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
	"starling/journal"
	"starling/journal/etcd"
	"starling/journal/etcd/quorum"
	"starling/peer/move"
	"starling/terms"
	"starling/trust"
)

// Where a member is prepared before it is one, and where what is not needed any more is kept.
const (
	newSuffix   = ".new"
	asideSuffix = ".old"
)

// copying moves the journal of a living cluster to another place.
type copying struct {
	*console.Console
	fromFile, toFile string
	from, to         *settings.Agent
	plan, instead    bool
	grace            time.Duration
	keys             *trust.Keys
	// member is the first of a new quorum, nil if others keep the journal.
	member *etcd.Member
	// fresh is the folder of that member if it was made here, "" if an earlier try has left it.
	fresh string
}

// NewJournalCopy returns "starling journal copy".
func NewJournalCopy(r *remote.Remote) *cobra.Command {
	c := &copying{Console: r.Console}
	command := &cobra.Command{
		Use:   "copy --from FILE --to FILE",
		Short: "Move the journal of a running cluster to another engine, without stopping a task",
		Long: `Move the journal of a running cluster to another engine: from the etcd of its own machines to an etcd or a ZooKeeper of yours,
to another place there, or back. The files are settings of this machine's agent, the old ones and the new ones.

  cp /etc/starling/agent.yaml /etc/starling/agent.old.yaml
  vi /etc/starling/agent.yaml          # on every machine: where the journal will be
  starling journal copy --from /etc/starling/agent.old.yaml --to /etc/starling/agent.yaml

Run it on one machine, as its agent runs; all agents must be of this version. First it folds the journal and compares the result
with what the peers have, and looks whether the new place has room; with --plan that is all. Then it tries whether that takes the
value, seals the old journal at one entry, after which nobody can write there, lets the new one begin with the value at that entry,
and waits until all peers have come. Agents see the seal, read their settings again, and go on at the new place as soon as all is
there: within a second or two, in which requests are refused and no task is touched. One whose settings still name the old place says so and waits; it has the time of --grace until its peer counts as dead. What has stop_after ends when that has passed.

What is broken off is taken up by the same command. Where the new engine turns out to be of no use after the seal, give another
with --to and --instead. Data at the new place that is not this journal is never touched. If the machines themselves are to
keep the journal, this one is the first to do it, and the seal says so: on another the command is refused. What the old engine
holds may be deleted when all peers have come.`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if c.fromFile == "" || c.toFile == "" {
				return usage.Error(command, errors.New("say with --from and --to which settings name the old place and the new one"))
			}
			ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return c.run(ctx)
		},
	}
	command.Flags().StringVar(&c.fromFile, "from", "", "`FILE` of the settings with which the agent runs now")
	command.Flags().StringVar(&c.toFile, "to", "", "`FILE` of those with which it is to run")
	command.Flags().BoolVar(&c.plan, "plan", false, "look whether it can be done, and change nothing")
	command.Flags().BoolVar(&c.instead, "instead", false,
		"go on although the journal was sealed to go on at another place, where no agent has begun")
	command.Flags().DurationVar(&c.grace, "grace", time.Minute, "how long to wait for peers that do not come")
	return command
}

func (c *copying) run(ctx context.Context) (err error) {
	if c.from, err = settings.ReadFile(c.fromFile); err == nil {
		c.to, err = settings.ReadFile(c.toFile)
	}
	if err != nil {
		return exit.Fail(exit.Usage, "%w", err)
	}
	if c.from.Place() == c.to.Place() {
		return exit.Fail(exit.Usage, "%s and %s name the same place: %s", c.fromFile, c.toFile, c.to.Place())
	}
	folder, err := filepath.Abs(c.to.Data)
	if err == nil {
		c.keys, err = trust.Load(filepath.Join(folder, trust.Folder))
	}
	if err != nil {
		return fmt.Errorf("%w\nhint: run this on a machine of the cluster, as its agent runs, with \"data\" in both files", err)
	}
	from, err := c.open(ctx, c.from)
	if err != nil {
		return unanswered(ctx, c.takeUp(ctx, err))
	}
	defer from.Close()
	if id, err := from.Cluster(ctx, ""); err != nil || id != c.keys.Cluster() {
		return cmp.Or(err, exit.Fail(exit.Conflict, "%s does not hold the journal of this cluster: nothing was changed\n"+
			"hint: is %s the file of the old settings?", c.from.Place(), c.fromFile))
	}
	to, err := c.openNew(ctx, folder)
	if err != nil {
		return unanswered(ctx, err)
	}
	defer func() { err = errors.Join(err, to.Close(), c.endMember()) }()
	m := &move.Move{From: from, To: to, Cluster: c.keys.Cluster(), Place: c.place(), Instead: c.instead, Begun: c.begun,
		Founds: c.member != nil, Limits: host.ClusterLimits(), Pulse: c.pulse(), Tell: c.Hint}
	c.Hint("from %s to %s", c.from.Place(), c.to.Place())
	if err := m.Check(ctx); err != nil {
		return refused(err)
	}
	if c.plan {
		c.Hint("it can be done, and nothing was changed")
		return nil
	}
	began := time.Now()
	at, err := m.Do(ctx)
	if err != nil {
		return refused(err)
	}
	c.Hint("the journal goes on after entry %d, %v after that was the last one", at, time.Since(began).Round(time.Millisecond))
	if c.member != nil {
		return c.keepMember(ctx, folder, at)
	}
	return c.await(ctx, m)
}

// unanswered makes of an engine that did not answer in time one that is not reachable.
func unanswered(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return exit.Fail(exit.Unreachable, "%w", err)
	}
	return err
}

// takeUp waits for the peers where a copy was broken off so late that the agents have left the old place already; why
// is why that cannot be opened, and is returned if the journal is not at the new one.
func (c *copying) takeUp(ctx context.Context, why error) error {
	if c.to.OwnQuorum() || c.plan {
		return why
	}
	to, err := openPlace(ctx, c.to)
	if err != nil {
		return why
	}
	defer to.Close()
	m := &move.Move{To: to, Cluster: c.keys.Cluster(), Tell: c.Hint}
	if err := m.TakeUp(ctx); err != nil {
		return why
	}
	c.Hint("the journal is at %s already", c.to.Place())
	return c.await(ctx, m)
}

// await waits until the peers have come, for the grace at most.
func (c *copying) await(ctx context.Context, m *move.Move) error {
	ctx, cancel := context.WithTimeout(ctx, c.grace)
	defer cancel()
	here, absent := m.Await(ctx)
	if dead := m.Dead(); len(dead) > 0 {
		c.Hint("no agent ran on %s: its settings must say what %s says of etcd and zookeeper before it starts",
			strings.Join(dead, ", "), c.toFile)
	}
	switch {
	case len(absent) > 0:
		return fmt.Errorf("%s has not come within %v: if it is not away with notice it counts as dead soon, and what ran there is "+
			"placed again\nhint: its agent's settings must say what %s says of etcd and zookeeper; the log of that machine tells more", strings.Join(absent, ", "), c.grace, c.toFile)
	case here == 0:
		c.Hint("no peer lived when the journal moved: each agent goes on with the settings of %s when it starts", c.toFile)
		return nil
	}
	c.Hint("all peers are there; what is left at %s is not needed any more", c.from.Place())
	return nil
}

// pulse is how long a peer that is awaited lives if this process dies: a ZooKeeper may not let it live longer than an
// agent would.
func (c *copying) pulse() time.Duration {
	if len(c.to.ZooKeeper.Servers) > 0 {
		return c.to.Pulse
	}
	return c.grace
}

// refused makes what the user can choose otherwise bad input.
func refused(err error) error {
	hint := map[error]string{
		move.ErrSame:      "the new settings must name another place",
		move.ErrOther:     "look into both files: is that the right place?",
		move.ErrUsed:      "choose an empty place: another etcd.prefix, another chroot",
		move.ErrElsewhere: "take it up there, with that place as --to; or, if no agent has ever begun there, add --instead",
		move.ErrRoom:      "give it more room or more rights, or choose another place",
		move.ErrBegun:     "the agents of other machines need the settings of that one; \"starling peers\" tells where they are",
		move.ErrDiffers:   "run the program that the peers run, and look at \"starling peers\"",
	}
	for known, text := range hint {
		if errors.Is(err, known) {
			return exit.Fail(exit.Conflict, "%w\nhint: %s; this command has not changed where the journal is", err, text)
		}
	}
	return err
}

// open opens the journal where it is.
func (c *copying) open(ctx context.Context, config *settings.Agent) (journal.Journal, error) {
	if !config.OwnQuorum() {
		return openPlace(ctx, config)
	}
	urls, err := quorum.Endpoints(filepath.Join(config.Data, quorumFile))
	if err != nil {
		return nil, err
	}
	return etcd.Open(ctx, etcd.ClientConfig{Endpoints: urls, TLS: c.tls()})
}

func (c *copying) tls() *tls.Config { return trust.ClientTLS(c.keys.Shows) }

// openNew opens the journal where it is to go on. A member that is the first of a new quorum runs here meanwhile.
func (c *copying) openNew(ctx context.Context, folder string) (journal.Journal, error) {
	if !c.to.OwnQuorum() {
		return openPlace(ctx, c.to)
	}
	dir := filepath.Join(folder, memberFolder)
	if _, err := os.Stat(dir); err == nil {
		return nil, exit.Fail(exit.Usage, "%s has data of a member of the quorum already: nothing was changed\n"+
			"hint: if the agents have gone on with it, all is done; an agent that has just left it puts it aside within seconds", dir)
	}
	if _, err := os.Stat(dir + newSuffix); errors.Is(err, os.ErrNotExist) {
		c.fresh = dir + newSuffix
	}
	client, peer := c.urls()
	var err error
	if c.member, err = etcd.Start(ctx, etcd.MemberConfig{
		Name: string(c.to.Node), DataDir: dir + newSuffix, QuotaBytes: c.to.Etcd.QuotaBytes,
		ClientURL: client, PeerURL: peer, Certificates: nodeCertificates(c.keys),
	}); err != nil {
		return nil, err
	}
	if err := c.member.Ready(ctx); err != nil {
		return nil, errors.Join(err, c.member.Close())
	}
	return c.member.Journal(), nil
}

// urls are where the first member of a new quorum answers clients and other members.
func (c *copying) urls() (client, peer string) {
	if c.to.Etcd.Listen == "" {
		return settings.EtcdListenDefault, settings.EtcdPeerDefault
	}
	return c.to.Etcd.Listen, c.to.Etcd.Peer
}

// place says for people where the journal goes on. Machines that are to keep it themselves would each begin one of
// their own, so the seal names the one that does.
func (c *copying) place() string {
	if !c.to.OwnQuorum() {
		return c.to.Place()
	}
	_, peer := c.urls()
	return fmt.Sprintf("%s, begun on %s at %s", c.to.Place(), c.to.Node, peer)
}

// keepMember makes what the new member holds this machine's own, which its agent waits for, unless peers have gone on
// elsewhere behind the entry: the seal keeps no two machines apart that are told not to heed it.
func (c *copying) keepMember(ctx context.Context, folder string, at terms.Index) error {
	err := c.endMember()
	if err == nil && c.instead {
		err = c.begun(ctx, at)
	}
	if err != nil {
		return refused(err)
	}
	dir := filepath.Join(folder, memberFolder)
	if err := os.Rename(dir+newSuffix, dir); err != nil {
		return fmt.Errorf("%w\nhint: rename it yourself; the agent of this machine waits for it", err)
	}
	c.Hint("this machine's agent keeps the journal; \"starling peers\" tells when all are there, for which they have %v", c.grace)
	return nil
}

// endMember ends the new member here. If nothing came of it what it holds is taken up the next time, unless it was only
// to be looked whether it can be.
func (c *copying) endMember() error {
	m := c.member
	if c.member = nil; m == nil {
		return nil
	}
	err := m.Close()
	if c.plan && c.fresh != "" {
		err = errors.Join(err, os.RemoveAll(c.fresh))
	}
	return err
}
