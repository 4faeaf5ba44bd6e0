// Package provider has a provider of OpenID Connect say who somebody is who signs in with a browser: on any device, as
// RFC 8628 has it, or on the machine where the sign-in was begun.
//
// This cluster asks the provider itself, and gets the id token from it: no token is ever taken from who signs in, and
// none is given out. What the token says is verified all the same.
package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"starling/terms/access"
)

// Limits of what a provider does.
const (
	// answerWithin bounds the wait for one answer, answerBytesMax its size.
	answerWithin   = 10 * time.Second
	answerBytesMax = 1 << 20
	// enterWithin bounds how long a user may take to enter the code, whatever the provider allows.
	enterWithin = 30 * time.Minute
	// skewMax is by how much the provider's clock may differ.
	skewMax = time.Minute
	// waitingMax bounds how many sign in at a time, clientWaitingMax how many of one address.
	waitingMax       = 256
	clientWaitingMax = 32
	// shownBytesMax bounds what people are shown.
	shownBytesMax = 2048
	briefBytesMax = 300
)

// EmailClaim is the claim that counts only if the provider says that it has verified it.
const EmailClaim = "email"

// Settings say which provider is asked, and as whom.
type Settings struct {
	// Issuer is its URL.
	Issuer string
	// Client is the id by which it knows the cluster, Secret what proves that, "" for nothing.
	Client, Secret string
	// Claim is the one that is the user's name.
	Claim string
}

// Provider says who somebody is. It is safe for concurrent use.
type Provider struct {
	settings Settings
	asks     *http.Client
	// known is what the provider has told of itself last, nil for nothing yet.
	known atomic.Pointer[oidc.Provider]

	// waiting are how many sign in of each client, and all of all.
	mu      sync.Mutex
	waiting map[string]int
	all     int
}

// ErrUnavailable tells that another try may succeed.
var ErrUnavailable = errors.New("the OpenID Connect provider cannot be asked")

// ErrBusy tells that too many sign in.
var ErrBusy = errors.New("too many users sign in at this node, or from where you are: try again in a minute")

// New returns the provider of the settings. It is asked when somebody signs in, over HTTPS by the transport.
func New(settings Settings, transport http.RoundTripper) *Provider {
	return &Provider{
		settings: settings, waiting: map[string]int{},
		asks: &http.Client{
			Transport: bounded{transport}, Timeout: answerWithin,
			CheckRedirect: func(to *http.Request, _ []*http.Request) error {
				return fmt.Errorf("it redirects to %s, which is not followed", to.URL.Redacted())
			},
		},
	}
}

// proving returns what asks for a code, and proves to be the client: the library does that for tokens alone.
func (p *Provider) proving() *http.Client {
	client := *p.asks
	client.Transport = proving{client.Transport, p.settings}
	return &client
}

// proving sends the client's secret, if it has one.
type proving struct {
	http.RoundTripper
	settings Settings
}

// RoundTrip implements http.RoundTripper.
func (b proving) RoundTrip(request *http.Request) (*http.Response, error) {
	if b.settings.Secret != "" {
		request = request.Clone(request.Context())
		request.SetBasicAuth(url.QueryEscape(b.settings.Client), url.QueryEscape(b.settings.Secret))
	}
	return b.RoundTripper.RoundTrip(request)
}

// bounded reads no more of an answer than it may have.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, fmt.Errorf("it names %s, which is not HTTPS", request.URL.Redacted())
	}
	answer, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, answerBytesMax)
	}
	return answer, err
}

// Begin asks for a code that the user enters in a browser, and where. The client is the address of who asks.
func (p *Provider) Begin(ctx context.Context, client string) (*oauth2.DeviceAuthResponse, error) {
	release, err := p.enter(client)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx = oidc.ClientContext(ctx, p.asks)
	known, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	if known.Endpoint().DeviceAuthURL == "" {
		return nil, fmt.Errorf("the OpenID Connect provider %s does not let devices sign in: it names no "+
			"device_authorization_endpoint", p.settings.Issuer)
	}
	device, err := p.client(known).DeviceAuth(oidc.ClientContext(ctx, p.proving()))
	if err != nil {
		return nil, p.refused(err)
	}
	if isMissing := device.DeviceCode == "" || device.UserCode == "" || device.VerificationURI == ""; isMissing ||
		!canShow(device.UserCode) || !canShow(device.VerificationURI) || !canShow(device.VerificationURIComplete) {
		return nil, fmt.Errorf("the OpenID Connect provider %s gives no code that a user can enter, or no address for it",
			p.settings.Issuer)
	}
	return device, nil
}

