package vault

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"starling/peer/credential/vault/vaulttest"
	"starling/terms"
	"starling/terms/access"
)

// signer signs tokens that the server takes.
type signer struct {
	key *ecdsa.PrivateKey
	t   *testing.T
}

func newServer(t *testing.T) (*vaulttest.Server, *signer) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := vaulttest.New(func() (*jose.JSONWebKeySet, error) {
		return &jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "1"}}}, nil
	})
	t.Cleanup(s.Close)
	s.Role("web", map[string]string{"starling_pool": "team"})
	return s, &signer{key, t}
}

// token is one of an instance in a pool.
func (s *signer) token(pool string) string {
	by, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: s.key, KeyID: "1"}}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	token, err := jwt.Signed(by).Claims(jwt.Claims{Subject: "web", Audience: jwt.Audience{"vault"},
		Expiry: jwt.NewNumericDate(time.Now().Add(time.Minute))}).Claims(map[string]any{"starling_pool": pool}).Serialize()
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

func use(at terms.VaultSecret, version uint32) []terms.SecretUse {
	at.Mount = "kv"
	return []terms.SecretUse{{Name: "of-the-pool"}, {Name: "db", Vault: at, Version: version}}
}

func TestRead(t *testing.T) {
	server, by := newServer(t)
	server.Put("team/db", map[string]any{"password": "first"})
	server.Put("team/db", map[string]any{"password": "second", "port": 5432, "hosts": []string{"a", "b"}})
	server.Put("team/old", map[string]any{"password": "first"})
	server.Put("team/old", nil)
	server.Put("team/large", map[string]any{"all": strings.Repeat("x", access.SecretBytesMax+1)})
	settings := Settings{Address: server.URL, Auth: AuthDefault, Role: "web"}
	for _, c := range []struct {
		name, pool string
		at         terms.VaultSecret
		version    uint32
		want       string
	}{
		{"a text", "team", terms.VaultSecret{Path: "team/db", Field: "password"}, 0, "second"},
		{"a version", "team", terms.VaultSecret{Path: "team/db", Field: "password"}, 1, "first"},
		{"a number", "team", terms.VaultSecret{Path: "team/db", Field: "port"}, 0, "5432"},
		{"a list", "team", terms.VaultSecret{Path: "team/db", Field: "hosts"}, 0, `["a","b"]`},
		{"all", "team", terms.VaultSecret{Path: "team/db"}, 1, `{"password":"first"}`},
		{"a field that is not there", "team", terms.VaultSecret{Path: "team/db", Field: "user"}, 0,
			"kv/team/db in Vault at URL has no field user; it has hosts, password, port"},
		{"no secret", "team", terms.VaultSecret{Path: "team/no"}, 0,
			"the Vault at URL has no secret kv/team/no in an engine of the kind KV, version 2"},
		{"no version", "team", terms.VaultSecret{Path: "team/db"}, 9,
			"the Vault at URL has no secret kv/team/db in an engine of the kind KV, version 2"},
		{"a deleted version", "team", terms.VaultSecret{Path: "team/old"}, 0,
			"the version of kv/team/old in Vault at URL was deleted there"},
		{"too much", "team", terms.VaultSecret{Path: "team/large", Field: "all"}, 0,
			"kv/team/large in Vault at URL has 65537 bytes, at most 65536 are given to an instance"},
		{"another pool", "other", terms.VaultSecret{Path: "team/db"}, 0, "sign in to Vault at URL as role web: it says 400: " +
			`error validating token: claim "starling_pool" does not match any associated bound claim values`},
		{"another role", "team", terms.VaultSecret{Path: "team/db", Role: "admin"}, 0,
			`sign in to Vault at URL as role admin: it says 400: role "admin" could not be found`},
	} {
		t.Run(c.name, func(t *testing.T) {
			asks, err := Open(settings)
			if err != nil {
				t.Fatal(err)
			}
			values, missing := asks.Read(t.Context(), by.token(c.pool), use(c.at, c.version))
			got := string(values["db"])
			if len(missing) > 0 {
				got = missing["db"]
			} else if names := slices.Collect(maps.Keys(values)); len(names) != 1 {
				t.Errorf("there are values for %q, want for db alone", names)
			}
			if want := strings.ReplaceAll(c.want, "URL", server.URL); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if open := server.Open(); open != 0 {
				t.Errorf("%d tokens are left open", open)
			}
		})
	}
}

// TestWithoutVault reads where no server is known or none answers.
func TestWithoutVault(t *testing.T) {
	server, by := newServer(t)
	at := use(terms.VaultSecret{Path: "team/db"}, 0)
	for want, settings := range map[string]Settings{
		"this node is told of no server of Vault: set vault.address in its settings": {},
		"no role of Vault is named: have the job name one under vault, or vault.role in the settings of nodes": {
			Address: server.URL, Auth: AuthDefault},
		"it says 503: Vault is sealed": {Address: server.URL, Auth: AuthDefault, Role: "web"},
		"sign in to Vault at http://127.0.0.1:1 as role web: Put \"http://127.0.0.1:1": {
			Address: "http://127.0.0.1:1", Auth: AuthDefault, Role: "web"},
	} {
		server.Seal(true)
		asks, err := Open(settings)
		if err != nil {
			t.Fatal(err)
		}
		if _, missing := asks.Read(t.Context(), by.token("team"), at); !strings.Contains(missing["db"], want) {
			t.Errorf("got %q, want that %s", missing, want)
		}
	}
	if _, err := Open(Settings{Address: server.URL, CAFile: "/none"}); err == nil {
		t.Error("an authority that is not there is taken")
	}
	var none *Server
	if values, missing := none.Read(t.Context(), "", at[:1]); len(missing)+len(values) != 0 {
		t.Errorf("for secrets of the pool there are %d values, and %q", len(values), missing)
	}
}

// TestSilentVault reads from a server that takes connections and says nothing.
func TestSilentVault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent, _ := net.Pipe()
		asks, err := Open(Settings{Address: "http://vault", Auth: AuthDefault, Role: "web"})
		if err != nil {
			t.Fatal(err)
		}
		asks.config.HttpClient = &http.Client{Transport: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return silent, nil }}}
		for _, want := range []time.Duration{time.Second, 0} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, missing := asks.Read(ctx, "token", use(terms.VaultSecret{Path: "team/db"}, 0))
			cancel()
			if took := time.Since(began); took != want || missing["db"] == "" {
				t.Errorf("after %s it says %q, want that within %s", took, missing, want)
			}
		}
	})
}
