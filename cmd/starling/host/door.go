package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"starling/api/blobs"
	"starling/api/client"
	"starling/api/door"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/registry"
	"starling/command"
	"starling/driver/image"
	"starling/peer/credential"
	"starling/replica/reaction"
	"starling/terms"
	"starling/terms/access"
	"starling/trust"
	"starling/trust/provider"
)

// Entry says how a machine's API is found.
type Entry struct {
	// Advertise is where others reach it, "" if that follows from where it listens.
	Advertise string
	// AdminGroup is the group whose members are admins on this machine, "" for none.
	AdminGroup string
	// Issuer is who signs id tokens of instances, as outsiders know the cluster; "" for its SPIFFE id.
	Issuer string
	// OIDC is the provider with which users sign in; without an issuer they cannot.
	OIDC provider.Settings
}

// OpenDoor opens a machine's API: TCP for those with a certificate of the cluster, and a socket for users of the
// machine. The listener is the door's from now on.
func OpenDoor(listener net.Listener, at Entry, keys *trust.Keys, log *slog.Logger) (*door.Door, error) {
	address := cmp.Or(at.Advertise, reachable(listener.Addr()))
	names := []string{hostOf(address), trust.ServerName}
	if issuer, err := url.Parse(at.Issuer); err == nil && issuer.Hostname() != "" {
		names = append(names, issuer.Hostname())
	}
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	folder := wire.OwnSocketFolder()
	if err := wire.SweepSockets(folder); err != nil {
		log.Warn("sockets that were left behind cannot be deleted", "error", err)
	}
	config := door.Config{
		Keys: keys, Listener: listener, Socket: wire.SocketIn(folder, address), Group: at.AdminGroup, Address: address,
		Names: names, Issuer: at.Issuer, Log: log,
	}
	if at.OIDC.Issuer != "" {
		config.SignIn = provider.New(at.OIDC, http.DefaultTransport)
	}
	opened, err := door.Open(config)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return opened, nil
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// takenWithin is how long a port may be taken by what an agent that was killed had begun to start: until it has become
// another program it holds all that the agent had open.
const takenWithin = 2 * time.Second

// Listen opens the API's port.
func Listen(address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("%w: listen on %q: %w: write host:port, such as %s", ErrAddress, address, err,
			client.DefaultAddress)
	}
	listener, err := net.Listen("tcp", address)
	for end := time.Now().Add(takenWithin); errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(end); {
		time.Sleep(takenWithin / 20)
		listener, err = net.Listen("tcp", address)
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("another program listens on %s already\nhint: stop it, or choose another port with --address",
			address)
	}
	return listener, err
}

// reachable is where others reach a listener: one on all of the machine's addresses is reached at the first that is
// not the machine's alone.
func reachable(at net.Addr) string {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return at.String()
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return at.String()
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			return net.JoinHostPort(network.IP.String(), strconv.Itoa(tcp.Port))
		}
	}
	return at.String()
}

// ErrNoKeys tells that a machine is in no cluster yet, and may not make one.
var ErrNoKeys = errors.New("this machine is in no cluster yet")

// Newcomer is a node that may be in no cluster yet.
type Newcomer struct {
	// Data is its data directory.
	Data string
	Node terms.NodeName
	// Join is the token of its cluster, nil for none.
	Join *trust.Token
	// First makes the cluster if it is in none.
	First bool
	// Waits is told, once, what keeps the node from joining for now, and for how long that is waited for; it may be nil.
	Waits func(why error, atMost time.Duration)
}