// canShow tells whether a text of others may go to a terminal.
func canShow(text string) bool {
	return len(text) <= shownBytesMax && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Finish waits until the user has entered the code, and returns the user's name.
func (p *Provider) Finish(ctx context.Context, client string, device *oauth2.DeviceAuthResponse) (string, error) {
	return p.vouched(ctx, client, "", func(ctx context.Context, config *oauth2.Config) (*oauth2.Token, error) {
		return config.DeviceAccessToken(ctx, device)
	})
}

// vouched gets a token and returns the name of the user whom it is about; with a nonce, that of a token that has it.
func (p *Provider) vouched(ctx context.Context, client, nonce string,
	get func(context.Context, *oauth2.Config) (*oauth2.Token, error)) (name string, err error) {
	release, err := p.enter(client)
	if err != nil {
		return "", err
	}
	defer release()
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.asks), enterWithin)
	defer cancel()
	known := p.known.Load()
	if known == nil {
		if known, err = p.discover(ctx); err != nil {
			return "", err
		}
	}
	token, err := get(ctx, p.client(known))
	if err != nil {
		return "", p.refused(err)
	}
	raw, isText := token.Extra("id_token").(string)
	if !isText {
		return "", fmt.Errorf("the OpenID Connect provider %s gives no id token: let its client %q have the scope %s",
			p.settings.Issuer, p.settings.Client, oidc.ScopeOpenID)
	}
	claims, err := p.verified(ctx, known, raw)
	if err == nil && nonce != "" && claims["nonce"] != nonce {
		err = fmt.Errorf("the id token of %s is of another sign-in: sign in again", p.settings.Issuer)
	}
	if _, isTold := claims[p.settings.Claim]; err == nil && !isTold && known.UserInfoEndpoint() != "" {
		claims, err = p.more(ctx, known, token, claims["sub"])
	}
	if err != nil {
		return "", err
	}
	return p.nameIn(claims)
}

// enter takes one of the places of those who sign in, of which a client may have some.
func (p *Provider) enter(client string) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= waitingMax || p.waiting[client] >= clientWaitingMax {
		return nil, ErrBusy
	}
	p.all++
	p.waiting[client]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		if p.waiting[client]--; p.waiting[client] == 0 {
			delete(p.waiting, client)
		}
	}, nil
}

// discover asks the provider what it is and where it answers.
func (p *Provider) discover(ctx context.Context) (*oidc.Provider, error) {
	known, err := oidc.NewProvider(ctx, p.settings.Issuer)
	var other *oidc.IssuerMismatchError
	switch {
	case errors.As(err, &other):
		return nil, fmt.Errorf("what answers at %s calls itself %q: set oidc.issuer to exactly what the provider calls itself",
			p.settings.Issuer, other.Discovered)
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %s", ErrUnavailable, p.settings.Issuer, brief(err))
	}
	p.known.Store(known)
	return known, nil
}

