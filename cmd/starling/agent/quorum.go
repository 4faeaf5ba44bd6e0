package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"starling/api/client"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/host"
	"starling/cmd/starling/settings"
	"starling/journal/etcd"
	"starling/journal/etcd/quorum"
	"starling/trust"
)

// Where a data directory has what belongs to the quorum.
const (
	memberFolder = "etcd"
	quorumFile   = "quorum.json"
)

// openJournal finds the journal, or founds it, and waits until it answers; it is the journal of the cluster that the
// data directory belongs to, and no other machine has this node's name.
func (a *agent) openJournal(ctx context.Context) error {
	own := host.Belonging{Cluster: a.keys.Cluster(), Node: a.config.Node}
	if err := a.completeRecovery(); err != nil {
		return err
	}
	if err := a.stayYet(ctx); err != nil {
		return err
	}
	if len(a.config.ZooKeeper.Servers) > 0 {
		if err := a.reachZooKeeper(ctx); err != nil {
			return err
		}
		return a.enter(ctx, own)
	}
	config, err := a.quorumConfig()
	if err != nil {
		return err
	}
	if a.known.Cluster != "" && config.Founds() {
		return fmt.Errorf("the data directory %s belongs to cluster %s, but the data of its etcd member is gone\n"+
			"hint: say with --join where another machine of that cluster is, and this one joins it again; if its journal is elsewhere, "+
			"start it with those settings until `starling journal copy` has moved it here", a.folder.Path, a.known.Cluster)
	}
	if config.HasLost() {
		a.Hint("what this node's etcd member held in %s is gone: the member is made anew from the others, as soon as most of "+
			"the quorum's members run\nhint: if most are lost, run `starling recover` on another that is left", config.Dir)
	}
	opening, left := a.unlessMoved(ctx, &config)
	if a.node, err = quorum.Open(opening, config); err != nil {
		return cmp.Or(left(), err)
	}
	a.journal = a.node.Journal()
	return a.enter(ctx, own)
}

// completeRecovery ends what "starling recover" was cut off from. Otherwise the member would count as lost.
func (a *agent) completeRecovery() error {
	dir := filepath.Join(a.folder.Path, memberFolder)
	done, err := quorum.Complete(dir, filepath.Join(a.folder.Path, quorumFile))
	if done {
		a.Hint("`starling recover` was cut off after its decision: what it had recovered is in %s now", dir)
	}
	return err
}

// enter takes the journal for this machine's own, unless it goes on elsewhere.
func (a *agent) enter(ctx context.Context, own host.Belonging) error {
	if err := a.refuseSealed(ctx); err != nil {
		return err
	}
	if err := a.folder.Enter(ctx, a.journal, a.known, own); err != nil {
		return err
	}
	if err := a.leaveQuorum(); err != nil {
		return err
	}
	if a.node != nil {
		if err := a.node.Begin(ctx); err != nil {
			return err
		}
	}
	return a.restore(ctx)
}

// quorumConfig says what this machine's part in the quorum is.
func (a *agent) quorumConfig() (quorum.Config, error) {
	id, err := a.folder.ID()
	if err != nil {
		return quorum.Config{}, err
	}
	name, err := os.Hostname()
	if err != nil {
		return quorum.Config{}, fmt.Errorf("find the host's name: %w", err)
	}
	e := &a.config.Etcd
	dir := filepath.Join(a.folder.Path, memberFolder)
	config := quorum.Config{
		Machine: quorum.Machine{
			Node: string(a.config.Node), ID: id, Host: name, Folder: a.folder.Path, Client: e.Listen, Peer: e.Peer,
			Zone: a.config.Attributes[e.Spread],
		},
		Dir: dir, File: filepath.Join(a.folder.Path, quorumFile),
		Certificates: nodeCertificates(a.keys), TLS: trust.ClientTLS(a.keys.Shows),
		PulseTTL: a.config.Pulse, AwayMax: e.AwayMax, QuotaBytes: e.QuotaBytes,
		EngineLog: host.EngineLog{Log: a.log, Folder: dir, Tell: a.Hint}, Log: a.log, Waiting: a.tellMissing(), Known: a.door,
	}
	if len(a.machines()) > 0 {
		config.Find = a.findQuorum
	}
	if len(e.Endpoints) > 0 {
		config.External, err = external(a.config)
	}
	if e.Listen == "" && (config.Founds() || config.HasMember() && a.keys.IsKeeper()) {
		config.Machine.Client, config.Machine.Peer = settings.EtcdListenDefault, settings.EtcdPeerDefault
	}
	return config, err
}

