package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"golang.org/x/oauth2"

	"starling/api/client"
	"starling/api/door"
	"starling/command"
	"starling/replica/report"
	"starling/terms/access"
	"starling/trust"
	"starling/trust/provider"
	"starling/trust/provider/providertest"
)

// alice is what the provider calls her.
const alice = "alice@example.org"

// newProvider starts a real provider, and returns how a door asks it.
func newProvider(t *testing.T) (*providertest.Provider, func(*door.Config)) {
	t.Helper()
	p, err := providertest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	settings := provider.Settings{Issuer: p.Issuer(), Client: providertest.Client, Secret: providertest.Secret,
		Claim: provider.EmailClaim}
	return p, func(c *door.Config) { c.SignIn = provider.New(settings, p.Transport()) }
}

// signIn signs in as somebody, as a program does that knows only where the cluster is.
func (g *gate) signIn(ctx context.Context, pin *trust.Pin, enter func(code string) error) (*trust.Credentials, error) {
	known, err := pin.Shows(ctx)
	if err != nil {
		return nil, err
	}
	return client.SignIn(ctx, pin.Addresses, known, func(device *oauth2.DeviceAuthResponse) {
		if err := enter(device.UserCode); err != nil {
			panic(err)
		}
	})
}

// TestSignIn has a user sign in, change her role and go.
func TestSignIn(t *testing.T) {
	p, asked := newProvider(t)
	g := newGate(t, asked)
	ctx := within(t)
	pin := &trust.Pin{Addresses: []string{g.address}, CA: trust.Hash(g.keys.CA())}
	as := func(user string) func(string) error { return func(code string) error { return p.Enter(code, user) } }
	refused := func(what string, want string, enter func(string) error) {
		t.Helper()
		if made, err := g.signIn(ctx, pin, enter); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v and %v, want %s", what, made, err, want)
		}
	}
	g.letSignIn(t, alice, "submitter")
	var asking sync.WaitGroup // each waits for a second
	asking.Go(func() {
		refused("nobody here", "ask an admin for `starling user add bob@example.org --oidc`", as("bob@example.org"))
	})
	asking.Go(func() { refused("who has credentials alone", "lets no user of that name sign in", as("viewer")) })
	asking.Go(func() { refused("who says no", "the sign-in was refused", p.Refuse) })
	asking.Wait()
	made, err := g.signIn(ctx, pin, as(alice))
	if err != nil {
		t.Fatal(err)
	}
	if who := made.Identity(); who.Name != alice || who.Role != access.Submitter {
		t.Errorf("got %s", who)
	}
	shows := trust.ShowsOf([]*trust.Credentials{made})[0]
	if life := shows.Certificate.Leaf.NotAfter.Sub(shows.Certificate.Leaf.NotBefore).Hours(); life < 12 || life > 12.1 {
		t.Errorf("it is good for %v hours", life)
	}
	g.add(t, "alice", shows)
	g.may(t, "alice", door.PathUsers, "it needs the role admin")
	g.letSignIn(t, alice, "admin")
	g.may(t, "alice", door.PathUsers, "200")
	told := g.text(t, "admin", door.PathUsers, "{}")
	if want := `{"name":"` + alice + `","role":"admin"}`; !strings.Contains(told, want) {
		t.Errorf("users are %s, want %s", told, want)
	}
	g.letSignIn(t, alice, "viewer")
	g.may(t, "alice", door.PathUsers, "it needs the role admin")
	g.peer.add("a~1", &command.RemoveUser{Name: alice})
	g.may(t, "alice", door.PathUsers, "do not count any more")
	refused("who was removed", "lets no user of that name sign in", as(alice))
}

