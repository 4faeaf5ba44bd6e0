package provider

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/oauth2"
)

// liar is a provider that says what a test wants.
type liar struct {
	*httptest.Server
	mux *http.ServeMux
	key *ecdsa.PrivateKey
	// discovered, device and token are what it answers, token with the status.
	discovered, device, token map[string]any
	status                    int
	// asked is what it was asked last for a code, and for a token.
	asked map[string]*http.Request
}

func newLiar(t testing.TB) *liar {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	l := &liar{key: key, status: http.StatusOK, asked: map[string]*http.Request{}}
	mux := http.NewServeMux()
	l.mux, l.Server = mux, httptest.NewTLSServer(mux)
	t.Cleanup(l.Close)
	l.discovered = map[string]any{"issuer": l.URL, "token_endpoint": l.URL + "/token", "jwks_uri": l.URL + "/keys",
		"device_authorization_endpoint":         l.URL + "/device",
		"id_token_signing_alg_values_supported": []string{"none", "HS256", "ES256"}}
	l.device = map[string]any{"device_code": "secret", "user_code": "ABCD-EFGH", "verification_uri": l.URL + "/enter",
		"expires_in": 300, "interval": 1}
	answer := func(path string, status *int, document *map[string]any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm()
			l.asked[path] = r
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(*status)
			_ = json.NewEncoder(w).Encode(*document)
		})
	}
	fine := http.StatusOK
	answer("/.well-known/openid-configuration", &fine, &l.discovered)
	answer("/device", &fine, &l.device)
	answer("/token", &l.status, &l.token)
	keys := map[string]any{"keys": []jose.JSONWebKey{{Key: key.Public(), KeyID: "one", Algorithm: "ES256", Use: "sig"}}}
	answer("/keys", &fine, &keys)
	return l
}

