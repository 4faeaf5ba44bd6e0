package provider

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Visit is a sign-in with a browser of the machine where it was begun (RFC 6749, 4.1, with PKCE of RFC 7636). The
// provider leads the browser back to a program there (RFC 8252, 7.3), with a code.
type Visit struct {
	// URL is the page to open, and what the browser is led back to has the same State.
	URL, State string
	// Redirect is where that program listens.
	Redirect string
}

// Arrival is what the browser has brought, and what the program had kept for itself.
type Arrival struct{ Code, Verifier string }

// Lead begins a sign-in that leads a browser back to this machine's loopback address. The challenge is that of the
// verifier (RFC 7636, S256) which only who began it knows. The client is the address of who asks.
func (p *Provider) Lead(ctx context.Context, client, redirect, challenge string) (*Visit, error) {
	if err := checkRedirect(redirect); err != nil {
		return nil, err
	}
	if sum, err := base64.RawURLEncoding.DecodeString(challenge); err != nil || len(sum) != sha256.Size {
		return nil, errors.New("a sign-in with a browser needs the S256 challenge of RFC 7636")
	}
	release, err := p.enter(client)
	if err != nil {
		return nil, err
	}
	defer release()
	known, err := p.discover(oidc.ClientContext(ctx, p.asks))
	if err != nil {
		return nil, err
	}
	if at := known.Endpoint().AuthURL; !strings.HasPrefix(at, "https://") || !canShow(at) {
		return nil, fmt.Errorf("the OpenID Connect provider %s names no authorization_endpoint with https", p.settings.Issuer)
	}
	visit := &Visit{State: rand.Text(), Redirect: redirect}
	config := p.client(known)
	config.RedirectURL = redirect
	visit.URL = config.AuthCodeURL(visit.State, oidc.Nonce(visit.nonce()),
		oauth2.SetAuthURLParam("code_challenge", challenge), oauth2.SetAuthURLParam("code_challenge_method", "S256"))
	return visit, nil
}

// checkRedirect is an error if a browser would be led to another machine: a code is for the one that began.
func checkRedirect(text string) error {
	u, err := url.Parse(text)
	if err == nil && u.Scheme == "http" && u.User == nil {
		host, port, split := net.SplitHostPort(u.Host)
		if at, notIP := netip.ParseAddr(host); split == nil && notIP == nil && at.IsLoopback() && port != "" {
			return nil
		}
	}
	return fmt.Errorf("a browser is led back to the loopback address of its machine, as http://127.0.0.1:PORT, not to %q", text)
}

// nonce is what the id token repeats: no token of another sign-in counts for this one.
func (v *Visit) nonce() string {
	sum := sha256.Sum256([]byte("starling nonce " + v.State))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Arrive returns the name of the user whose browser was led back.
func (p *Provider) Arrive(ctx context.Context, client string, visit *Visit, arrival Arrival) (string, error) {
	return p.vouched(ctx, client, visit.nonce(), func(ctx context.Context, config *oauth2.Config) (*oauth2.Token, error) {
		config.RedirectURL = visit.Redirect
		return config.Exchange(ctx, arrival.Code, oauth2.VerifierOption(arrival.Verifier))
	})
}