// KeysOf returns the keys of a node. One that is in no cluster joins that of its token; without a token, the first
// node makes the cluster.
func KeysOf(ctx context.Context, n Newcomer) (*trust.Keys, error) {
	folder, node, join := filepath.Join(n.Data, trust.Folder), n.Node, n.Join
	keys, err := trust.Load(folder)
	switch {
	case err == nil && keys.Node() != string(node):
		return nil, fmt.Errorf("the keys in %s are of node %s, not of %s\nhint: give each node a data directory of its own",
			folder, keys.Node(), node)
	case err == nil && join != nil && !keys.Knows(join):
		return nil, fmt.Errorf("this machine is in cluster %s already, and the token is of another\nhint: start the agent "+
			"without --join, or delete %s to leave that cluster", keys.Cluster(), n.Data)
	case err == nil:
		return keys, renewExpired(ctx, keys)
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	case join != nil:
		request, err := trust.RequestIn(folder)
		if err != nil {
			return nil, err
		}
		admission, err := joinWithin(ctx, n, request)
		if failure := (*wire.Failure)(nil); errors.As(err, &failure) && failure.Code == wire.Denied {
			return nil, errors.Join(err, trust.Forget(folder)) // nothing was admitted that the key must be kept for
		}
		if err == nil {
			keys, err = trust.Store(folder, admission)
		}
		if err == nil {
			err = keys.Remember(join.Addresses)
		}
		return keys, err
	case !n.First:
		return nil, ErrNoKeys
	}
	return trust.Create(folder, string(node))
}

// rejoinWithin is how long a node that lost its disk waits until the cluster knows that it was away, rejoinEvery how
// often it asks.
const (
	rejoinWithin = time.Minute
	rejoinEvery  = 500 * time.Millisecond
)

// joinWithin joins by the token. While the cluster takes the node for a member, it is told no: it may have been one.
// Who is asked may have been started a moment ago, and not know yet who counts.
func joinWithin(ctx context.Context, n Newcomer, request *trust.Request) (trust.Admission, error) {
	told := n.Waits == nil
	for end := time.Now().Add(rejoinWithin); ; {
		admission, err := client.Join(ctx, n.Join, string(n.Node), request)
		var failure *wire.Failure
		if !errors.As(err, &failure) || failure.Code != wire.Conflict && failure.Code != wire.Unavailable ||
			time.Now().After(end) {
			return admission, err
		}
		if failure.Code == wire.Conflict && !told {
			told = true
			n.Waits(err, rejoinWithin)
		}
		select {
		case <-ctx.Done():
			return admission, err
		case <-time.After(rejoinEvery):
		}
	}
}

// renewExpired renews the certificate of a node that was away for longer than that was good for.
func renewExpired(ctx context.Context, keys *trust.Keys) error {
	if time.Now().Before(keys.Expires()) {
		return nil
	}
	if err := client.Renew(ctx, keys, keys.Known()); err != nil {
		return fmt.Errorf("this node's certificate has expired, and could not be renewed: %w", err)
	}
	return nil
}

// renewAgain is how often to look whether the certificate is to be renewed, and to try again. A machine that slept
// finds out as soon.
const renewAgain = 10 * time.Minute

// rememberSoon is how often to look where others are until there are some.
const rememberSoon = time.Second

// keepRenewed renews the node's certificate when a drawn part of its life is over, and remembers where to ask.
func (h *Host) keepRenewed(ctx context.Context) {
	pause, knowsOthers := rememberSoon, false
	for next := h.config.Keys.NextRenewal(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		addresses := h.others(ctx)
		if len(addresses) > 0 {
			knowsOthers = true
			if err := h.config.Keys.Remember(addresses); err != nil {
				h.config.Log.Warn("the addresses of other nodes cannot be kept", "error", err)
			}
		}
		if pause = rememberSoon; knowsOthers {
			pause = min(max(time.Until(next), rememberSoon), renewAgain)
		}
		if time.Now().Before(next) {
			continue
		}
		if err := client.Renew(ctx, h.config.Keys, addresses); err != nil {
			h.config.Log.Warn("this node's certificate could not be renewed; trying again", "expires", h.config.Keys.Expires(),
				"error", err)
			next = time.Now().Add(renewAgain)
			continue
		}
		next = h.config.Keys.NextRenewal()
		h.config.Log.Info("this node's certificate was renewed", "expires", h.config.Keys.Expires(), "next", next)
	}
}

// followAgain is how often to look which authorities the value lists, and to try again to follow the newest.
const followAgain = 200 * time.Millisecond