// TestSignInHere has a browser of the same machine led back, and others that are not.
func TestSignInHere(t *testing.T) {
	p, asked := newProvider(t)
	g := newGate(t, asked)
	g.letSignIn(t, alice, "submitter")
	known, err := (&trust.Pin{Addresses: []string{g.address}, CA: trust.Hash(g.keys.CA())}).Shows(within(t))
	if err != nil {
		t.Fatal(err)
	}
	shown := make(chan string, 1)
	made, err := client.SignInHere(within(t), []string{g.address}, known, func(page string) {
		to, err := url.Parse(page)
		if err != nil {
			t.Error(err)
		}
		back := to.Query().Get("redirect_uri")
		for _, stranger := range []string{back, back + "?state=x&code=y"} {
			if answer, err := http.Get(stranger); err != nil || answer.StatusCode != http.StatusNotFound {
				t.Errorf("%s: got %v and %v", stranger, answer, err)
			}
		}
		go func() {
			text, err := p.Visit(page, alice)
			if err != nil {
				text = err.Error()
			}
			shown <- text
		}()
	})
	if text := <-shown; err != nil || !strings.Contains(text, "goes on in the terminal") {
		t.Fatalf("got %v, the browser shows %q", err, text)
	}
	if who := made.Identity(); who.Name != alice || who.Role != access.Submitter {
		t.Errorf("got %s", who)
	}
	_, err = client.SignInHere(within(t), []string{g.address}, known, func(page string) {
		to, _ := url.Parse(page)
		back := to.Query()
		go http.Get(back.Get("redirect_uri") + "?error=access_denied%1b&state=" + back.Get("state"))
	})
	if err == nil || !strings.Contains(err.Error(), `the sign-in was refused: "access_denied\x1b"`) {
		t.Errorf("got %v", err)
	}
}

// letSignIn lets a user sign in.
func (g *gate) letSignIn(t *testing.T, user, role string) {
	t.Helper()
	body := `{"name":"` + user + `","role":"` + role + `","oidc":true}`
	if got := g.call(t, "admin", door.PathUser, body); got != "200" {
		t.Fatalf("got %s", got)
	}
}

// may asks for a method, and wants the answer to say so.
func (g *gate) may(t *testing.T, who, method, want string) {
	t.Helper()
	if got := g.call(t, who, method, "{}"); !strings.Contains(got, want) {
		t.Errorf("%s asks for %s: got %s, want %s", who, method, got, want)
	}
}

// notBegun is the answer to who ends another's sign-in.
const notBegun = "no sign-in was begun for this key"

