package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"starling/api/door"
	"starling/api/wire"
	"starling/rights"
	"starling/terms/access"
	"starling/terms/rules"
	"starling/trust"
)

// askMax bounds what is asked about identities.
const askMax = 15 * time.Second

// CreateToken asks for a token by which machines join.
func (c *Client) CreateToken(ctx context.Context, request door.TokenRequest) (*trust.Token, error) {
	answer := &door.TokenAnswer{}
	err := c.post(ctx, door.PathToken, request, answer)
	return answer.Token, err
}

// AddUser makes a key here and asks for a user's certificate for it.
func (c *Client) AddUser(ctx context.Context, request door.UserRequest) (*trust.Credentials, error) {
	mine, err := trust.NewRequest()
	if err != nil {
		return nil, err
	}
	request.CSR = mine.CSR
	answer := &door.UserAnswer{}
	if err := c.post(ctx, door.PathUser, request, answer); err != nil {
		return nil, err
	}
	return mine.Credentials([]string{answer.Address}, answer.Certificate, answer.Authority)
}

// LetSignIn lets a user sign in, and returns by what that one finds the cluster.
func (c *Client) LetSignIn(ctx context.Context, request door.UserRequest) (*trust.Pin, error) {
	request.OIDC = true
	answer := &door.UserAnswer{}
	if err := c.post(ctx, door.PathUser, request, answer); err != nil {
		return nil, err
	}
	ca, err := x509.ParseCertificate(answer.Authority)
	if err != nil {
		return nil, fmt.Errorf("the authority's certificate: %w", err)
	}
	return &trust.Pin{Addresses: []string{answer.Address}, CA: trust.Hash(ca)}, nil
}

// Tokens lists the tokens by which machines may join yet.
func (c *Client) Tokens(ctx context.Context) (all []door.KnownToken, err error) {
	err = c.post(ctx, door.PathTokens, door.Done{}, &all)
	return all, err
}

// Users lists the credentials of users.
func (c *Client) Users(ctx context.Context) (all []door.KnownUser, err error) {
	err = c.post(ctx, door.PathUsers, door.Done{}, &all)
	return all, err
}

// Can asks whether a user may do something.
func (c *Client) Can(ctx context.Context, q door.Question) (answer rights.Answer, err error) {
	err = c.post(ctx, door.PathCan, q, &answer)
	return answer, err
}

// WhoAmI tells who this client is to the cluster, and whether that one may do some things.
func (c *Client) WhoAmI(ctx context.Context, acts ...door.Act) (me *door.WhoAmI, err error) {
	me = &door.WhoAmI{}
	return me, c.post(ctx, door.PathWhoAmI, door.WhoAmIRequest{Acts: acts}, me)
}

// RemoveToken ends a token.
func (c *Client) RemoveToken(ctx context.Context, id string) error {
	return c.post(ctx, door.PathRemoveToken, door.Removal{Name: id}, &door.Done{})
}

// RemoveUser ends the credentials of a user.
func (c *Client) RemoveUser(ctx context.Context, name string) error {
	return c.post(ctx, door.PathRemoveUser, door.Removal{Name: name}, &door.Done{})
}

// Authorities lists the cluster's authorities, and which machines show certificates of them.
func (c *Client) Authorities(ctx context.Context) (answer *door.AuthoritiesAnswer, err error) {
	answer = &door.AuthoritiesAnswer{}
	return answer, c.post(ctx, door.PathAuthorities, door.Done{}, answer)
}

// Rotate lets another authority sign, and returns its id.
func (c *Client) Rotate(ctx context.Context) (id string, err error) {
	answer := &door.RotateAnswer{}
	err = c.post(ctx, door.PathRotate, door.Done{}, answer)
	return answer.ID, err
}

// RemoveAuthority ends an authority: what it has signed does not count any more.
func (c *Client) RemoveAuthority(ctx context.Context, id string) error {
	return c.post(ctx, door.PathRemoveAuthority, door.Removal{Name: id}, &door.Done{})
}

// RemoveNode takes a node out of the cluster for good; off says that nothing runs on it any more.
func (c *Client) RemoveNode(ctx context.Context, name string, off bool) error {
	if off {
		if err := c.needs(ctx, "--is-off", rules.EndNow); err != nil {
			return err
		}
	}
	return c.post(ctx, door.PathRemoveNode, door.Removal{Name: name, IsOff: off}, &door.Done{})
}

// post asks the peers one after another until one decides.
func (c *Client) post(ctx context.Context, path string, request, answer any) error {
	return c.postFor(ctx, askMax, path, request, answer)
}

// postFor does so, and lets each take so long.
func (c *Client) postFor(ctx context.Context, most time.Duration, path string, request, answer any) error {
	var err error
	for _, address := range c.addresses {
		within, cancel := context.WithTimeout(ctx, most)
		err = send(within, c.by(address), wire.URL(address)+path, request, answer)
		cancel()
		var failure *wire.Failure
		if errors.As(err, &failure) && failure.Code != wire.Conflict && failure.Code != wire.Unavailable || err == nil {
			return err
		}
	}
	return err
}

