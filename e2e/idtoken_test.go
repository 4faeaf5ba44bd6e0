package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/rogpeppe/go-internal/testscript"

	"starling/trust"
)

// idToken verifies an id token as a program outside of the cluster does that trusts an issuer, and writes what it
// says: idtoken ISSUER ADDRESS CA.PEM AUDIENCE FILE. The issuer is found at the address. With ! the token is refused.
func idToken(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 5 {
		ts.Fatalf("usage: [!] idtoken ISSUER ADDRESS CA.PEM AUDIENCE FILE")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(ts.ReadFile(args[2])))
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: trust.ServerName},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, args[1])
		},
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	ctx = oidc.ClientContext(ctx, &http.Client{Transport: transport})
	provider, err := oidc.NewProvider(ctx, args[0])
	ts.Check(err)
	token, err := provider.VerifierContext(ctx, &oidc.Config{ClientID: args[3]}).
		Verify(ctx, strings.TrimSpace(ts.ReadFile(args[4])))
	if neg {
		if err == nil {
			ts.Fatalf("the token of %s is taken", token.Subject)
		}
		_, _ = fmt.Fprintln(ts.Stderr(), err)
		return
	}
	ts.Check(err)
	var claims map[string]any
	ts.Check(token.Claims(&claims))
	for name, value := range claims {
		_, _ = fmt.Fprintf(ts.Stdout(), "%s %v\n", name, value)
	}
}
