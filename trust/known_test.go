package trust

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"starling/terms/access"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// replaced lets another authority of a keeper sign, and the nodes know that.
func replaced(t *testing.T, by *Keys, nodes ...*Keys) {
	t.Helper()
	next, err := by.Successor()
	if err != nil {
		t.Fatal(err)
	}
	list := append(by.Listed(), next)
	for _, k := range append(nodes, by) {
		if err := k.Adopt(list); err != nil {
			t.Fatal(err)
		}
	}
	if err := by.RenewSelf(); err != nil {
		t.Fatal(err)
	}
}

// ended ends all authorities but the newest.
func ended(t *testing.T, nodes ...*Keys) {
	t.Helper()
	list := nodes[0].Listed()
	for i := range list[:len(list)-1] {
		list[i].Former = true
	}
	for _, k := range nodes {
		if err := k.Adopt(list); err != nil {
			t.Fatal(err)
		}
	}
}

func (k *Keys) chain() (all []*x509.Certificate) {
	for _, der := range k.shown.Load().Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			panic(err)
		}
		all = append(all, c)
	}
	return all
}

func node(t *testing.T, by *Keys, name string) *Keys {
	t.Helper()
	k, err := by.Another(filepath.Join(t.TempDir(), Folder), name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestAuthorityIsReplaced has a node that heard nothing of three replacements and one that did know each other, and
// ends what the first authority has signed.
func TestAuthorityIsReplaced(t *testing.T) {
	a := cluster(t)
	b, asleep := node(t, a, "b"), node(t, a, "asleep")
	first := b.chain()
	for range 3 {
		replaced(t, a, b)
	}
	if !a.IsCurrent() || b.IsCurrent() {
		t.Errorf("a has a new certificate: %v, b: %v", a.IsCurrent(), b.IsCurrent())
	}
	for name, err := range map[string]error{
		"a, by who slept":             asleep.Verify(a.chain()),
		"a as a server, by who slept": verifyNode(a.chain(), asleep.Shows()),
		"who slept, by a":             a.Verify(asleep.chain()),
		"who slept, as a server":      verifyNode(asleep.chain(), a.Shows()),
	} {
		if err != nil {
			t.Errorf("%s is not known: %v", name, err)
		}
	}
	ended(t, a, b)
	if err := a.Verify(first); err == nil {
		t.Error("a certificate of the first authority counts after its end")
	}
	if err := verifyNode(first, a.Shows()); err == nil {
		t.Error("a server with a certificate of the first authority is known after its end")
	}
	if err := verifyNode(a.chain(), asleep.Shows()); err != nil {
		t.Errorf("who slept until the first authority had ended does not know a: %v", err)
	}
	comesBack(t, asleep, a)
}

// comesBack has a node come back by its key that has no certificate which counts.
func comesBack(t *testing.T, asleep, a *Keys) {
	t.Helper()
	certificate, csr, err := asleep.RenewalRequest()
	must(t, err)
	if _, _, err := a.Renew(certificate, csr, nobody); err == nil {
		t.Error("a certificate of an authority that has ended is renewed for a key that nobody knows")
	}
	renewed, _, err := a.Renew(certificate, csr, anybody)
	must(t, err, asleep.Adopt(a.Listed()), asleep.Renewed(renewed))
	if !asleep.IsCurrent() || a.Verify(asleep.chain()) != nil {
		t.Error("who slept does not come back by its key")
	}
	again, err := Load(asleep.folder)
	must(t, err)
	if !slices.Equal(again.Listed(), a.Listed()) {
		t.Errorf("after a restart got %v, want %v", again.Listed(), a.Listed())
	}
}

// TestStrangersDoNotFollow shows an authority that none of the cluster has signed.
func TestStrangersDoNotFollow(t *testing.T) {
	a, other := cluster(t), cluster(t)
	forged, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	mallory := &Authority{key: forged, cluster: a.Cluster()}
	if err := mallory.certify(mallory, authorityPrefix+a.Cluster(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	der, err := mallory.Sign(forged.Public(), Identity{Kind: access.OfNode, Name: "b"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	for name, chain := range map[string][]*x509.Certificate{
		"one that signs for itself":         {leaf, mallory.Certificate},
		"with the cluster's behind":         {leaf, mallory.Certificate, a.CA()},
		"that of another cluster":           other.chain(),
		"another cluster's with this one's": append(other.chain(), a.CA()),
		"a node's certificate as authority": append([]*x509.Certificate{leaf}, a.chain()...),
	} {
		if a.Verify(chain) == nil || verifyNode(chain, a.Shows()) == nil {
			t.Errorf("%s is known", name)
		}
	}
	if err := a.Adopt(other.Listed()); err == nil {
		t.Error("the authority of another cluster is adopted")
	}
}

// keeperOf is another node that holds the key of the authority.
func keeperOf(t *testing.T, a *Keys) *Keys {
	t.Helper()
	key, err := a.AuthorityKey()
	must(t, err)
	r := request(t)
	der, err := a.SignNode("c", r.key.Public())
	must(t, err)
	admission, err := r.Admission(der, a.Signer().Raw, a.Listed()).WithAuthority(key)
	must(t, err)
	keeper, err := Store(filepath.Join(t.TempDir(), Folder), admission)
	must(t, err)
	return keeper
}

// TestAnotherHolderGetsTheKey gives the newest key to who has that of an authority which counts.
func TestAnotherHolderGetsTheKey(t *testing.T) {
	a := cluster(t)
	keeper, b := keeperOf(t, a), node(t, a, "b")
	replaced(t, a, keeper, b)
	if !keeper.Lacks() || b.Lacks() || a.Lacks() {
		t.Fatalf("lacks: keeper %v, b %v, a %v", keeper.Lacks(), b.Lacks(), a.Lacks())
	}
	if _, err := b.HolderProof([]byte("channel")); err == nil {
		t.Error("b proves to hold a key")
	}
	proof, err := keeper.HolderProof([]byte("channel"))
	must(t, err)
	fresh, err := a.KeyFor(proof, []byte("channel"))
	must(t, err, keeper.Hold(fresh))
	if keeper.Lacks() || !keeper.Signer().Equal(a.CA()) {
		t.Error("the keeper does not hold the newest key")
	}
	ended(t, a, keeper)
	again, err := Load(keeper.folder)
	must(t, err)
	if keys := len(again.known.Load().keys); keys != 1 || !again.IsKeeper() {
		t.Errorf("after the end of the first authority and a restart there are %d keys", keys)
	}
	info, err := os.Stat(filepath.Join(keeper.folder, authorityKeyFile))
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the keys have mode %v", info.Mode())
	}
}

// TestThievesDoNotGetTheKey refuses the newest key to all others.
func TestThievesDoNotGetTheKey(t *testing.T) {
	a := cluster(t)
	keeper := keeperOf(t, a)
	replaced(t, a, keeper)
	good, err := keeper.HolderProof([]byte("channel"))
	must(t, err)
	for name, c := range map[string]struct{ proof, channel string }{
		"of another channel": {string(good), "other"},
		"none":               {"", "channel"},
		"a guess":            {strings.Repeat("x", 32), "channel"},
	} {
		if _, err := a.KeyFor([]byte(c.proof), []byte(c.channel)); err == nil {
			t.Errorf("the key is given for a proof that is %s", name)
		}
	}
	ended(t, a)
	if _, err := a.KeyFor(good, []byte("channel")); err == nil {
		t.Error("who holds the key of an authority that has ended gets the newest")
	}
}

// TestTokensSurviveAReplacement lets a token count as long as the authority that it is of.
func TestTokensSurviveAReplacement(t *testing.T) {
	a := cluster(t)
	token, err := a.NewToken([]string{"127.0.0.1:1"}, Claims{Expires: time.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	check := func() error {
		_, err := a.Check(token.Claims, token.Proof(nil, nil), nil, nil)
		return err
	}
	replaced(t, a)
	if err := check(); err != nil {
		t.Errorf("while its authority counts: %v", err)
	}
	ended(t, a)
	if err := check(); err == nil || !strings.Contains(err.Error(), "its authority counts no more") {
		t.Errorf("after its end: %v", err)
	}
}

// TestCredentialsFollow renews a user's credentials in their file.
func TestCredentialsFollow(t *testing.T) {
	a := cluster(t)
	r := request(t)
	der, err := a.SignUser("alice", access.Viewer, r.key.Public(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	made, err := r.Credentials([]string{"127.0.0.1:1"}, der, a.CA().Raw)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "credentials")
	if err := Keep(file, made); err != nil {
		t.Fatal(err)
	}
	replaced(t, a)
	kept, err := ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	certificate, csr, err := kept[0].RenewalRequest()
	if err != nil {
		t.Fatal(err)
	}
	known := Standing{Known: true, Role: access.Viewer, Until: made.shown.Leaf.NotAfter}
	renewed, who, err := a.Renew(certificate, csr, standsAs(&known))
	if err != nil || who.Role != access.Viewer {
		t.Fatalf("got %v, %v", who, err)
	}
	if _, err := kept[0].Renewed(renewed, a.Listed()); err != nil {
		t.Fatal(err)
	}
	again, err := ReadFile(file)
	if err != nil || len(again) != 1 || len(again[0].CAs) != 2 || again[0].shown.Leaf.CheckSignatureFrom(a.CA()) != nil {
		t.Errorf("got %+v, %v", again, err)
	}
	if end := again[0].shown.Leaf.NotAfter; end.After(made.shown.Leaf.NotAfter.Add(time.Minute)) {
		t.Errorf("it ends at %s, not at %s as before", end, made.shown.Leaf.NotAfter)
	}
}