// post sends a request about identities and reads its answer.
func post(ctx context.Context, by *http.Client, url string, request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	return send(ctx, by, url, request, answer)
}

// send does so for as long as it takes.
func send(ctx context.Context, by *http.Client, url string, request, answer any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	sent, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	sent.Header.Set("Content-Type", "application/json")
	received, err := by.Do(sent)
	if err != nil {
		return &wire.Failure{Code: wire.Unavailable, Reason: err.Error()}
	}
	defer received.Body.Close()
	text, err = io.ReadAll(io.LimitReader(received.Body, answerBytesMax))
	if err != nil {
		return &wire.Failure{Code: wire.Unavailable, Reason: err.Error()}
	}
	if received.StatusCode != http.StatusOK {
		told := struct {
			Code    wire.Code
			Message string
		}{wire.Unavailable, received.Status}
		_ = json.Unmarshal(text, &told) // what is not from a peer has its status
		return &wire.Failure{Code: told.Code, Reason: told.Message, Decided: true}
	}
	return json.Unmarshal(text, answer)
}

// answerBytesMax bounds an answer about identities.
const answerBytesMax = 1 << 20

// Join has a node admitted to the cluster of a token: it asks nobody who does not have the token's authority, and
// never sends the secret.
func Join(ctx context.Context, token *trust.Token, node string, mine *trust.Request) (trust.Admission, error) {
	var errs []error
	for _, address := range token.Addresses {
		admission, err := joinAt(ctx, address, token, node, mine)
		if err == nil {
			return admission, nil
		}
		errs = append(errs, fmt.Errorf("join at %s: %w", address, err))
		var failure *wire.Failure
		if errors.As(err, &failure) && failure.Code == wire.Denied {
			break
		}
	}
	return trust.Admission{}, errors.Join(errs...)
}

func joinAt(ctx context.Context, address string, token *trust.Token, node string,
	mine *trust.Request) (trust.Admission, error) {
	answer := &door.JoinAnswer{}
	err := where{address, door.PathJoin, trust.PinnedTLS(token.CA)}.post(ctx, func(channel []byte) (any, error) {
		return door.JoinRequest{Node: node, Claims: token.Claims, Proof: token.Proof(channel, mine.CSR), CSR: mine.CSR}, nil
	}, answer)
	if err != nil {
		return trust.Admission{}, err
	}
	admission := mine.Admission(answer.Certificate, answer.Authority, answer.Authorities)
	if len(answer.AuthorityKey) > 0 {
		return admission.WithAuthority(answer.AuthorityKey)
	}
	return admission, nil
}

// where is how and what a node is asked on a connection of its own.
type where struct {
	address, path string
	config        *tls.Config
}

// post sends a request that is about the connection on which it is sent.
func (w where) post(ctx context.Context, request func(channel []byte) (any, error), answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	dialed, err := (&tls.Dialer{Config: w.config}).DialContext(ctx, "tcp", w.address)
	if wire.IsClosed(err) {
		err = &wire.Failure{Code: wire.Unavailable, Reason: wire.ClosedReason}
	}
	if err != nil {
		return err
	}
	defer dialed.Close()
	state := dialed.(*tls.Conn).ConnectionState() // it has been shaken by Dial
	channel, err := trust.Channel(&state)
	if err != nil {
		return err
	}
	asked, err := request(channel)
	if err != nil {
		return err
	}
	one := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return dialed, nil },
		}}
	return post(ctx, one, wire.URL(w.address)+w.path, asked, answer)
}

// IDTokens asks the nodes at these addresses, until one has them, for the id tokens and secrets of an instance of the
// asking node.
func IDTokens(ctx context.Context, by *http.Client, addresses []string,
	request door.IDTokensRequest) (*door.IDTokensAnswer, error) {
	return postFirst[door.IDTokensAnswer](ctx, by, addresses, door.PathIDTokens, request)
}

// SealSecret asks the nodes at these addresses, until one has done it, to seal what a secret holds.
func SealSecret(ctx context.Context, by *http.Client, addresses []string,
	request door.SealRequest) (*access.Secret, error) {
	return postFirst[access.Secret](ctx, by, addresses, door.PathSeal, request)
}

// Pin asks the nodes at these addresses, until one has done it, what a registry says that the tag of an image means.
func Pin(ctx context.Context, by *http.Client, addresses []string, request door.PinRequest) (*door.PinAnswer, error) {
	return postFirst[door.PinAnswer](ctx, by, addresses, door.PathPin, request)
}

// postFirst returns the answer of the first of the nodes at these addresses that can give one: those that hold the
// authority's key. When such a one says that there is nothing to be found, no other is asked.
func postFirst[A any](ctx context.Context, by *http.Client, addresses []string, path string, request any) (*A, error) {
	var errs []error
	for _, address := range addresses {
		answer := new(A)
		err := post(ctx, by, wire.URL(address)+path, request, answer)
		if err == nil {
			return answer, nil
		}
		if failure := (*wire.Failure)(nil); errors.As(err, &failure) && failure.Code == wire.NotFound {
			return nil, err
		}
		errs = append(errs, fmt.Errorf("ask %s: %w", address, err))
	}
	return nil, errors.Join(append(errs, errors.New("no machine that holds the authority's key has done it"))...)
}