func newRequest(t *testing.T) *trust.Request {
	t.Helper()
	made, err := trust.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// exchange asks for something without credentials; the answer is also read into something that is not nil.
func (g *gate) exchange(t *testing.T, path string, request, into any) string {
	t.Helper()
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	answer := g.text(t, "none", path, string(text))
	if into == nil {
		return answer
	}
	if err := json.Unmarshal([]byte(answer), into); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	return answer
}

// TestSignInIsOfItsKey has somebody who saw a sign-in begin end it for a key of his own.
func TestSignInIsOfItsKey(t *testing.T) {
	p, asked := newProvider(t)
	g := newGate(t, asked)
	g.letSignIn(t, alice, "admin")
	hers, his := newRequest(t), newRequest(t)
	begun := door.SignInAnswer{}
	text := g.exchange(t, door.PathSignIn, door.SignInRequest{CSR: hers.CSR}, &begun)
	if strings.Contains(text, providertest.Secret) {
		t.Error("the client's secret is told")
	}
	if err := p.Enter(begun.Device.UserCode, alice); err != nil {
		t.Fatal(err)
	}
	forged := begun
	forged.Proof = make([]byte, len(begun.Proof))
	for what, request := range map[string]door.SignedInRequest{
		"another key": {SignInAnswer: begun, CSR: his.CSR}, "no proof": {SignInAnswer: forged, CSR: hers.CSR},
		"no code": {CSR: hers.CSR},
	} {
		if got := g.exchange(t, door.PathSignedIn, request, nil); !strings.Contains(got, notBegun) {
			t.Errorf("%s: got %s", what, got)
		}
	}
	request := door.SignedInRequest{SignInAnswer: begun, CSR: []byte("none")}
	if got := g.exchange(t, door.PathSignedIn, request, nil); !strings.Contains(got, "the certificate signing request") {
		t.Errorf("got %s", got)
	}
	request.CSR = hers.CSR
	if got := g.exchange(t, door.PathSignedIn, request, nil); !strings.Contains(got, `"certificate"`) {
		t.Errorf("got %s", got)
	}
}

// TestVisitIsOfItsKey is the same for a browser that is led back.
func TestVisitIsOfItsKey(t *testing.T) {
	_, asked := newProvider(t)
	g := newGate(t, asked)
	hers, his := newRequest(t), newRequest(t)
	visiting, lent := door.SignInAnswer{}, door.SignInAnswer{}
	g.exchange(t, door.PathSignIn, door.SignInRequest{CSR: hers.CSR, Redirect: "http://127.0.0.1:1/",
		Challenge: oauth2.S256ChallengeFromVerifier("v")}, &visiting)
	elsewhere := *visiting.Visit
	elsewhere.Redirect = "http://127.0.0.1:2/"
	lent.Visit, lent.Proof = &elsewhere, visiting.Proof
	for what, request := range map[string]door.SignedInRequest{
		"another key": {SignInAnswer: visiting, CSR: his.CSR}, "another way back": {SignInAnswer: lent, CSR: hers.CSR},
	} {
		if got := g.exchange(t, door.PathSignedIn, request, nil); !strings.Contains(got, notBegun) {
			t.Errorf("%s: got %s", what, got)
		}
	}
}

// removing is a peer that folds the end of a user before the next credential is added.
type removing struct {
	*peer
	user string
}

// Submit implements door.Peer.
func (r removing) Submit(ctx context.Context, c command.Command) (report.Receipt, error) {
	if _, ok := c.(*command.AddUser); ok {
		r.peer.add("a~1", &command.RemoveUser{Name: r.user})
	}
	return r.peer.Submit(ctx, c)
}

// TestSignInMeetsAnEnd has a user removed while she signs in: what was signed for her is not given out.
func TestSignInMeetsAnEnd(t *testing.T) {
	p, asked := newProvider(t)
	g := newGate(t, asked)
	g.letSignIn(t, alice, "admin")
	g.door.Answer(http.NotFoundHandler(), removing{g.peer, alice})
	pin := &trust.Pin{Addresses: []string{g.address}, CA: trust.Hash(g.keys.CA())}
	made, err := g.signIn(within(t), pin, func(code string) error { return p.Enter(code, alice) })
	if err == nil || !strings.Contains(err.Error(), "lets no user of that name sign in") {
		t.Errorf("got %v and %v", made, err)
	}
}

// TestNobodySignsIn asks where no provider is known, and where it does not answer.
func TestNobodySignsIn(t *testing.T) {
	g := newGate(t)
	body := `{"name":"` + alice + `","oidc":true}`
	for _, path := range []string{door.PathSignIn, door.PathSignedIn, door.PathUser} {
		if got := g.call(t, "admin", path, body); !strings.Contains(got, "this node knows no OpenID Connect provider") {
			t.Errorf("%s: got %s", path, got)
		}
	}
	p, asked := newProvider(t)
	p.Close()
	g = newGate(t, asked)
	pin := &trust.Pin{Addresses: []string{g.address}, CA: trust.Hash(g.keys.CA())}
	if _, err := g.signIn(within(t), pin, nil); err == nil || !strings.Contains(err.Error(), "provider cannot be asked") {
		t.Errorf("got %v", err)
	}
	pin.CA = trust.Hash(newKeys(t).CA())
	if _, err := g.signIn(within(t), pin, nil); err == nil || !strings.Contains(err.Error(), "somebody is in between") {
		t.Errorf("got %v", err)
	}
}
