package door

import (
	"cmp"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/registry"
	"starling/command"
	"starling/replica/enrol"
	"starling/replica/report"
	"starling/replica/storage"
	"starling/terms"
	"starling/terms/access"
	"starling/trust"
)

// submitWithin bounds how long an entry about who is known may take.
const submitWithin = 15 * time.Second

// known returns who is known to the cluster; inForce is false while its rules have no registry, or no peer is there to
// tell.
func (d *Door) known() (all *registry.Registry, inForce bool) {
	answer := d.answer.Load()
	if answer == nil || answer.peer == nil {
		return nil, false
	}
	return answer.peer.Registry()
}

// errNoPeer is why nothing is signed, and no user is let in: who was removed since, or which token was used, is not
// known here yet.
var errNoPeer = &wire.Failure{Code: wire.Unavailable,
	Reason: "this peer waits for the quorum of the journal: try again when that answers"}

// blind is an error while the peer here has not read who counts.
func (d *Door) blind() error {
	switch answer := d.answer.Load(); {
	case answer == nil, answer.meanwhile, answer.peer != nil && !answer.peer.HasRead():
		return errNoPeer
	}
	return nil
}

// refusal is what somebody is told who is not let in.
func refusal(err error) *wire.Failure {
	var failure *wire.Failure
	if errors.As(err, &failure) {
		return failure
	}
	return &wire.Failure{Code: wire.Denied, Reason: err.Error()}
}

// inForceWithin is how long a new cluster may take until its rules have a registry.
const inForceWithin = time.Second

// isInForce tells whether the rules have a registry, or will have in a moment.
func (d *Door) isInForce(ctx context.Context) bool {
	for end := time.Now().Add(inForceWithin); ; {
		if _, inForce := d.known(); inForce || time.Now().After(end) {
			return inForce
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(inForceWithin / 50):
		}
	}
}

func now() terms.Time { return terms.Time(time.Now().UnixMilli()) }

// recognize looks up in the registry whether who calls is known yet, and gives a user the role that stands there.
func (d *Door) recognize(who *trust.Identity, connection *tls.ConnectionState) error {
	all, inForce := d.known()
	switch answer := d.answer.Load(); {
	case who.Kind != access.OfUser:
	case answer != nil && answer.users != nil:
		all, inForce = answer.users, true
	case d.blind() != nil:
		return errNoPeer
	}
	if !inForce || who.Kind != access.OfNode && who.Kind != access.OfUser {
		return nil
	}
	key, err := trust.KeyOfPublic(connection.PeerCertificates[0].PublicKey)
	if err != nil {
		return err
	}
	if who.Kind == access.OfNode {
		return d.nodeProblem(all, terms.NodeName(who.Name), key, connection.PeerCertificates)
	}
	found := all.Find(who.Subject(), key)
	if found == nil || hasEnded(found) {
		return errEnded(*who)
	}
	if who.Role = found.Role; all.SignIn(who.Name) != nil {
		who.Role = max(who.Role, all.SignIn(who.Name).Role)
	}
	return nil
}

func errEnded(who trust.Identity) error {
	return fmt.Errorf("the credentials of %s do not count any more: ask an admin for others, and keep them with "+
		"`starling login`", who.Subject())
}

// hasEnded tells whether a user's credential is over, whatever a certificate for its key says.
func hasEnded(one *access.Credential) bool { return one.Until != 0 && one.Until <= now() }

// Expelled begins the reason why a node is refused that does not belong to the cluster any more.
const Expelled = "the cluster knows this machine no more: "

// nodeProblem is an error if a key is not that of a node, or not any more. A node that has just been let in by itself
// is not listed yet: an authority must count that has signed its certificate, the first of the chain.
func (d *Door) nodeProblem(all *registry.Registry, node terms.NodeName, key access.Key,
	chain []*x509.Certificate) error {
	own := all.Of(access.Subject{Kind: access.OfNode, Name: string(node)})
	switch {
	case all.IsGone(node):
		return fmt.Errorf(Expelled+"node %s was removed; delete its data directory, and let it join again with a token",
			node)
	case len(own) > 0 && own[0].Key != key:
		return fmt.Errorf(Expelled+"another machine has joined as node %s since: give each a name of its own", node)
	case len(own) == 0:
		return d.config.Keys.Verify(chain)
	}
	return nil
}

