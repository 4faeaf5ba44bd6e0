package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"starling/api/door"
	"starling/command"
	"starling/terms"
	"starling/terms/rules"
	"starling/trust"
)

// TestSecretsAreOpened has the node of an instance, and no other, get what a secret holds that its task names.
func TestSecretsAreOpened(t *testing.T) {
	g := newGate(t)
	g.peer.state.Rules = rules.Released
	reads := jobOn("team/reads", 1, "a")
	reads.Tasks[0].Secrets = []terms.SecretUse{{Name: "db"}}
	g.peer.add("a~1", &command.SubmitJob{Spec: *reads})
	r, _ := g.peer.state.RefOf(terms.SlotName{Job: "team/reads", Task: "main"})
	slot, _ := g.peer.state.SlotAt(r)
	id := terms.AllocationID{Slot: g.peer.state.NameOf(r), Order: slot.Order}
	b, err := g.keys.Another(filepath.Join(t.TempDir(), trust.Folder), "b")
	if err != nil {
		t.Fatal(err)
	}
	g.add(t, "node-b", b.Shows()[0])
	body := fmt.Sprintf(`{"allocation":%q,"index":1}`, id)
	want := func(who, want string) {
		t.Helper()
		if got := g.text(t, who, door.PathIDTokens, body); !strings.Contains(got, want) {
			t.Errorf("%s gets %s, want %s", who, got, want)
		}
	}
	want("node", "pool team has no secret db: put it there with")
	put := func(pool, value string) {
		sealed, err := g.keys.SealSecret(terms.PoolPath(pool), "db", []byte(value))
		if err != nil {
			t.Fatal(err)
		}
		g.peer.add("a~1", &command.PutSecret{Secret: sealed})
	}
	put("default", "of another pool")
	want("node", "pool team has no secret db")
	put("team", "swordfish")
	want("node", base64.StdEncoding.EncodeToString([]byte("swordfish")))
	want("node-b", "node b does not have team/reads.main[0]#")
	want("admin", "may not call")
	want("instance", "may not call")
	for _, who := range []string{"admin", "instance", "none"} {
		if got := g.call(t, who, door.PathSeal, `{"pool":"team","name":"db","value":"eA=="}`); strings.Contains(got, "Sealed") {
			t.Errorf("%s has something sealed: %s", who, got)
		}
	}
	if got := g.text(t, "node-b", door.PathSeal, `{"pool":"team","name":"db","value":"eA=="}`); !strings.Contains(got, "Sealed") {
		t.Errorf("a node has nothing sealed: %s", got)
	}
	listed := g.text(t, "admin", "/starling.v1.Starling/ListSecrets", `{}`)
	if !strings.Contains(listed, "team/reads") || strings.Contains(listed, "ealed") {
		t.Errorf("the list: %s", listed)
	}
}

// TestIDTokens has nodes ask for the id tokens of what they run, and of what they do not.
func TestIDTokens(t *testing.T) {
	g := newGate(t)
	g.peer.state.Rules = rules.Released
	asks := jobOn("team/asks", 1, "a")
	asks.Tasks[0].IDTokens = []terms.IDToken{{Name: "vault", Audience: "https://vault.example", LifeMillis: 60_000}}
	g.peer.add("a~1", &command.SubmitJob{Spec: *asks})
	r, _ := g.peer.state.RefOf(terms.SlotName{Job: "team/asks", Task: "main"})
	slot, _ := g.peer.state.SlotAt(r)
	id := terms.AllocationID{Slot: g.peer.state.NameOf(r), Order: slot.Order}
	b, err := g.keys.Another(filepath.Join(t.TempDir(), trust.Folder), "b")
	if err != nil {
		t.Fatal(err)
	}
	g.add(t, "node-b", b.Shows()[0])

	later := id
	later.Order++
	body := func(id string) string { return fmt.Sprintf(`{"allocation":%q,"index":1}`, id) }
	for _, c := range []struct{ who, body, want string }{
		{"node-b", body(id.String()), "node b does not have team/asks.main[0]#"},
		{"node", body(later.String()), "node a does not have team/asks.main[0]#"},
		{"node", body("team/none.main[0]#3"), "node a does not have team/none.main[0]#3"},
		{"node", body("team"), `\"team\" is not an allocation`},
		{"instance", body(id.String()), "may not call"},
		{"none", body(id.String()), "answers only users and nodes"},
		{"admin", body(id.String()), "may not call"},
	} {
		if got := g.call(t, c.who, door.PathIDTokens, c.body); !strings.Contains(got, c.want) {
			t.Errorf("%s asks for %s: got %s, want %s", c.who, c.body, got, c.want)
		}
	}

	answer, set := door.IDTokensAnswer{}, jose.JSONWebKeySet{}
	for path, into := range map[string]any{door.PathIDTokens: &answer, door.PathJWKS: &set} {
		text := g.text(t, "node", path, body(id.String()))
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%s: %v in %s", path, err, text)
		}
	}
	token, err := jwt.ParseSigned(answer.Tokens["vault"], []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	claims := jwt.Claims{}
	if err := token.Claims(set, &claims); err != nil {
		t.Fatal(err)
	}
	if want := "spiffe://" + g.keys.Cluster() + "/team/asks/main/0"; claims.Subject != want {
		t.Errorf("the token is of %s, want %s", claims.Subject, want)
	}

	told := g.text(t, "none", door.PathDiscovery, "")
	for _, want := range []string{`"issuer":"` + claims.Issuer + `"`, `"jwks_uri":"https://` + g.address + door.PathJWKS} {
		if !strings.Contains(told, want) {
			t.Errorf("discovery tells %s, want %s", told, want)
		}
	}
}