// Renew has a node's certificate renewed by the first of the nodes at these addresses that can, and learns which
// authorities there are.
func Renew(ctx context.Context, keys *trust.Keys, addresses []string) error {
	if keys.IsKeeper() {
		return keys.RenewSelf()
	}
	certificate, csr, err := keys.RenewalRequest()
	if err != nil {
		return err
	}
	var errs []error
	for _, address := range addresses {
		answer, err := renewAt(ctx, address, keys.Shows(), door.RenewRequest{Certificate: certificate, CSR: csr})
		if err == nil {
			err = keys.Adopt(answer.Authorities)
		}
		if err == nil {
			err = keys.Renewed(answer.Certificate)
		}
		if err == nil && !keys.IsCurrent() {
			err = errors.New("it does not hold the key of the newest authority yet")
		}
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("ask %s: %w", address, err))
	}
	return errors.Join(append(errs, errors.New("no node renewed this node's certificate"))...)
}

// renewAt asks one node, and shows nothing: the request itself proves whose it is, and a certificate that has expired
// would be refused.
func renewAt(ctx context.Context, address string, known []trust.Shows,
	request door.RenewRequest) (*door.RenewAnswer, error) {
	known = slices.Clone(known)
	for i := range known {
		known[i].Certificate = nil
	}
	by := wire.Client(func() []trust.Shows { return known })
	defer by.CloseIdleConnections()
	answer := &door.RenewAnswer{}
	return answer, post(ctx, by, wire.URL(address)+door.PathRenew, request, answer)
}

// Follow brings the keys of a node to the newest authority that they know: a keeper fetches the key of that from
// another one at these addresses, and the node's certificate is renewed.
func Follow(ctx context.Context, keys *trust.Keys, addresses []string) error {
	var errs []error
	for _, address := range addresses {
		if !keys.Lacks() {
			break
		}
		answer := &door.KeyAnswer{}
		at := where{address, door.PathAuthorityKey, trust.ClientTLS(keys.Shows)}
		err := at.post(ctx, func(channel []byte) (any, error) {
			proof, err := keys.HolderProof(channel)
			return door.KeyRequest{Proof: proof}, err
		}, answer)
		if err == nil {
			err = keys.Hold(answer.Key)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("ask %s for the key of the newest authority: %w", address, err))
		}
	}
	if keys.Lacks() {
		return errors.Join(append(errs, errors.New("no node gave the key of the newest authority"))...)
	}
	if keys.IsCurrent() {
		return nil
	}
	return Renew(ctx, keys, addresses)
}

// CatchUp asks nodes at these addresses, until one answers, whether the authority has been replaced while this node was
// away, and follows if it has.
func CatchUp(ctx context.Context, keys *trust.Keys, addresses []string) error {
	for _, address := range addresses {
		_, newest, err := keys.Ask(ctx, address)
		switch {
		case err != nil:
			continue
		case newest.Equal(keys.CA()):
			return nil
		}
		return Renew(ctx, keys, addresses)
	}
	return nil
}

// renewable returns what credentials show. To a peer whose newest authority has not signed them they are renewed.
func renewable(credentials []*trust.Credentials) func() []trust.Shows {
	var mu sync.Mutex
	all := slices.Clone(credentials)
	return func() (shows []trust.Shows) {
		mu.Lock()
		defer mu.Unlock()
		for i, one := range all {
			for _, show := range trust.ShowsOf([]*trust.Credentials{one}) {
				if one.Identity().Kind == access.OfUser {
					show.Renew = func() *tls.Certificate {
						mu.Lock()
						defer mu.Unlock()
						if all[i] == one {
							all[i] = renewUser(one)
						}
						return trust.ShowsOf(all[i : i+1])[0].Certificate
					}
				}
				shows = append(shows, show)
			}
		}
		return shows
	}
}

// renewWithin bounds how long the renewal of a user's certificate may hold up what is asked with it.
const renewWithin = 3 * time.Second

// renewUser renews credentials at one of their addresses. While none does, the old ones may count yet.
func renewUser(one *trust.Credentials) *trust.Credentials {
	ctx, cancel := context.WithTimeout(context.Background(), renewWithin)
	defer cancel()
	if fresh, err := RenewUser(ctx, one); err == nil {
		return fresh
	}
	return one
}

// RenewUser returns credentials by the newest authority for the same key and as long, from the first of their nodes
// that makes some. The error holds a *wire.Failure if a node said no.
func RenewUser(ctx context.Context, one *trust.Credentials) (*trust.Credentials, error) {
	certificate, csr, err := one.RenewalRequest()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, address := range one.Addresses {
		answer, err := renewAt(ctx, address, trust.ShowsOf([]*trust.Credentials{one}),
			door.RenewRequest{Certificate: certificate, CSR: csr})
		if err == nil {
			return one.Renewed(answer.Certificate, answer.Authorities)
		}
		errs = append(errs, fmt.Errorf("ask %s: %w", address, err))
	}
	return nil, errors.Join(append(errs, errors.New("no node renewed the credentials"))...)
}
