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

// reader adds a job of a pool to node a, whose task reads the secret db and has its image with the secret registry.
func (g *gate) reader(t *testing.T) terms.AllocationID {
	t.Helper()
	g.peer.state.Rules = rules.Released
	offer := *g.peer.state.NodeOf("a").Offer
	offer.Attributes = append([]terms.EnvVar{{Name: terms.ContainersAttribute, Value: terms.ContainersYes}},
		offer.Attributes...)
	g.peer.add("a~1", &command.Volunteer{Peer: "a~1", Offer: offer})
	reads := jobOn("team/reads", 1, "a")
	reads.Tasks[0].Secrets = []terms.SecretUse{{Name: "db"}}
	reads.Tasks[0].Container = terms.Container{Image: "app@sha256:1", PullSecret: "registry"}
	reads.Tasks[0].AskForNodes()
	g.peer.add("a~1", &command.SubmitJob{Spec: *reads})
	b, err := g.keys.Another(filepath.Join(t.TempDir(), trust.Folder), "b")
	if err != nil {
		t.Fatal(err)
	}
	g.add(t, "node-b", b.Shows()[0])
	r, _ := g.peer.state.RefOf(terms.SlotName{Job: "team/reads", Task: "main"})
	slot, _ := g.peer.state.SlotAt(r)
	return terms.AllocationID{Slot: g.peer.state.NameOf(r), Order: slot.Order}
}

// put puts a secret.
func (g *gate) put(t *testing.T, pool, name, value string) {
	t.Helper()
	sealed, err := g.keys.SealSecret(terms.PoolPath(pool), name, []byte(value))
	if err != nil {
		t.Fatal(err)
	}
	g.peer.add("a~1", &command.PutSecret{Secret: sealed})
}

// TestSecretForRegistry has the node of an instance get the secret with which the registry of its image is asked, and
// registries asked with it for nodes alone.
func TestSecretForRegistry(t *testing.T) {
	g := newGate(t)
	id := g.reader(t)
	pull, pin := fmt.Sprintf(`{"allocation":%q,"index":1,"pull_secret":true}`, id),
		`{"image":"127.0.0.1:1/app:1","pool":"team","secret":"registry"}`
	wants := func(who, path, body, want string) {
		t.Helper()
		if got := g.text(t, who, path, body); !strings.Contains(got, want) {
			t.Errorf("%s gets from %s %s, want %s", who, path, got, want)
		}
	}
	g.put(t, "default", "registry", "of another pool")
	wants("node", door.PathIDTokens, pull, "pool team has no secret registry: put it there with")
	wants("node", door.PathPin, pin, "pool team has no secret registry: put it there with")
	g.put(t, "team", "registry", "swordfish")
	g.put(t, "team", "db", "herring")
	wants("node", door.PathIDTokens, pull, fmt.Sprintf(`"secrets":{"registry":"%s"}`,
		base64.StdEncoding.EncodeToString([]byte("swordfish"))))
	wants("node-b", door.PathIDTokens, pull, "node b does not have team/reads.main[0]#")
	wants("node-b", door.PathPin, pin, "connection refused: it may answer later")
	const whole = `"image":"app@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"`
	wants("node-b", door.PathPin, "{"+whole+`,"pool":"team","secret":"none"}`, "{"+whole+"}")
	for who, want := range map[string]string{"admin": "may not call", "instance": "may not call",
		"none": "answers only users and nodes"} {
		wants(who, door.PathIDTokens, pull, want)
		wants(who, door.PathPin, pin, want)
	}
}

// TestSecretsAreOpened has the node of an instance, and no other, get what a secret holds that its task reads.
func TestSecretsAreOpened(t *testing.T) {
	g := newGate(t)
	id := g.reader(t)
	body := fmt.Sprintf(`{"allocation":%q,"index":1}`, id)
	want := func(who, want string) {
		t.Helper()
		if got := g.text(t, who, door.PathIDTokens, body); !strings.Contains(got, want) {
			t.Errorf("%s gets %s, want %s", who, got, want)
		}
	}
	want("node", `"missing":{"db":"pool team has no secret db: put it there with`)
	g.put(t, "default", "db", "of another pool")
	want("node", "pool team has no secret db")
	g.put(t, "team", "db", "swordfish")
	want("node", fmt.Sprintf(`"secrets":{"db":"%s"}`, base64.StdEncoding.EncodeToString([]byte("swordfish"))))
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
