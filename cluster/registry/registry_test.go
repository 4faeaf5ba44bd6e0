package registry

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"starling/terms"
	"starling/terms/access"
	"starling/terms/codec"
	"starling/terms/rules"
)

func key(of any) access.Key { return sha256.Sum256(fmt.Append(nil, of)) }

// TestAdmit lets machines join by tokens and without, in the order of the rows.
func TestAdmit(t *testing.T) {
	r, refusal := (*Registry)(nil).AddToken(access.Token{ID: "once", Uses: 1}, 1000, 0)
	if refusal != "" {
		t.Fatal(refusal)
	}
	r, _ = r.AddToken(access.Token{ID: "forC", Uses: 5, Node: "c"}, 1000, 0)
	for _, c := range []struct {
		what  string
		node  terms.NodeName
		key   any
		token string
		at    terms.Time
		want  string
	}{
		{"what is there makes itself known", "a", "a1", "", 1, ""},
		{"again", "a", "a1", "", 2, ""},
		{"with another key", "a", "a2", "", 3, "has another key"},
		{"by a token that there is not", "b", "b1", "none", 4, "the token was used before"},
		{"by a token", "b", "b1", "once", 5, ""},
		{"a repetition, although the token is used up", "b", "b1", "once", 6, ""},
		{"another machine by the same line", "x", "x1", "once", 7, "the token was used before"},
		{"by the token of another node", "d", "d1", "forC", 8, "the token is for node c"},
		{"with a key that is another's", "c", "b1", "forC", 9, "is known as that of node b"},
		{"by a token that has ended", "c", "c1", "forC", 1000, "the token was used before"},
		{"a name that is none", "a b", "z", "", 10, `node "a b"`},
	} {
		next, refusal := r.Admit(c.node, key(c.key), c.token, c.at)
		if (refusal == "") != (c.want == "") || !strings.Contains(refusal, c.want) {
			t.Errorf("%s: got %q, want %q", c.what, refusal, c.want)
		}
		r = next
	}
	who := access.Subject{Kind: access.OfNode, Name: "b"}
	r = r.Remove(who, 11)
	if _, refusal := r.Admit("b", key("b1"), "", 12); !strings.Contains(refusal, "node b was removed") || !r.IsGone("b") {
		t.Errorf("what was removed makes itself known again: %q", refusal)
	}
	r, _ = r.AddToken(access.Token{ID: "again", Uses: 1}, 1000, 13)
	if r, refusal = r.Admit("b", key("b2"), "again", 14); refusal != "" || r.IsGone("b") || r.owner(key("b1")) != nil {
		t.Errorf("it joins again by a token, with a new key: %q, %+v", refusal, r)
	}
}

// TestBounds fills the registry.
func TestBounds(t *testing.T) {
	r := &Registry{}
	for n := range UserKeysMax {
		r.put(access.Credential{Key: key(n), Kind: access.OfUser, Name: fmt.Sprint("u", n), Until: terms.Time(100 + n)})
	}
	one := access.Credential{Key: key("one"), Kind: access.OfUser, Name: "one", Role: access.Viewer, Until: 1 << 40}
	if _, refusal := r.AddUser(one, 50, true); !strings.Contains(refusal, "at most 10000") {
		t.Errorf("got %q", refusal)
	}
	next, refusal := r.AddUser(one, 150, true)
	if refusal != "" || len(next.All(access.OfUser)) != UserKeysMax-50 || next.Role(access.Subject{Kind: access.OfUser,
		Name: "one"}, 150) != access.Viewer {
		t.Errorf("what has ended gives way: %q, %d", refusal, len(next.All(access.OfUser)))
	}
	for n := range TokensMax {
		if r, refusal = r.AddToken(access.Token{ID: fmt.Sprint(n), Uses: 1}, 10, 0); refusal != "" {
			t.Fatal(refusal)
		}
	}
	if _, refusal = r.AddToken(access.Token{ID: "more", Uses: 1}, 10, 0); !strings.Contains(refusal, "at most 1000") {
		t.Errorf("got %q", refusal)
	}
	if r, refusal = r.AddToken(access.Token{ID: "more", Uses: 1}, 10, 10); refusal != "" || len(r.Tokens) != 1 {
		t.Errorf("what has ended gives way: %q, %d", refusal, len(r.Tokens))
	}
}