// keepTrusted makes the authorities count that the value lists, and follows the newest.
func (h *Host) keepTrusted(ctx context.Context) {
	keys, told := h.config.Keys, ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(followAgain):
		}
		var err error
		if all, _ := h.Registry(); all != nil {
			wasKeeper := keys.IsKeeper()
			err = keys.Adopt(all.Authorities)
			if wasKeeper && !keys.IsKeeper() {
				h.config.Log.Error("this node holds the key of no authority that counts: to make it a keeper again, empty its data " +
					"directory, and let it join with a token of --keeper")
			}
		}
		if err == nil && (keys.Lacks() || !keys.IsCurrent()) {
			if err = client.Follow(ctx, keys, h.others(ctx)); err == nil {
				h.config.Log.Info("this node has a certificate of the newest authority")
			}
		}
		if err != nil && err.Error() != told {
			told = err.Error()
			h.config.Log.Warn("the newest authority cannot be followed yet; trying again", "error", err)
		}
	}
}

// others are the addresses of the other nodes, as the value has them.
func (h *Host) others(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, lookupMax)
	defer cancel()
	state, err := h.State(ctx, 0)
	if err != nil {
		return nil
	}
	var all []string
	for n := range state.Nodes() {
		node := state.Node(facts.NodeIndex(n))
		if node.Offer != nil && node.Offer.Address != "" && node.Name != h.config.Node {
			all = append(all, node.Offer.Address)
		}
	}
	return all
}

// given asks a machine that holds the authority's key for what an instance of this one is to have.
func (h *Host) given(ctx context.Context, id terms.AllocationID) (credential.Given, error) {
	return h.ask(ctx, door.IDTokensRequest{Allocation: id.String()})
}

func (h *Host) ask(ctx context.Context, request door.IDTokensRequest) (credential.Given, error) {
	state, err := h.State(ctx, 0)
	if err != nil {
		return credential.Given{}, err
	}
	answer := &door.IDTokensAnswer{}
	request.Index = state.Index
	if h.config.Keys.IsKeeper() {
		answer, err = h.config.Door.IDTokens(ctx, h.config.Node, &request)
	} else {
		answer, err = client.IDTokens(ctx, h.asks, h.keepers(state), request)
	}
	if err != nil {
		return credential.Given{}, err
	}
	return credential.Given(*answer), nil
}

// pin has a machine ask what the tag of an image means: this one, unless only others may open the secret for that. Its
// failures are *wire.Failure.
func (h *Host) pin(ctx context.Context, pool terms.PoolPath, c *terms.Container) (string, error) {
	request := door.PinRequest{Image: c.Image, Pool: pool, Secret: c.PullSecret}
	if c.PullSecret == "" || image.Pinned(c.Image) || h.config.Keys.IsKeeper() {
		answer, err := h.config.Door.Pin(ctx, &request)
		if err != nil {
			return "", err
		}
		return answer.Image, nil
	}
	state, err := h.State(ctx, 0)
	if err != nil {
		return "", err
	}
	request.Index = state.Index
	answer, err := client.Pin(ctx, h.asks, h.keepers(state), request)
	failure := (*wire.Failure)(nil)
	switch {
	case errors.As(err, &failure) && failure.Code == wire.NotFound:
		return "", failure
	case err != nil:
		return "", &wire.Failure{Code: wire.Unavailable, Reason: fmt.Sprintf(
			"image %q: have its registry asked with a pull_secret: %v", c.Image, err)}
	}
	return answer.Image, nil
}

// pullSecretWithin bounds the wait for the secret of a registry.
const pullSecretWithin = 10 * time.Second

// pullSecret has a machine that holds the authority's key open what a task of this one names for its registry; nil for
// nothing.
func (h *Host) pullSecret(ctx context.Context, allocation string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, pullSecretWithin)
	defer cancel()
	id, _ := terms.ParseAllocationID(allocation)
	task := h.taskOf(ctx, id)
	switch {
	case task == nil:
		return nil, fmt.Errorf("node %s does not have %q, and gets no pull_secret for it", h.config.Node, allocation)
	case task.Container.PullSecret == "":
		return nil, nil
	}
	given, err := h.ask(ctx, door.IDTokensRequest{Allocation: allocation, PullSecret: true})
	if err != nil {
		return nil, fmt.Errorf("the pull_secret of its container: %w", err)
	}
	return given.Secrets[task.Container.PullSecret], nil
}

