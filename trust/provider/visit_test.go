package provider

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"
)

func TestVisit(t *testing.T) {
	l := newLiar(t)
	l.discovered["authorization_endpoint"] = l.URL + "/authorize"
	p, verifier, redirect := l.provider("email"), oauth2.GenerateVerifier(), "http://127.0.0.1:1234/"
	challenge := oauth2.S256ChallengeFromVerifier(verifier)
	visit, err := p.Lead(t.Context(), "", redirect, challenge)
	if err != nil {
		t.Fatal(err)
	}
	page, err := url.Parse(visit.URL)
	if err != nil {
		t.Fatal(err)
	}
	asked := page.Query()
	for name, want := range map[string]string{"response_type": "code", "client_id": "starling", "redirect_uri": redirect,
		"scope": "openid profile email", "state": visit.State, "nonce": visit.nonce(), "code_challenge": challenge,
		"code_challenge_method": "S256"} {
		if got := asked.Get(name); got != want || want == "" {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	arrive := func(changes map[string]any) (string, error) {
		l.tells(signed(t, jose.ES256, l.key, l.claims(changes)))
		return p.Arrive(t.Context(), "", visit, Arrival{Code: "c", Verifier: verifier})
	}
	if name, err := arrive(map[string]any{"nonce": visit.nonce()}); name != "alice@example.org" || err != nil {
		t.Errorf("got %q and %v", name, err)
	}
	sent := l.asked["/token"].Form
	for name, want := range map[string]string{"grant_type": "authorization_code", "code": "c", "code_verifier": verifier,
		"redirect_uri": redirect, "client_id": "starling"} {
		if got := sent.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, nonce := range []any{nil, "", "another"} {
		name, err := arrive(map[string]any{"nonce": nonce})
		if err == nil || !strings.Contains(err.Error(), "of another sign-in") {
			t.Errorf("nonce %v: got %q and %v", nonce, name, err)
		}
	}
	l.status, l.token = http.StatusBadRequest, map[string]any{"error": "invalid_grant"}
	_, err = p.Arrive(t.Context(), "", visit, Arrival{})
	if err == nil || !strings.Contains(err.Error(), "knows the code no more") {
		t.Errorf("got %v", err)
	}
}

// TestLeadsOnlyBack asks for ways back that are another's, and of providers that lead nowhere.
func TestLeadsOnlyBack(t *testing.T) {
	l := newLiar(t)
	challenge := oauth2.S256ChallengeFromVerifier("v")
	for _, redirect := range []string{"http://10.0.0.1:80/", "http://evil.example:80/", "https://127.0.0.1:1/",
		"http://127.0.0.1/",
		"http://127.0.0.1:1@evil.example:2/", "http://localhost:1/", "javascript:1", "127.0.0.1:1", "http://u@127.0.0.1:1/"} {
		if visit, err := l.provider("email").Lead(t.Context(), "", redirect, challenge); err == nil ||
			!strings.Contains(err.Error(), "is led back to the loopback address") {
			t.Errorf("%s: got %v and %v", redirect, visit, err)
		}
	}
	for _, challenge := range []string{"", "short", strings.Repeat("=", 43)} {
		if visit, err := l.provider("email").Lead(t.Context(), "", "http://127.0.0.1:1/", challenge); err == nil ||
			!strings.Contains(err.Error(), "RFC 7636") {
			t.Errorf("challenge %q: got %v and %v", challenge, visit, err)
		}
	}
	for _, endpoint := range []any{nil, "http://h/authorize", "https://h/\x1b[2J"} {
		l.discovered["authorization_endpoint"] = endpoint
		if visit, err := l.provider("email").Lead(t.Context(), "", "http://[::1]:1/", challenge); err == nil ||
			!strings.Contains(err.Error(), "no authorization_endpoint with https") {
			t.Errorf("endpoint %v: got %v and %v", endpoint, visit, err)
		}
	}
}
