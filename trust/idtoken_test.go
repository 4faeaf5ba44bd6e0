package trust

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"starling/terms"
)

func idTokenOf(t *testing.T, k *Keys) string {
	t.Helper()
	slot := terms.SlotName{Job: "etl/web", Task: "server", Index: 2}
	token, err := k.SignIDToken(IDTokenFor{Allocation: terms.AllocationID{Slot: slot, Order: 7}, Node: "b",
		Audience: "vault", Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// verifyIDToken is what an outsider does, with the keys as they are published.
func verifyIDToken(t *testing.T, by *Keys, token string) (claims map[string]any, err error) {
	t.Helper()
	text, err := json.Marshal(by.IDTokenKeys())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), `"d"`) {
		t.Fatalf("a private key is published: %s", text)
	}
	set := jose.JSONWebKeySet{}
	if err := json.Unmarshal(text, &set); err != nil {
		t.Fatal(err)
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return nil, err
	}
	return claims, parsed.Claims(set, &claims)
}

func TestIDToken(t *testing.T) {
	a := cluster(t)
	b, err := a.Another(filepath.Join(t.TempDir(), Folder), "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.SignIDToken(IDTokenFor{}); !errors.Is(err, ErrNotKeeper) {
		t.Errorf("a node without the authority's key: got %v", err)
	}
	token := idTokenOf(t, a)
	claims, err := verifyIDToken(t, b, token)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"iss": "spiffe://" + a.Cluster(), "sub": "spiffe://" + a.Cluster() + "/etl/web/server/2", "aud": "vault",
		"starling_pool": "etl", "starling_job": "etl/web", "starling_task": "server", "starling_index": "2",
		"starling_allocation": "etl/web.server[2]#7", "starling_node": "b",
		"exp": claims["iat"].(float64) + 3600, "nbf": claims["iat"],
	} {
		if got := claims[name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	again, err := verifyIDToken(t, b, idTokenOf(t, a))
	if err != nil || again["jti"] == claims["jti"] || len(again["jti"].(string)) < 20 {
		t.Errorf("another token has the id %v after %v (%v)", again["jti"], claims["jti"], err)
	}
	if _, err := verifyIDToken(t, cluster(t), token); err == nil {
		t.Error("another cluster takes it")
	}
	if _, err := verifyIDToken(t, b, token[:len(token)-4]+"AAAA"); err == nil {
		t.Error("a changed one is taken")
	}
}

// TestIDTokensFollowAuthorities replaces the authority: what the old one has signed counts until that is ended.
func TestIDTokensFollowAuthorities(t *testing.T) {
	a := cluster(t)
	b, err := a.Another(filepath.Join(t.TempDir(), Folder), "b")
	if err != nil {
		t.Fatal(err)
	}
	old, list := idTokenOf(t, a), a.Listed()
	next, err := a.Successor()
	if err != nil {
		t.Fatal(err)
	}
	list = append(list, next)
	for _, k := range []*Keys{a, b} {
		if err := k.Adopt(list); err != nil {
			t.Fatal(err)
		}
	}
	fresh := idTokenOf(t, a)
	for name, token := range map[string]string{"the old authority's": old, "the new one's": fresh} {
		if _, err := verifyIDToken(t, b, token); err != nil {
			t.Errorf("%s is refused: %v", name, err)
		}
	}
	list[0].Former = true
	if err := b.Adopt(list); err != nil {
		t.Fatal(err)
	}
	if _, err := verifyIDToken(t, b, old); err == nil {
		t.Error("one of an authority that has ended is taken")
	}
	if _, err := verifyIDToken(t, b, fresh); err != nil {
		t.Error(err)
	}
}
