package trust

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"starling/terms/access"
)

// cluster makes a cluster, with its first node a.
func cluster(t *testing.T) *Keys {
	t.Helper()
	keys, err := Create(filepath.Join(t.TempDir(), Folder), "a")
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func request(t *testing.T) *Request {
	t.Helper()
	r, err := NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestKeysComeBack(t *testing.T) {
	a := cluster(t)
	again, err := Load(a.folder)
	if err != nil {
		t.Fatal(err)
	}
	if again.Node() != "a" || again.Cluster() != a.Cluster() || !again.IsKeeper() || Hash(again.CA()) != Hash(a.CA()) {
		t.Errorf("got node %s of %s, keeper %v", again.Node(), again.Cluster(), again.IsKeeper())
	}
	if !again.instances.Certificate.Equal(a.instances.Certificate) && !sameKey(again.instances.Certificate.PublicKey,
		a.instances.Certificate.PublicKey) {
		t.Error("what a node signed for its instances is not known after a restart")
	}
	err = filepath.WalkDir(a.folder, func(path string, entry fs.DirEntry, err error) error {
		info, _ := entry.Info()
		if want := fs.FileMode(0o600); !entry.IsDir() && info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := os.Chmod(filepath.Join(a.folder, authorityKeyFile), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(a.folder); !errors.Is(err, ErrOpenToOthers) || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("got %v for a key that others can read", err)
	}
	if _, err := Load(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v for a node in no cluster", err)
	}
}

func TestSignaturesAreForTheirKind(t *testing.T) {
	a := cluster(t)
	key := request(t).key.Public()
	cases := []struct {
		name string
		by   *Authority
		who  Identity
		want string
	}{
		{"a node", a.signer(), Identity{Kind: access.OfNode, Name: "b"}, ""},
		{"a user", a.signer(), Identity{Kind: access.OfUser, Name: "alice@example.org", Role: access.Viewer}, ""},
		{"an instance", a.instances, Identity{Kind: access.OfInstance, Name: "etl/web/server/2",
			Allocation: "etl/web.server[2]#7"}, ""},
		{"a node by what signs for instances", a.instances, Identity{Kind: access.OfNode, Name: "b"}, "does not sign for"},
		{"an instance by the cluster", a.signer(), Identity{Kind: access.OfInstance, Name: "j/t/0", Allocation: "j.t[0]#7"},
			"does not sign for"},
		{"a user without a role", a.signer(), Identity{Kind: access.OfUser, Name: "alice"}, ""},
		{"a name with a slash", a.signer(), Identity{Kind: access.OfUser, Name: "a/b/c", Role: access.Admin},
			"must have 1 to 100"},
		{"no name", a.signer(), Identity{Kind: access.OfNode}, "must have 1 to 100"},
		{"nobody", a.signer(), Identity{}, "of no kind"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			der, err := c.by.Sign(key, c.who, time.Hour)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			leaf, err := parseCertificate(certificatePEM(der))
			if err != nil {
				t.Fatal(err)
			}
			c.who.Cluster = a.Cluster()
			if got, err := IdentityOf(leaf); err != nil || got != c.who {
				t.Errorf("got %+v, %v, want %+v", got, err, c.who)
			}
			if isNode := c.who.Kind == access.OfNode; (leaf.VerifyHostname(ServerName) == nil) != isNode {
				t.Errorf("that it is called %s is %v", ServerName, !isNode)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	a, other := cluster(t), cluster(t)
	make := func(life time.Duration) *Token {
		token, err := a.NewToken([]string{"10.0.0.1:7460"}, Claims{Expires: time.Now().Add(life), Node: "b"})
		if err != nil {
			t.Fatal(err)
		}
		line, err := token.Line()
		if err != nil {
			t.Fatal(err)
		}
		if token, err = ParseToken(" " + line + "\n"); err != nil {
			t.Fatal(err)
		}
		return token
	}
	good, old := make(time.Minute), make(-time.Second)
	channel, csr := []byte("channel"), []byte("csr")
	changed := *good
	changed.Claims = []byte(strings.Replace(string(good.Claims), `"b"`, `"c"`, 1))
	guessed := *good
	guessed.Secret = []byte("0123456789abcdef0123456789abcdef")
	cases := []struct {
		name         string
		at           *Keys
		token        *Token
		channel, csr string
		want         string
	}{
		{"good", a, good, "channel", "csr", ""},
		{"expired", a, old, "channel", "csr", "expired"},
		{"of another cluster", other, good, "channel", "csr", "not of this cluster"},
		{"with other claims", a, &changed, "channel", "csr", "not of this cluster, or was changed"},
		{"with a guessed secret", a, &guessed, "channel", "csr", "not of this cluster"},
		{"replayed on another connection", a, good, "other", "csr", "not of this cluster"},
		{"replayed for another key", a, good, "channel", "other", "not of this cluster"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			claims, err := c.at.Check(c.token.Claims, c.token.Proof(channel, csr), []byte(c.channel), []byte(c.csr))
			if c.want == "" && (err != nil || claims.Node != "b") || c.want != "" && (err == nil ||
				!strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %+v, %v, want %q", claims, err, c.want)
			}
		})
	}
}

// nobody is a cluster that knows no keys.
func nobody(Identity, crypto.PublicKey) (Standing, error) { return Standing{}, nil }

// standsAs is a cluster that knows a key so.
func standsAs(known *Standing) func(Identity, crypto.PublicKey) (Standing, error) {
	return func(Identity, crypto.PublicKey) (Standing, error) { return *known, nil }
}

func TestRenewal(t *testing.T) {
	a := cluster(t)
	b, err := a.Another(filepath.Join(t.TempDir(), Folder), "b")
	if err != nil {
		t.Fatal(err)
	}
	// Its certificate has expired: the key proves whose it is.
	old, err := a.signer().Sign(b.key.Public(), Identity{Kind: access.OfNode, Name: "b"}, -time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Renewed(old); err != nil {
		t.Fatal(err)
	}
	certificate, csr, err := b.RenewalRequest()
	if err != nil {
		t.Fatal(err)
	}
	renewed, who, err := a.Renew(certificate, csr, nobody)
	if err != nil || who.Name != "b" {
		t.Fatalf("got %s, %v", who, err)
	}
	if err := b.Renewed(renewed); err != nil || b.Expires().Before(time.Now().Add(NodeLife-time.Hour)) {
		t.Errorf("got %v, expires %s", err, b.Expires())
	}
	life := b.Expires().Sub(b.shown.Load().Leaf.NotBefore)
	for range 100 {
		if part := b.NextRenewal().Sub(b.shown.Load().Leaf.NotBefore); part < life/2 || part > life*4/5 {
			t.Fatalf("renewal after %s of %s", part, life)
		}
	}
}

func TestRenewalIsRefused(t *testing.T) {
	a, other := cluster(t), cluster(t)
	b, err := a.Another(filepath.Join(t.TempDir(), Folder), "b")
	if err != nil {
		t.Fatal(err)
	}
	certificate, csr, err := b.RenewalRequest()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Renew(certificate, csr, nobody); !errors.Is(err, ErrNotKeeper) {
		t.Errorf("got %v from a node without the authority's key", err)
	}
	if _, _, err := other.Renew(certificate, csr, nobody); err == nil {
		t.Error("another cluster renews it")
	}
	if _, _, err := a.Renew(certificate, request(t).CSR, nobody); err == nil {
		t.Error("it is renewed for another key")
	}
	foreign, err := other.SignNode("b", b.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Renewed(foreign); err == nil {
		t.Error("a certificate of another cluster is shown")
	}
}

// TestForgedRenewal shows a certificate that its owner has made: for longer, and with another role.
func TestForgedRenewal(t *testing.T) {
	a, own := cluster(t), request(t)
	who := Identity{Kind: access.OfUser, Name: "eve", Cluster: a.Cluster()}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(10, 0, 0),
		URIs: []*url.URL{who.URI()}, Subject: pkix.Name{CommonName: "eve", Organization: []string{access.Admin.String()}}}
	forged, err := x509.CreateCertificate(rand.Reader, template, template, own.key.Public(), own.key)
	if err != nil {
		t.Fatal(err)
	}
	if _, who, err := a.Renew(forged, own.CSR, nobody); err == nil {
		t.Errorf("%v is renewed, whom nobody knows", who)
	}
	until := time.Now().Add(time.Minute)
	known := Standing{Known: true, Role: access.Viewer, Until: until}
	renewed, who, err := a.Renew(forged, own.CSR, standsAs(&known))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(renewed)
	if err != nil {
		t.Fatal(err)
	}
	is, err := IdentityOf(signed)
	if end := signed.NotAfter; err != nil || is.Role != access.Viewer || who.Role != access.Viewer ||
		end.After(until.Add(time.Second)) {
		t.Errorf("got %v until %s, %v", is, signed.NotAfter, err)
	}
	known.Until = time.Now().Add(-time.Second)
	if _, _, err = a.Renew(forged, own.CSR, standsAs(&known)); err == nil {
		t.Error("what has expired is renewed")
	}
}

func TestCredentialsAreKept(t *testing.T) {
	a, other := cluster(t), cluster(t)
	file := filepath.Join(t.TempDir(), "new", "credentials")
	make := func(keys *Keys, name string, role access.Role) *Credentials {
		r := request(t)
		der, err := keys.SignUser(name, role, r.key.Public(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.Credentials([]string{"127.0.0.1:7460"}, der, keys.CA().Raw)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, c := range []*Credentials{make(a, "alice", access.Viewer), make(other, "alice", access.Admin),
		make(a, "bob", access.Operator)} {
		if err := Keep(file, c); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := ReadFile(file)
	if err != nil || len(kept) != 2 || kept[0].Identity().Cluster != other.Cluster() ||
		kept[1].Identity().String() != "user bob (operator)" {
		t.Errorf("got %+v, %v", kept, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(file); !errors.Is(err, ErrOpenToOthers) {
		t.Errorf("got %v for a file that others can read", err)
	}
}

// FuzzParse reads lines of all kinds: it never panics, and what it takes comes back.
func FuzzParse(f *testing.F) {
	keys, err := Create(filepath.Join(f.TempDir(), Folder), "a")
	if err != nil {
		f.Fatal(err)
	}
	token, err := keys.NewToken([]string{"127.0.0.1:7460"}, Claims{Expires: time.Now()})
	if err != nil {
		f.Fatal(err)
	}
	instance, err := keys.Instance("j/t/0", "j.t[0]#7", "127.0.0.1:7460")
	if err != nil {
		f.Fatal(err)
	}
	for _, line := range []func() (string, error){token.Line, instance.Line} {
		text, err := line()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add(TokenPrefix)
	f.Add(CredentialsPrefix + "e30")
	f.Fuzz(func(t *testing.T, line string) {
		if token, err := ParseToken(line); err == nil {
			text, err := token.Line()
			again, err2 := ParseToken(text)
			if err != nil || err2 != nil || string(again.Secret) != string(token.Secret) {
				t.Errorf("got %v, %v", err, err2)
			}
		}
		if c, err := ParseCredentials(line); err == nil {
			text, err := c.Line()
			again, err2 := ParseCredentials(text)
			if err != nil || err2 != nil || again.Identity() != c.Identity() {
				t.Errorf("got %v, %v", err, err2)
			}
		}
	})
}

// TestClockOfTheSigner: a certificate of one whose clock is ahead holds at once, and no longer than it says.
func TestClockOfTheSigner(t *testing.T) {
	const day = 24 * time.Hour
	signer, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	made := func(begins, ends time.Duration, key crypto.PublicKey, by *x509.Certificate) *x509.Certificate {
		template := &x509.Certificate{NotBefore: time.Now().Add(begins), NotAfter: time.Now().Add(ends), IsCA: by == nil,
			BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if by == nil {
			by = template
		}
		der, err := x509.CreateCertificate(rand.Reader, template, by, key, signer)
		if err != nil {
			t.Fatal(err)
		}
		made, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	key := request(t).key.Public()
	present, ahead := made(-day, 9*day, signer.Public(), nil), made(day, 9*day, signer.Public(), nil)
	for _, c := range []struct {
		name         string
		by           *x509.Certificate
		begins, ends time.Duration
		good         bool
	}{
		{"by a clock that is right", present, -day, day, true},
		{"by a clock that is ahead", present, day, 2 * day, true},
		{"by an authority made by a clock that is ahead", ahead, day, 2 * day, true},
		{"expired", present, -2 * day, -day, false},
	} {
		leaf := made(c.begins, c.ends, key, c.by)
		if err := verifyLeaf(leaf, []*x509.Certificate{c.by}, x509.ExtKeyUsageClientAuth); (err == nil) != c.good {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
