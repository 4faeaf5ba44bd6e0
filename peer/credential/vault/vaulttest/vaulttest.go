// Package vaulttest is a small server of Vault: it lets in by JWT who may have a role, and keeps secrets in an engine
// of the kind KV, version 2, as the real one answers for them.
package vaulttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Server has an engine at "kv" and an auth method at "jwt".
type Server struct {
	*httptest.Server
	// Keys returns those that sign the tokens that are taken.
	Keys func() (*jose.JSONWebKeySet, error)

	mu sync.Mutex
	// roles say of each which claims its tokens have, secrets what each path holds, by versions; nil for a deleted one.
	roles   map[string]map[string]string
	secrets map[string][]map[string]any
	// open are the tokens that count, by who has them.
	open map[string]string
	down bool
}

// New starts a server; Close ends it.
func New(keys func() (*jose.JSONWebKeySet, error)) *Server {
	s := &Server{Keys: keys, roles: map[string]map[string]string{}, secrets: map[string][]map[string]any{},
		open: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/auth/jwt/login", s.login)
	mux.HandleFunc("GET /v1/kv/data/{path...}", s.read)
	mux.HandleFunc("PUT /v1/auth/token/revoke-self", s.revoke)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.down {
			refuse(w, http.StatusServiceUnavailable, "Vault is sealed")
			return
		}
		mux.ServeHTTP(w, r)
	}))
	return s
}

// Role lets whoever shows a token for audience vault with these claims have a role, whose policy is all of the engine.
func (s *Server) Role(name string, claims map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roles[name] = claims
}

// Put adds a version of a secret, nil for one that was deleted.
func (s *Server) Put(path string, fields map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets[path] = append(s.secrets[path], fields)
}

// Seal has the server answer nothing, or answer again.
func (s *Server) Seal(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// Open returns how many tokens are open.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

func refuse(w http.ResponseWriter, status int, problems ...string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": append([]string{}, problems...)})
}

func answer(w http.ResponseWriter, body map[string]any) { _ = json.NewEncoder(w).Encode(body) }

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Role, JWT string }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	bound, known := s.roles[asked.Role]
	if !known {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("role %q could not be found", asked.Role))
		return
	}
	who, err := s.verify(asked.JWT, bound)
	if err != nil {
		refuse(w, http.StatusBadRequest, "error validating token: "+err.Error())
		return
	}
	token := "s." + strconv.Itoa(len(s.open)) + who
	s.open[token] = who
	answer(w, map[string]any{"auth": map[string]any{"client_token": token, "lease_duration": 60}})
}

func (s *Server) verify(token string, bound map[string]string) (who string, err error) {
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return "", err
	}
	keys, err := s.Keys()
	if err != nil {
		return "", err
	}
	said, all := jwt.Claims{}, map[string]any{}
	if err = parsed.Claims(*keys, &said, &all); err != nil {
		return "", err
	}
	if err = said.Validate(jwt.Expected{AnyAudience: jwt.Audience{"vault"}, Time: time.Now()}); err != nil {
		return "", err
	}
	for name, value := range bound {
		if all[name] != value {
			return "", fmt.Errorf("claim %q does not match any associated bound claim values", name)
		}
	}
	return said.Subject, nil
}

func (s *Server) read(w http.ResponseWriter, r *http.Request) {
	versions := s.secrets[r.PathValue("path")]
	number := len(versions)
	if text := r.URL.Query().Get("version"); text != "" {
		number, _ = strconv.Atoi(text)
	}
	switch {
	case s.open[r.Header.Get("X-Vault-Token")] == "":
		refuse(w, http.StatusForbidden, "permission denied")
	case number < 1 || number > len(versions):
		refuse(w, http.StatusNotFound)
	default:
		about := map[string]any{"version": number, "created_time": "2026-01-01T00:00:00Z", "destroyed": false}
		if versions[number-1] == nil {
			about["deletion_time"] = "2026-01-02T00:00:00Z"
			w.WriteHeader(http.StatusNotFound)
		}
		answer(w, map[string]any{"data": map[string]any{"data": versions[number-1], "metadata": about}})
	}
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	delete(s.open, r.Header.Get("X-Vault-Token"))
	w.WriteHeader(http.StatusNoContent)
}