// sources are the machines that the image of a task of this one is asked of before its registry.
func (h *Host) sources(ctx context.Context, allocation string) []image.Source {
	ctx, cancel := context.WithTimeout(ctx, lookupMax)
	defer cancel()
	id, _ := terms.ParseAllocationID(allocation)
	state, err := h.State(ctx, 0)
	if err != nil {
		return nil
	}
	return blobs.Sources(state, h.config.Node, id, h.asks)
}

// known is who is known to the cluster, and its secrets.
func (h *Host) known() *registry.Registry {
	known, _ := h.Registry()
	return known
}

// SecretVersions returns which versions of its secrets an instance has that runs here.
func (b backend) SecretVersions(id terms.AllocationID) map[string]uint32 {
	return b.host.credentials.Versions(id)
}

// SealSecret has a machine that holds the authority's key seal what a secret holds.
func (b backend) SealSecret(ctx context.Context, pool terms.PoolPath, name string,
	value []byte) (access.Secret, error) {
	if keys := b.host.config.Keys; keys.IsKeeper() {
		return keys.SealSecret(pool, name, value)
	}
	state, err := b.State(ctx, 0)
	if err != nil {
		return access.Secret{}, err
	}
	sealed, err := client.SealSecret(ctx, b.host.asks, b.host.keepers(state),
		door.SealRequest{Pool: pool, Name: name, Value: value})
	if err != nil {
		return access.Secret{}, err
	}
	return *sealed, nil
}

// sealEvery is the pause between two looks for secrets that are sealed with the key of an older authority.
const sealEvery = 2 * time.Second

// sealAnew seals with the newest authority's key what is sealed with an older one, until ctx ends.
func (h *Host) sealAnew(ctx context.Context) {
	var done *registry.Registry // nothing is to be done until it is another, or another authority signs
	lost := map[string]bool{}   // these were told
	for by := ""; ctx.Err() == nil; {
		known, signer := h.known(), ""
		if own := h.config.Keys.Signer(); own != nil {
			signer = trust.Hash(own)
		}
		var all []access.Secret
		if known != done || signer != by {
			all, done, by = known.SecretsOf(""), known, signer
		}
		for _, s := range all {
			anew, ok, err := h.config.Keys.SealsAnew(&s)
			if err == nil && ok {
				_, err = h.Submit(ctx, &command.SealSecret{Secret: anew})
			}
			if version := fmt.Sprintf("%s/%s of %d", s.Pool, s.Name, s.Version); errors.Is(err, trust.ErrLost) {
				if !lost[version] {
					h.config.Log.Warn("a version of a secret is lost", "pool", s.Pool, "name", s.Name, "version", s.Version,
						"error", err)
				}
				lost[version] = true
			} else if err != nil && ctx.Err() == nil {
				h.config.Log.Error("a secret could not be sealed with the newest key; trying again", "pool", s.Pool,
					"name", s.Name, "error", err)
				done = nil
			}
		}
		select {
		case <-time.After(sealEvery):
		case <-ctx.Done():
		}
	}
}

// keepers are the addresses of other nodes, first of those that say that they hold the authority's key.
func (h *Host) keepers(state *cluster.State) []string {
	var first, rest []string
	for n := range state.Nodes() {
		node := state.Node(facts.NodeIndex(n))
		switch {
		case node.Offer == nil || node.Offer.Address == "" || node.Name == h.config.Node:
		case slices.ContainsFunc(node.Offer.Attributes, func(a terms.EnvVar) bool { return a.Name == keeperAttribute }):
			first = append(first, node.Offer.Address)
		default:
			rest = append(rest, node.Offer.Address)
		}
	}
	return append(first, rest...)
}

// taskOf is the task of an instance of this node, nil if the value has no such.
func (h *Host) taskOf(ctx context.Context, id terms.AllocationID) *terms.Task {
	state, err := h.State(ctx, 0)
	if err != nil {
		return nil
	}
	return reaction.TaskOn(state, h.config.Node, id)
}