// Refuse tells whose a certificate of the cluster is, and why it is refused at the engine, if it is: no user has
// business there, nor a node that is not known any more.
func (d *Door) Refuse(certificate *x509.Certificate) (node string, err error) {
	who, err := trust.IdentityOf(certificate)
	switch {
	case err != nil:
		return "", err
	case who.Kind != access.OfNode:
		return "", fmt.Errorf("%s is no node", who)
	}
	key, err := trust.KeyOfPublic(certificate.PublicKey)
	if all, inForce := d.known(); err == nil && inForce {
		err = d.nodeProblem(all, terms.NodeName(who.Name), key, []*x509.Certificate{certificate})
	}
	return who.Name, err
}

// Gone lists the nodes that were removed from the cluster, and not admitted again.
func (d *Door) Gone() (names []string) {
	if all, _ := d.known(); all != nil {
		for _, name := range all.Gone {
			names = append(names, string(name))
		}
	}
	return names
}

// enter has a command folded that changes who is known, for who sent the request of the context.
func (d *Door) enter(ctx context.Context, c command.Command) error {
	answer := d.answer.Load()
	if answer == nil || answer.peer == nil {
		return errNoPeer
	}
	if who := CallerOf(ctx); who.IsUser() {
		c = &command.As{Subject: who.Subject(), Command: c}
	}
	within, cancel := context.WithTimeout(ctx, submitWithin)
	defer cancel()
	receipt, err := answer.peer.Submit(within, c)
	switch {
	case errors.Is(err, report.ErrUnknown) || err != nil && within.Err() != nil:
		return &wire.Failure{Code: wire.Unknown, Reason: fmt.Sprintf("whether the journal has taken it is not known: %v", err)}
	case err != nil:
		return &wire.Failure{Code: wire.Unavailable, Reason: fmt.Sprintf("the journal has not taken it: %v", err)}
	case receipt.Refusal.Code != facts.OK:
		return wire.Refused(receipt.Index, receipt.Refusal)
	}
	return nil
}

// admitNode has a node's key folded that joins by a token. One from before there was a registry is entered for this
// key.
func (d *Door) admitNode(ctx context.Context, node string, public crypto.PublicKey, by *trust.Claims) error {
	key, err := trust.KeyOfPublic(public)
	all, inForce := d.known()
	if err != nil || !inForce {
		return cmp.Or(err, d.blind())
	}
	if err := d.mayAdmit(ctx, terms.NodeName(node), key); err != nil {
		return err
	}
	token := by.ID
	if who := (access.Subject{Kind: access.OfNode, Name: node}); by.Uses == 0 && all.Find(who, key) == nil {
		token += "." + key.String()
		_ = d.enter(ctx, d.entryOf(by, token)) // it may be there already
	}
	return d.enter(ctx, &command.AdmitNode{Node: terms.NodeName(node), Key: key, Token: token})
}

// mayAdmit refuses by the value what the journal need not be asked for.
func (d *Door) mayAdmit(ctx context.Context, node terms.NodeName, key access.Key) error {
	answer := d.answer.Load()
	if answer == nil || answer.peer == nil {
		return nil
	}
	state, err := answer.peer.State(ctx, 0)
	if err != nil {
		return err
	}
	for _, judge := range []func(*cluster.State, terms.NodeName, access.Key) report.Result{enrol.MayAdmit, storage.Lost} {
		if r := judge(state, node, key); r.Refused() {
			return wire.Refused(state.Index, r.Refusal)
		}
	}
	return nil
}

// entryOf is what enters a token into the registry.
func (d *Door) entryOf(claims *trust.Claims, id string) *command.AddToken {
	return &command.AddToken{LifeMillis: uint64(max(time.Until(claims.Expires).Milliseconds(), 1)),
		Token: access.Token{ID: id, Node: terms.NodeName(claims.Node), Keeper: claims.Keeper, Uses: max(claims.Uses, 1)}}
}

// knows tells whether a key is known as somebody's, and as what. Without a registry none is, and with one an error
// tells why the key does not count any more. A node's is renewed also while it is not known yet who counts: without
// nodes nobody reads that.
func (d *Door) knows(who trust.Identity, public crypto.PublicKey) (trust.Standing, error) {
	all, inForce := d.known()
	key, err := trust.KeyOfPublic(public)
	if err != nil {
		return trust.Standing{}, err
	}
	if !inForce && who.Kind == access.OfUser {
		return trust.Standing{}, d.blind()
	}
	if found := all.Find(who.Subject(), key); !inForce || found != nil && !hasEnded(found) {
		return standing(found), nil
	}
	if who.Kind == access.OfUser {
		return trust.Standing{}, errEnded(who)
	}
	own := all.Of(who.Subject())
	if all.IsGone(terms.NodeName(who.Name)) || len(own) > 0 {
		return trust.Standing{}, d.nodeProblem(all, terms.NodeName(who.Name), key, nil)
	}
	return trust.Standing{}, nil
}

