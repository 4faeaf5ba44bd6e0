package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/rogpeppe/go-internal/testscript"

	"starling/api/door"
	"starling/peer/credential/vault/vaulttest"
	"starling/trust"
)

// vaultKey finds the server of Vault of a script.
type vaultKey struct{}

// vaultOf works on a server like Vault that takes the id tokens of a cluster, which it asks for its keys:
// vault start VARIABLE ADDRESS CA.PEM puts its URL into a variable, vault role NAME CLAIM=VALUE makes a role, vault put
// PATH FIELD=VALUE... a secret, vault seal yes has it answer nothing, and vault open NUMBER wants so many open tokens.
func vaultOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: vault start|role|put|seal|open ARGUMENT...")
	}
	if args[0] == "start" {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(ts.ReadFile(args[3])))
		s := vaulttest.New(func() (*jose.JSONWebKeySet, error) { return keysOf(args[2], roots) })
		ts.Defer(s.Close)
		ts.Setenv(args[1], s.URL)
		*ts.Value(vaultKey{}).(**vaulttest.Server) = s
		return
	}
	s := *ts.Value(vaultKey{}).(**vaulttest.Server)
	pairs := map[string]string{}
	for _, arg := range args[2:] {
		name, value, _ := strings.Cut(arg, "=")
		pairs[name] = value
	}
	switch args[0] {
	case "role":
		s.Role(args[1], pairs)
	case "put":
		fields := map[string]any{}
		for name, value := range pairs {
			fields[name] = value
		}
		s.Put(args[1], fields)
	case "seal":
		s.Seal(args[1] == "yes")
	case "open":
		if open := strconv.Itoa(s.Open()); open != args[1] {
			ts.Fatalf("%s tokens are open, want %s", open, args[1])
		}
	default:
		ts.Fatalf("vault does not know %s", args[0])
	}
}

// keysOf asks a peer for the keys that sign id tokens.
func keysOf(address string, roots *x509.CertPool) (*jose.JSONWebKeySet, error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: trust.ServerName}}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+door.PathJWKS, nil)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the peer answers %s", response.Status)
	}
	keys := &jose.JSONWebKeySet{}
	return keys, json.NewDecoder(response.Body).Decode(keys)
}