func TestCode(t *testing.T) {
	r, _ := (*Registry)(nil).Admit("a", key("a"), "", 0)
	r, _ = r.AddToken(access.Token{ID: "t", Uses: 2, Node: "n", Keeper: true}, 10, 0)
	r = r.Remove(access.Subject{Kind: access.OfNode, Name: "gone"}, 0)
	c := codec.Writer()
	r.Code(c, rules.Released)
	read := &Registry{}
	if read.Code(&codec.Coder{Data: c.Data}, rules.Released); !reflect.DeepEqual(read, r) || r.Hash == 0 {
		t.Errorf("got %+v, want %+v", read, r)
	}
}

// TestAuthorities lets authorities come and go, in the order of the rows.
func TestAuthorities(t *testing.T) {
	id := func(name string) access.Key { return access.Authority{Certificate: name}.ID() }
	var r *Registry
	for _, c := range []struct{ what, add, against, end, want string }{
		{"the first", "one", "", "", ""},
		{"against none", "two", "", "", "signs by now"},
		{"the next", "two", "one", "", ""},
		{"a repetition", "two", "one", "", "is known already"},
		{"without a certificate", "", "two", "", "must have a certificate"},
		{"the end of the one that signs", "", "", "two", "is the one that signs"},
		{"the end of the other", "", "", "one", ""},
		{"which counts no more", "", "", "one", "not found"},
		{"and does not come back", "one", "two", "", "is known already"},
	} {
		next, refusal := r, ""
		if c.end != "" {
			found := false
			if next, refusal, found = r.RemoveAuthority(id(c.end), 1); !found {
				refusal = "not found"
			}
		} else {
			against := access.Key{}
			if c.against != "" {
				against = id(c.against)
			}
			next, refusal = r.AddAuthority(access.Authority{Certificate: c.add}, against, 1)
		}
		if (refusal == "") != (c.want == "") || !strings.Contains(refusal, c.want) {
			t.Errorf("%s: got %q, want %q", c.what, refusal, c.want)
		}
		r = next
	}
	for i := len(r.Authorities); i < AuthoritiesMax; i++ {
		r = added(t, r, fmt.Sprint("more ", i))
	}
	if r = added(t, r, "one more"); len(r.Authorities) != AuthoritiesMax || r.Authorities[0].Certificate != "two" {
		t.Errorf("got %+v, want the oldest forgotten that counted no more", r.Authorities)
	}
	last := r.Authorities[AuthoritiesMax-1].ID()
	_, refusal := r.AddAuthority(access.Authority{Certificate: "too many"}, last, 1)
	if !strings.Contains(refusal, "at most 16") {
		t.Errorf("got %q for one too many", refusal)
	}
	for _, in := range []rules.Number{rules.Authorities, rules.Registry} {
		c := codec.Writer()
		r.Code(c, in)
		again := &Registry{}
		again.Code(&codec.Coder{Data: c.Data}, in)
		if has := len(again.Authorities) > 0; has != (in == rules.Authorities) || has && !reflect.DeepEqual(again, r) {
			t.Errorf("under %d got %+v", in, again)
		}
	}
}

func added(t *testing.T, r *Registry, name string) *Registry {
	t.Helper()
	next, refusal := r.AddAuthority(access.Authority{Certificate: name}, r.Authorities[len(r.Authorities)-1].ID(), 1)
	if refusal != "" {
		t.Fatal(refusal)
	}
	return next
}

// TestWritingChangesNothing: a registry belongs to many values, and is written while others read it.
func TestWritingChangesNothing(t *testing.T) {
	r := &Registry{Gone: []terms.NodeName{"a"}, Hash: 7}
	r.Code(codec.Writer(), rules.Released)
	if r.Hash != 7 {
		t.Error("its hash was made anew, and for a moment it was that of a part")
	}
}

// one keeps one version of each secret, as the rules before rules.SecretVersions did.
var one = Kept{Most: 1}