// standing is what a credential says, nil for none.
func standing(one *access.Credential) trust.Standing {
	if one == nil {
		return trust.Standing{}
	}
	return trust.Standing{Known: true, Role: one.Role, Until: timeOf(one.Until)}
}

// addToken has a token folded, so that it counts.
func (d *Door) addToken(ctx context.Context, token *trust.Token) error {
	claims := &trust.Claims{}
	if err := json.Unmarshal(token.Claims, claims); err != nil {
		return err
	}
	if claims.Uses > access.TokenUsesMax {
		return fmt.Errorf("at most %d machines may join by one token", access.TokenUsesMax)
	}
	return d.enter(ctx, d.entryOf(claims, claims.ID))
}

// addUser has a user's credential folded, so that it counts.
func (d *Door) addUser(ctx context.Context, name string, role access.Role, certificate []byte) error {
	if !d.isInForce(ctx) {
		return d.blind()
	}
	signed, err := x509.ParseCertificate(certificate)
	if err != nil {
		return err
	}
	key, err := trust.KeyOfPublic(signed.PublicKey)
	if err != nil {
		return err
	}
	return d.enter(ctx, &command.AddUser{Credential: access.Credential{Key: key, Kind: access.OfUser, Name: name,
		Role: role, Until: terms.Time(signed.NotAfter.UnixMilli())}})
}

// Removal names what is to be removed.
type Removal struct {
	Name string `json:"name"`
	// IsOff says of a node that nothing runs on it any more.
	IsOff bool `json:"is_off,omitempty"`
}

// Done is the answer to what has no other.
type Done struct{}

// KnownUser is a credential of a user.
type KnownUser struct {
	Name string `json:"name"`
	Role string `json:"role"`
	// Key is "" for the right to sign in, which does not expire.
	Key     string    `json:"key,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
}

// KnownToken is a token by which machines may join yet.
type KnownToken struct {
	ID      string    `json:"id"`
	Node    string    `json:"node,omitempty"`
	Keeper  bool      `json:"keeper,omitempty"`
	Uses    uint32    `json:"uses"`
	Expires time.Time `json:"expires"`
}

// errNoRegistry tells that the rules are too old.
var errNoRegistry = errors.New("the rules of this cluster have no registry of users and tokens yet: raise them, see " +
	"`starling rules`")

// users lists the credentials of users.
func (d *Door) users(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathUsers, func(*Done) (*[]KnownUser, error) {
		all, inForce := d.known()
		if !inForce {
			return nil, errNoRegistry
		}
		list := []KnownUser{}
		for _, o := range all.All(access.OfUser) {
			if o.Key == access.SignInKey(o.Name) {
				list = append(list, KnownUser{Name: o.Name, Role: o.Role.String()})
				continue
			}
			list = append(list, KnownUser{o.Name, o.Role.String(), o.Key.String(), timeOf(o.Until)})
		}
		return &list, nil
	})
}

// tokens lists the tokens that may be used yet.
func (d *Door) tokens(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathTokens, func(*Done) (*[]KnownToken, error) {
		all, inForce := d.known()
		if !inForce {
			return nil, errNoRegistry
		}
		list := []KnownToken{}
		for _, t := range all.Open(now()) {
			list = append(list, KnownToken{t.ID, string(t.Node), t.Keeper, t.Uses, timeOf(t.Until)})
		}
		return &list, nil
	})
}

func timeOf(at terms.Time) time.Time { return time.UnixMilli(int64(at)).UTC() }

func (d *Door) removeToken(w http.ResponseWriter, r *http.Request) {
	d.remove(w, r, PathRemoveToken, func(r *Removal) command.Command { return &command.RemoveToken{ID: r.Name} })
}

func (d *Door) removeUser(w http.ResponseWriter, r *http.Request) {
	d.remove(w, r, PathRemoveUser, func(r *Removal) command.Command { return &command.RemoveUser{Name: r.Name} })
}

func (d *Door) removeNode(w http.ResponseWriter, r *http.Request) {
	d.remove(w, r, PathRemoveNode, func(r *Removal) command.Command {
		return &command.RemoveNode{Node: terms.NodeName(r.Name), IsOff: r.IsOff}
	})
}

// remove has what a request names removed.
func (d *Door) remove(w http.ResponseWriter, r *http.Request, method string, of func(*Removal) command.Command) {
	admit(w, r, method, func(request *Removal) (*Done, error) {
		return &Done{}, d.enter(r.Context(), of(request))
	})
}