// claims are those of a token that counts, with changes; nil takes one away.
func (l *liar) claims(changes map[string]any) map[string]any {
	now := time.Now()
	all := map[string]any{"iss": l.URL, "aud": "starling", "sub": "1", "exp": now.Add(time.Minute).Unix(),
		"iat": now.Unix(), "email": "alice@example.org", "email_verified": true}
	for name, value := range changes {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return all
}

// signed is a token by a key.
func signed(t testing.TB, algorithm jose.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: "one"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// tells lets the provider give an id token.
func (l *liar) tells(raw any) {
	l.status, l.token = http.StatusOK, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": raw}
}

func (l *liar) provider(claim string) *Provider {
	return New(Settings{Issuer: l.URL, Client: "starling", Claim: claim}, l.Client().Transport)
}

// signIn signs in, and returns who that is or what is wrong.
func signIn(t testing.TB, p *Provider) (string, error) {
	t.Helper()
	device, err := p.Begin(t.Context(), "")
	if err != nil {
		return "", err
	}
	return p.Finish(t.Context(), "", device)
}

// name is that of a token that the provider gives.
func (l *liar) name(t testing.TB, raw string) (string, error) {
	t.Helper()
	p, ctx := l.provider("email"), oidc.ClientContext(t.Context(), l.Client())
	known, err := p.discover(ctx)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := p.verified(ctx, known, raw)
	if err != nil {
		return "", err
	}
	return p.nameIn(claims)
}

func TestSignIn(t *testing.T) {
	l := newLiar(t)
	l.tells(signed(t, jose.ES256, l.key, l.claims(nil)))
	if name, err := signIn(t, l.provider("email")); name != "alice@example.org" || err != nil {
		t.Errorf("got %q and %v", name, err)
	}
	device, token := l.asked["/device"], l.asked["/token"]
	if got := device.Form.Get("scope"); got != "openid profile email" || device.Form.Get("client_id") != "starling" {
		t.Errorf("asked for a code with %v", device.Form)
	}
	if got := token.Form.Get("device_code"); got != "secret" || token.Header.Get("Authorization") != "" {
		t.Errorf("asked for a token with %v and %v", token.Form, token.Header)
	}
	p := New(Settings{Issuer: l.URL, Client: "starling", Secret: "a b", Claim: "sub"}, l.Client().Transport)
	if name, err := signIn(t, p); name != "1" || err != nil {
		t.Errorf("with a secret: got %q and %v", name, err)
	}
	for _, path := range []string{"/device", "/token"} {
		if user, secret, _ := l.asked[path].BasicAuth(); user != "starling" || secret != "a+b" {
			t.Errorf("%s was asked by %q with %q", path, user, secret)
		}
	}
}

// TestTokensThatDoNotCount has the provider, or who is between, say what it must not.
func TestTokensThatDoNotCount(t *testing.T) {
	l := newLiar(t)
	foreign, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	with := func(name string, value any) string {
		return signed(t, jose.ES256, l.key, l.claims(map[string]any{name: value}))
	}
	text, err := json.Marshal(l.claims(nil))
	if err != nil {
		t.Fatal(err)
	}
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(text) + "."
	point, err := l.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	fine := with("sub", "1")
	for what, c := range map[string]struct{ raw, want string }{
		"another issuer":             {with("iss", "https://other.example"), "issued by a different provider"},
		"another audience":           {with("aud", "grafana"), `expected audience "starling" got ["grafana"]`},
		"for another of two":         {with("azp", "grafana"), `was made for client "grafana", not for "starling"`},
		"expired":                    {with("exp", time.Now().Add(-skewMax-time.Second).Unix()), "token is expired"},
		"not yet":                    {with("nbf", time.Now().Add(10*time.Minute).Unix()), "before the nbf"},
		"unsigned":                   {unsigned, `unexpected signature algorithm "none"`},
		"signed with the public key": {signed(t, jose.HS256, point, l.claims(nil)), `unexpected signature algorithm "HS256"`},
		"a foreign key":              {signed(t, jose.ES256, foreign, l.claims(nil)), "failed to verify"},
		"changed":                    {fine[:len(fine)-4] + "AAAA", "failed to verify"},
		"no token":                   {"no token", "malformed jwt"},
		"not verified":               {with("email_verified", false), "does not say that it has verified"},
		"nothing about that":         {with("email_verified", nil), "does not say that it has verified"},
		"no name":                    {with("email", nil), `has no text as claim "email"`},
		"a list as a name":           {with("email", []string{"alice@example.org"}), `has no text as claim "email"`},
		"no possible name":           {with("email", "alice/../root"), "names a user that can be none"},
	} {
		if name, err := l.name(t, c.raw); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q and %v, want %s", what, name, err, c.want)
		}
	}
	for what, change := range map[string]map[string]any{
		"a clock that is behind": {"exp": time.Now().Add(-skewMax / 2).Unix()},
		"a clock that is ahead":  {"nbf": time.Now().Add(skewMax).Unix(), "iat": time.Now().Add(skewMax).Unix()},
		"several audiences":      {"aud": []string{"grafana", "starling"}, "azp": "starling"},
		"a text for true":        {"email_verified": "true"},
	} {
		if name, err := l.name(t, signed(t, jose.ES256, l.key, l.claims(change))); err != nil {
			t.Errorf("%s: got %q and %v", what, name, err)
		}
	}
}

// TestUserInfo has the provider tell the user's name apart from the id token.
func TestUserInfo(t *testing.T) {
	l := newLiar(t)
	l.discovered["userinfo_endpoint"] = l.URL + "/user"
	mine := map[string]any{"sub": "1", "email": "alice@example.org", "email_verified": true}
	l.mux.HandleFunc("/user", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer a" {
			http.Error(w, "<html>\x1b[2J"+strings.Repeat("no ", 1000), http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(mine)
	})
	l.tells(signed(t, jose.ES256, l.key, l.claims(map[string]any{"email": nil, "email_verified": nil})))
	if name, err := signIn(t, l.provider("email")); name != "alice@example.org" || err != nil {
		t.Errorf("got %q and %v", name, err)
	}
	p, ctx := l.provider("email"), oidc.ClientContext(t.Context(), l.Client())
	known, err := p.discover(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.more(ctx, known, &oauth2.Token{AccessToken: "a"}, "2"); err == nil ||
		!strings.Contains(err.Error(), `says who user "1" is, and was asked about "2"`) {
		t.Errorf("of another user: got %v and %v", got, err)
	}
	if got, err := p.more(ctx, known, &oauth2.Token{AccessToken: "b"}, "1"); err == nil ||
		!strings.Contains(err.Error(), "403 Forbidden: <html>") || len(err.Error()) > 500 ||
		strings.Contains(err.Error(), "\x1b") {
		t.Errorf("with a page: got %v and %v", got, err)
	}
}

// TestProviderRefuses has the provider give no token.
func TestProviderRefuses(t *testing.T) {
	var asking sync.WaitGroup
	for code, want := range map[string]string{
		"access_denied": "the sign-in was refused", "expired_token": "was not entered in time",
		"invalid_grant": "it has been used", "invalid_client": "does not let client \"starling\" ask (invalid_client)",
		"server_error": "cannot be asked", "odd": `answers "odd" to client "starling"`, "": "503 Service Unavailable",
		"none": "gives no id token",
	} {
		l := newLiar(t)
		asking.Go(func() { // each waits for a second
			switch l.status, l.token = http.StatusBadRequest, map[string]any{"error": code}; code {
			case "none":
				l.tells(nil)
			case "":
				l.status, l.token = http.StatusServiceUnavailable, nil
			}
			_, err := signIn(t, l.provider("email"))
			if isAway := code == "server_error" || code == ""; err == nil || !strings.Contains(err.Error(), want) ||
				errors.Is(err, ErrUnavailable) != isAway {
				t.Errorf("%q: got %v, want %s", code, err, want)
			}
		})
	}
	asking.Wait()
}

// TestSignInEnds has the user take too long, or leave.
func TestSignInEnds(t *testing.T) {
	l := newLiar(t)
	late := &oauth2.DeviceAuthResponse{DeviceCode: "secret", Expiry: time.Now().Add(-time.Second), Interval: 1}
	if _, err := l.provider("email").Finish(t.Context(), "", late); !errors.Is(err, errLate) {
		t.Errorf("too late: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.provider("email").Finish(ctx, "", &oauth2.DeviceAuthResponse{DeviceCode: "secret"}); err == nil {
		t.Error("who has gone is signed in")
	}
}

// TestProviderIsWrong has the provider be no such.
func TestProviderIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*liar)
		want   string
	}{
		"another": {func(l *liar) { l.discovered["issuer"] = "https://other.example" },
			`calls itself "https://other.example"`},
		"no devices": {func(l *liar) { delete(l.discovered, "device_authorization_endpoint") },
			"does not let devices sign in"},
		"no code":        {func(l *liar) { delete(l.device, "user_code") }, "gives no code that a user can enter"},
		"not for people": {func(l *liar) { l.device["user_code"] = "\x1b[2J" }, "gives no code that a user can enter"},
		"not HTTPS": {func(l *liar) { l.discovered["device_authorization_endpoint"] = "http://127.0.0.1:1/device" },
			"which is not HTTPS"},
		"too much": {func(l *liar) { l.device["user_code"] = strings.Repeat("A", answerBytesMax) }, "cannot be asked"},
		"away":     {func(l *liar) { l.Close() }, "cannot be asked: https://127.0.0.1:"},
	} {
		l := newLiar(t)
		c.change(l)
		if _, err := l.provider("email").Begin(t.Context(), ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	away := httptest.NewTLSServer(http.RedirectHandler("https://127.0.0.1:1", http.StatusFound))
	defer away.Close()
	p := New(Settings{Issuer: away.URL}, away.Client().Transport)
	if _, err := p.Begin(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "it redirects to https://127.0") {
		t.Errorf("got %v", err)
	}
}

// TestSignInsAreBounded has more users sign in than may.
func TestSignInsAreBounded(t *testing.T) {
	l := newLiar(t)
	p := l.provider("email")
	var all []func()
	for i := range waitingMax {
		release, err := p.enter(fmt.Sprint(i / clientWaitingMax))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, release)
	}
	busy := func(client string, want bool) {
		t.Helper()
		if _, err := p.Begin(t.Context(), client); errors.Is(err, ErrBusy) != want || !want && err != nil {
			t.Errorf("%s: got %v, busy must be %v", client, err, want)
		}
	}
	busy("other", true)
	all[0]()
	busy("other", false)
	busy("1", true)
	for _, release := range all[1:] {
		release()
	}
	if len(p.waiting) != 0 || p.all != 0 {
		t.Errorf("%d wait after all, of %v", p.all, p.waiting)
	}
}

// FuzzToken reads id tokens as a provider that lies may give them: only one that it has signed names a user.
func FuzzToken(f *testing.F) {
	l := newLiar(f)
	p, ctx := l.provider("email"), oidc.ClientContext(f.Context(), l.Client())
	known, err := p.discover(ctx)
	if err != nil {
		f.Fatal(err)
	}
	fine := signed(f, jose.ES256, l.key, l.claims(map[string]any{"exp": time.Now().Add(time.Hour).Unix()}))
	f.Add(fine)
	f.Add(strings.Replace(fine, ".", ".e30.", 1))
	head, rest, _ := strings.Cut(fine, ".")
	claims, signature, _ := strings.Cut(rest, ".")
	f.Add(fmt.Sprintf(`{"protected":%q,"payload":%q,"signature":%q}`, head, claims, signature))
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + claims + ".")
	f.Fuzz(func(t *testing.T, raw string) {
		told, err := p.verified(ctx, known, raw)
		if err != nil {
			return
		}
		name, err := p.nameIn(told)
		if err != nil || name != "alice@example.org" || !strings.Contains(raw, claims) || !strings.Contains(raw, head) {
			t.Fatalf("%q names %q (%v)", raw, name, err)
		}
	})
}