// TestSecretVersions keeps the newest versions of a secret, and older ones that jobs name.
func TestSecretVersions(t *testing.T) {
	var r *Registry
	named, refusal := map[uint32]bool{2: true}, ""
	kept := Kept{Most: 3, Named: func(version uint32) bool { return named[version] }}
	put := func(want string) {
		t.Helper()
		r, refusal = r.PutSecret(access.Secret{Pool: "a", Name: "b", Sealed: "x"}, kept, 1)
		var got []string
		for _, s := range r.Secrets {
			got = append(got, fmt.Sprintf("%s%d", s.Name, s.Version))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %s (%s), want %s", got, refusal, want)
		}
		fresh := r.copy(1)
		if fresh.hash(); fresh.Hash != r.Hash {
			t.Error("the hash is not that of what there is")
		}
	}
	for _, name := range []string{"a", "c"} {
		r, _ = r.PutSecret(access.Secret{Pool: "a", Name: name, Sealed: "x"}, kept, 1)
	}
	put("a1 b1 c1")
	put("a1 b1 b2 c1")
	put("a1 b1 b2 b3 c1")
	put("a1 b2 b3 b4 c1")
	put("a1 b2 b4 b5 c1")
	named[4], named[5] = true, true
	put("a1 b2 b4 b5 c1")
	if want := "jobs name all 3 versions of it that are kept"; !strings.HasPrefix(refusal, want) {
		t.Errorf("got %q, want that %s", refusal, want)
	}
	named = nil
	kept.Most = 1
	put("a1 b6 c1")
	if r.Secret("a", "b", 0).Version != 6 || r.Secret("a", "b", 5) != nil || r.Secret("a", "b", 6) == nil {
		t.Error("another version than 6 is found")
	}
}

// TestSecretsAreBounded puts secrets until there is no room for more.
func TestSecretsAreBounded(t *testing.T) {
	var r *Registry
	large, refusal := strings.Repeat("x", access.SealedBytesMax), ""
	for n := 0; refusal == ""; n++ {
		r, refusal = r.PutSecret(access.Secret{Pool: "a", Name: fmt.Sprint(n), Sealed: large}, one, 1)
	}
	most := secretsBytesMax / access.SealedBytesMax
	if len(r.Secrets) != most || !strings.Contains(refusal, "at most 16777216: remove some") {
		t.Errorf("%d secrets, want %d: %s", len(r.Secrets), most, refusal)
	}
	half := r.copy(1)
	half.Secrets = half.Secrets[:most/2]
	shared := Kept{Most: 1, PoolShare: PoolShare}
	_, refusal = half.PutSecret(access.Secret{Pool: "a", Name: "more", Sealed: large}, shared, 1)
	if want := "the secrets of pool a would take"; !strings.HasPrefix(refusal, want) {
		t.Errorf("got %q, want that %s", refusal, want)
	}
	if _, refusal = half.PutSecret(access.Secret{Pool: "b", Name: "more", Sealed: large}, shared, 1); refusal != "" {
		t.Errorf("a secret of another pool: %s", refusal)
	}
	if r, refusal = r.PutSecret(access.Secret{Pool: "a", Name: "0", Sealed: large}, one, 2); refusal != "" {
		t.Errorf("one in the place of another: %s", refusal)
	}
	if s := r.Secret("a", "0", 0); s.Version != 2 || s.At != 2 {
		t.Errorf("got version %d of %d", s.Version, s.At)
	}
}

// TestRoles holds that a role does not outlive its credential, and is lost with a lower one that is given later.
func TestRoles(t *testing.T) {
	who := access.Subject{Kind: access.OfUser, Name: "mal"}
	give := func(r *Registry, role access.Role, until terms.Time, lowers bool) *Registry {
		next, refusal := r.AddUser(access.Credential{Key: key(fmt.Sprint(role, until)), Kind: access.OfUser, Name: "mal",
			Role: role, Until: until}, 0, lowers)
		if refusal != "" {
			t.Fatal(refusal)
		}
		return next
	}
	admin := give(&Registry{}, access.Admin, 100, true)
	both := give(give(&Registry{}, access.Viewer, 1000, true), access.Admin, 100, true)
	for _, c := range []struct {
		what string
		r    *Registry
		at   terms.Time
		want access.Role
	}{
		{"a higher role for a while", both, 99, access.Admin},
		{"and when that is over", both, 100, access.Viewer},
		{"when all has ended who shows it is told", both, 1000, access.Admin},
		{"a lower role later", give(admin, access.Viewer, 1000, true), 50, access.Viewer},
		{"a lower role later, by the rules before", give(admin, access.Viewer, 1000, false), 50, access.Admin},
		{"who signs in has no role by that", give(admin, access.NoRole, 1000, true), 50, access.Admin},
	} {
		if got := c.r.Role(who, c.at); got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
	}
}
