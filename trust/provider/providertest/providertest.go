// Package providertest is a provider of OpenID Connect in this process, that of github.com/zitadel/oidc. Tests do what
// users do there with a browser.
package providertest

import (
	"context"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
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

// New starts a provider.
func New() (*Provider, error) {
	clients := map[string]*storage.Client{Client: storage.DeviceClient(Client, Secret)}
	p := &Provider{storage: storage.NewStorageWithClients(users{}, clients)}
	config := &op.Config{DeviceAuthorization: op.DeviceAuthorizationConfig{
		Lifetime: time.Minute, PollInterval: time.Second, UserFormPath: "/device", UserCode: op.UserCodeBase20,
	}}
	if _, err := rand.Read(config.CryptoKey[:]); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	p.server = httptest.NewTLSServer(mux)
	answer, err := op.NewProvider(config, p.storage, op.StaticIssuer(p.server.URL))
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

// Close lets it answer no more.
func (p *Provider) Close() { p.server.Close() }
