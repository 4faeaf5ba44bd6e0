// Package providertest is a provider of OpenID Connect in this process, that of github.com/zitadel/oidc. Tests do what
// users do there with a browser.
package providertest

import (
	"context"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// Client and Secret are what the only client of a provider shows.
const (
	Client = "starling"
	Secret = "a secret: %40"
)

// Provider lets users sign in that are called by their address.
type Provider struct {
	server  *httptest.Server
	storage *storage.Storage
}

// users has one for each address.
type users struct{}

// GetUserByID implements storage.UserStore: the address is the id.
func (users) GetUserByID(address string) *storage.User {
	return &storage.User{ID: address, Username: address, Email: address, EmailVerified: true}
}

// GetUserByUsername implements storage.UserStore.
func (u users) GetUserByUsername(address string) *storage.User { return u.GetUserByID(address) }

// ExampleClientID implements storage.UserStore.
func (users) ExampleClientID() string { return "" }

// clients lets the only one sign in devices, and lead browsers back to where they are.
type clients struct{ *storage.Storage }

// GetClientByClientID implements op.Storage.
func (c clients) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	known, err := c.Storage.GetClientByClientID(ctx, id)
	return client{known}, err
}

type client struct{ op.Client }

// RedirectURIGlobs implements op.HasRedirectGlobs: a browser comes back to any port of its machine.
func (client) RedirectURIGlobs() []string { return []string{"http://127.0.0.1:*/"} }

// PostLogoutRedirectURIGlobs implements op.HasRedirectGlobs.
func (client) PostLogoutRedirectURIGlobs() []string { return nil }

// GrantTypes implements op.Client.
func (client) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeDeviceCode, oidc.GrantTypeCode}
}

// New starts a provider.
func New() (*Provider, error) {
	all := map[string]*storage.Client{Client: storage.DeviceClient(Client, Secret)}
	p := &Provider{storage: storage.NewStorageWithClients(users{}, all)}
	config := &op.Config{DeviceAuthorization: op.DeviceAuthorizationConfig{
		Lifetime: time.Minute, PollInterval: time.Second, UserFormPath: "/device", UserCode: op.UserCodeBase20,
	}}
	if _, err := rand.Read(config.CryptoKey[:]); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	p.server = httptest.NewTLSServer(mux)
	answer, err := op.NewProvider(config, clients{p.storage}, op.StaticIssuer(p.server.URL))
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("make a provider: %w", err)
	}
	mux.Handle("/", answer)
	return p, nil
}

// Issuer is its URL.
func (p *Provider) Issuer() string { return p.server.URL }

// Transport is how it is asked by who knows its certificate.
func (p *Provider) Transport() http.RoundTripper { return p.server.Client().Transport }

// Certificate is what it shows, in PEM.
func (p *Provider) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// Enter has a user enter a code and say yes.
func (p *Provider) Enter(code, user string) error {
	return p.storage.CompleteDeviceAuthorization(context.Background(), code, user)
}

// Refuse has a user enter a code and say no.
func (p *Provider) Refuse(code string) error {
	return p.storage.DenyDeviceAuthorization(context.Background(), code)
}

// Visit has a user open a page in a browser and say yes, and be led back. It returns what the browser shows then.
func (p *Provider) Visit(page, user string) (string, error) {
	browser := *p.server.Client()
	browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := browser.Get(page)
	if err != nil {
		return "", err
	}
	answer.Body.Close()
	login, err := answer.Location()
	if err != nil {
		return "", fmt.Errorf("the provider answers %s: %w", answer.Status, err)
	}
	id := login.Query().Get("authRequestID")
	if err := p.storage.CheckUsernamePassword(user, "", id); err != nil {
		return "", err
	}
	browser.CheckRedirect = nil
	answer, err = browser.Get(p.Issuer() + "/authorize/callback?id=" + id)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// Close lets it answer no more.
func (p *Provider) Close() { p.server.Close() }