// client is the cluster as the provider knows it. How it proves that is said, for trying would ask twice each time.
func (p *Provider) client(known *oidc.Provider) *oauth2.Config {
	at := known.Endpoint()
	at.AuthStyle = oauth2.AuthStyleInParams
	if p.settings.Secret != "" {
		at.AuthStyle = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{ClientID: p.settings.Client, ClientSecret: p.settings.Secret, Endpoint: at,
		Scopes: []string{oidc.ScopeOpenID, "profile", EmailClaim}}
}

// refused says what a provider that gave no code or no token has against it.
func (p *Provider) refused(err error) error {
	var told *oauth2.RetrieveError
	switch isTold := errors.As(err, &told); {
	case err == context.DeadlineExceeded: // not that of one request, which is wrapped
		return errLate
	case !isTold:
		return fmt.Errorf("%w: %s: %s", ErrUnavailable, p.settings.Issuer, brief(err))
	case told.ErrorCode == "": // the rest is a page for people
		return fmt.Errorf("%w: %s: %s", ErrUnavailable, p.settings.Issuer, told.Response.Status)
	}
	switch told.ErrorCode {
	case "access_denied":
		return fmt.Errorf("the sign-in was refused at %s", p.settings.Issuer)
	case "expired_token":
		return errLate
	case "invalid_grant":
		return fmt.Errorf("%s knows the code no more: it has been used, or was not entered in time: sign in again",
			p.settings.Issuer)
	case "invalid_client", "unauthorized_client":
		return fmt.Errorf("%s does not let client %q ask (%s): set oidc.client and oidc.secret_file as the client stands there, "+
			"and let it sign devices in", p.settings.Issuer, p.settings.Client, told.ErrorCode)
	case "server_error", "temporarily_unavailable":
		return fmt.Errorf("%w: %s: %s", ErrUnavailable, p.settings.Issuer, told.ErrorCode)
	}
	return fmt.Errorf("%s answers %q to client %q", p.settings.Issuer, told.ErrorCode, p.settings.Client)
}

// brief is what an error says that may quote a whole page of the provider's.
func brief(err error) string {
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, err.Error())
	if len(text) > briefBytesMax {
		text = strings.ToValidUTF8(text[:briefBytesMax], "") + " …"
	}
	return text
}

var errLate = errors.New("the code was not entered in time: sign in again")

// verified returns what an id token says, if it counts.
func (p *Provider) verified(ctx context.Context, known *oidc.Provider, raw string) (map[string]any, error) {
	token, err := known.Verifier(&oidc.Config{ClientID: p.settings.Client,
		Now: func() time.Time { return time.Now().Add(-skewMax) }}).Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("the id token of %s does not count: %s", p.settings.Issuer, brief(err))
	}
	claims := map[string]any{}
	if err := token.Claims(&claims); err != nil {
		return nil, fmt.Errorf("the id token of %s cannot be read: %w", p.settings.Issuer, err)
	}
	if party, isTold := claims["azp"]; isTold && party != p.settings.Client {
		return nil, fmt.Errorf("the id token of %s was made for client %q, not for %q", p.settings.Issuer, party,
			p.settings.Client)
	}
	return claims, nil
}

// more asks for what many a provider does not put into the id token: it must be about the same user.
func (p *Provider) more(ctx context.Context, known *oidc.Provider, token *oauth2.Token,
	subject any) (map[string]any, error) {
	info, err := known.UserInfo(ctx, oauth2.StaticTokenSource(token))
	claims := map[string]any{}
	if err == nil {
		err = info.Claims(&claims)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s does not say who the user is: %s", p.settings.Issuer, brief(err))
	case claims["sub"] != subject || subject == "":
		return nil, fmt.Errorf("%s says who user %q is, and was asked about %q", p.settings.Issuer, claims["sub"], subject)
	}
	return claims, nil
}

// nameIn returns the name of the user whom the claims are about.
func (p *Provider) nameIn(claims map[string]any) (string, error) {
	name, isText := claims[p.settings.Claim].(string)
	switch {
	case !isText || name == "":
		return "", fmt.Errorf("%s has no text as claim %q of the user: let the provider add it, or set oidc.claim to one that "+
			"it has", p.settings.Issuer, p.settings.Claim)
	case p.settings.Claim == EmailClaim && claims["email_verified"] != true && claims["email_verified"] != "true":
		return "", fmt.Errorf("%s does not say that it has verified the address %q: let it, or set oidc.claim to another claim",
			p.settings.Issuer, name)
	case access.NameProblem(name) != "":
		return "", fmt.Errorf("%s names a user that can be none: %s", p.settings.Issuer, access.NameProblem(name))
	}
	return name, nil
}