// nodeCertificates are a node's, with which its member of the engine answers, and asks others.
func nodeCertificates(keys *trust.Keys) etcd.Certificates {
	cert, key, ca := keys.Files()
	return etcd.Certificates{CertFile: cert, KeyFile: key, CAFile: ca, ServerName: trust.ServerName}
}

// external says how to reach an etcd that others keep.
func external(config *settings.Agent) (*etcd.ClientConfig, error) {
	e := &config.Etcd
	secure, err := config.ClientTLS()
	if err != nil {
		return nil, exit.Fail(exit.Usage, "%w", err)
	}
	how := &etcd.ClientConfig{Endpoints: e.Endpoints, Prefix: e.Prefix, TLS: secure, User: e.User}
	if e.PasswordFile != "" {
		password, err := os.ReadFile(e.PasswordFile)
		if err != nil {
			return nil, exit.Fail(exit.Usage, "etcd.password_file: %w", err)
		}
		how.Password = strings.TrimRight(string(password), "\r\n")
	}
	return how, nil
}

// machines are the addresses of others of the cluster: those that this one is told, and those that it knew last.
func (a *agent) machines() []string { return machines(a.config, a.keys) }

func machines(config *settings.Agent, keys *trust.Keys) []string {
	all := slices.Clone(config.Join)
	for _, address := range keys.Known() {
		if !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	return all
}

// findMax bounds one question where the quorum is.
const findMax = 3 * time.Second

// findQuorum asks other machines where the quorum is.
func (a *agent) findQuorum(ctx context.Context) ([]string, error) {
	return findQuorum(ctx, a.machines(), a.keys)
}

func findQuorum(ctx context.Context, machines []string, keys *trust.Keys) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, findMax)
	defer cancel()
	others := client.NewOfNode(machines, keys)
	defer others.Close()
	answer, err := others.Quorum(ctx)
	if err != nil {
		return nil, err
	}
	if len(answer.GetEndpoints()) == 0 {
		return nil, errors.New("the quorum is not known there")
	}
	return answer.GetEndpoints(), nil
}

// quorumDelay is how long to wait before saying for what, and then again.
const quorumDelay = 2 * time.Second

// tellMissing returns what says, but not too often, which machines do not answer.
func (a *agent) tellMissing() func([]string, error) {
	last, said := time.Now(), ""
	return func(urls []string, err error) {
		text := a.missing(urls, err)
		if since := time.Since(last); since < quorumDelay || text == said && since < 10*quorumDelay {
			return
		}
		last, said = time.Now(), text
		a.log.Warn(text, "error", err)
		a.Hint("%s", text)
	}
}

func (a *agent) missing(urls []string, err error) string {
	if a.known.Cluster != "" && isElsewhere(err) {
		return "waiting: a machine of the cluster answers that its machines do not keep the journal any more, and this agent's " +
			"settings say that they do: change them as those of the others were when `starling journal copy` moved it"
	}
	var missing []string
	for _, at := range urls {
		u, err := url.Parse(at)
		if err != nil {
			continue
		}
		connection, err := net.DialTimeout("tcp", u.Host, time.Second)
		if err != nil {
			missing = append(missing, at)
			continue
		}
		connection.Close()
	}
	switch {
	case len(missing) > 0:
		return "waiting for the quorum: no answer from " + strings.Join(missing, ", ")
	case len(urls) == 0 && len(a.machines()) > 0:
		return fmt.Sprintf("waiting for a machine of the cluster at %s: %v", strings.Join(a.machines(), ", "), err)
	}
	return "waiting for the quorum: no majority answers; all are reachable"
}
