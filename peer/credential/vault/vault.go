// Package vault reads secrets from a server of Vault or OpenBao, as the instances that are to have them.
package vault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/openbao/openbao/api/v2"

	"starling/terms"
	"starling/terms/access"
)

// Settings say which server this node asks, and how.
type Settings struct {
	// Address is its URL, "" for none. CAFile has the authority that signs its certificate, "" for those that the machine
	// trusts.
	Address, CAFile string
	// Namespace is where all is, "" for the root.
	Namespace string
	// Auth is the path of the auth method of the kind JWT with which instances sign in.
	Auth string
	// Role is the one that they have where their job names none, "" for none.
	Role string
	// Every is how often what they read is read again.
	Every time.Duration
}

// Defaults of the settings.
const (
	AuthDefault  = "jwt"
	EveryDefault = 5 * time.Minute
)

// Server is a server of Vault or OpenBao.
type Server struct {
	settings Settings
	config   *api.Config
	// silentUntil is until when it is not asked, because it did not answer in time, in ns.
	silentUntil atomic.Int64
}

// Open returns the server of the settings, nil without an address. It asks nothing yet.
func Open(s Settings) (*Server, error) {
	if s.Address == "" {
		return nil, nil
	}
	config := api.NewConfig()                        // without what the command line of Vault finds in the environment
	config.Address, config.MaxRetries = s.Address, 0 // who asks tries again
	if err := config.ConfigureTLS(&api.TLSConfig{CACert: s.CAFile}); err != nil {
		return nil, fmt.Errorf("the authority of Vault: %w", err)
	}
	return &Server{settings: s, config: config}, nil
}

// Every is how often what instances read is read again; 0 for nil.
func (s *Server) Every() time.Duration {
	if s == nil {
		return 0
	}
	return s.settings.Every
}

const (
	// silentFor is how long a server is not asked again that did not answer in time: others wait for who asks it.
	silentFor = 5 * time.Second
	// endWithin bounds the wait for the end of tokens.
	endWithin = 2 * time.Second
)

// Read returns what the secrets hold that Vault keeps of some, by their names, for whoever shows the id token, and of
// those that cannot be had why. It signs in once for each role.
func (s *Server) Read(ctx context.Context, idToken string, secrets []terms.SecretUse) (values map[string][]byte,
	missing map[string]string) {
	values, missing = map[string][]byte{}, map[string]string{}
	roles := map[string]*role{}
	for _, one := range secrets {
		if one.InPool() {
			continue
		}
		value, err := s.readAs(ctx, roles, idToken, &one)
		if err != nil {
			missing[one.Name] = err.Error()
		} else {
			values[one.Name] = value
		}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	for _, as := range roles {
		if as.err == nil {
			// Tokens of Vault end by themselves, too. A batch token, or a role without that right, cannot do it before.
			_ = as.client.Auth().Token().RevokeSelfWithContext(end, "")
		}
	}
	if s != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.silentUntil.Store(time.Now().Add(silentFor).UnixNano())
	}
	return values, missing
}

// readAs returns what a secret holds, for its role among those that have signed in.
func (s *Server) readAs(ctx context.Context, roles map[string]*role, idToken string,
	one *terms.SecretUse) ([]byte, error) {
	switch {
	case s == nil:
		return nil, errors.New("this node is told of no server of Vault: set vault.address in its settings")
	case time.Now().UnixNano() < s.silentUntil.Load():
		return nil, fmt.Errorf("the Vault at %s did not answer in time", s.settings.Address)
	}
	as := roles[one.Vault.Role]
	if as == nil {
		as = &role{}
		as.client, as.err = s.signIn(ctx, idToken, one.Vault.Role)
		roles[one.Vault.Role] = as
	}
	if as.err != nil {
		return nil, as.err
	}
	return s.read(ctx, as.client, one)
}

// role is one that an instance has in Vault, or why it does not.
type role struct {
	client *api.Client
	err    error
}

// signIn returns who may read what a role may.
func (s *Server) signIn(ctx context.Context, idToken, role string) (*api.Client, error) {
	if role == "" {
		role = s.settings.Role
	}
	if role == "" {
		return nil, errors.New("no role of Vault is named: have the job name one under vault, or vault.role in the settings of nodes")
	}
	client, err := api.NewClient(s.config)
	if err != nil {
		return nil, fmt.Errorf("make a client of Vault: %w", err)
	}
	client.SetNamespace(s.settings.Namespace)
	client.ClearToken()
	answer, err := client.Logical().WriteWithContext(ctx, "auth/"+s.settings.Auth+"/login",
		map[string]any{"role": role, "jwt": idToken})
	switch {
	case err != nil:
		return nil, fmt.Errorf("sign in to Vault at %s as role %s: %w", s.settings.Address, role, plain(err))
	case answer == nil || answer.Auth == nil:
		return nil, fmt.Errorf("sign in to Vault at %s as role %s: it answers without a token", s.settings.Address, role)
	}
	client.SetToken(answer.Auth.ClientToken)
	return client, nil
}

// read returns what a secret holds.
func (s *Server) read(ctx context.Context, client *api.Client, one *terms.SecretUse) ([]byte, error) {
	at, engine := one.Vault, client.KVv2(one.Vault.Mount)
	var found *api.KVSecret
	var err error
	if one.Version == 0 {
		found, err = engine.Get(ctx, at.Path)
	} else {
		found, err = engine.GetVersion(ctx, at.Path, int(one.Version))
	}
	where := at.Mount + "/" + at.Path
	switch {
	case errors.Is(err, api.ErrSecretNotFound):
		return nil, fmt.Errorf("the Vault at %s has no secret %s in an engine of the kind KV, version 2", s.settings.Address, where)
	case err != nil:
		return nil, fmt.Errorf("read %s of Vault at %s: %w", where, s.settings.Address, plain(err))
	case found.Data == nil:
		return nil, fmt.Errorf("the version of %s in Vault at %s was deleted there", where, s.settings.Address)
	}
	value, err := valueOf(found.Data, at.Field)
	if err != nil {
		return nil, fmt.Errorf("%s in Vault at %s %w", where, s.settings.Address, err)
	}
	return value, nil
}

// valueOf returns a field, as it is if it is a text, or all of them.
func valueOf(fields map[string]any, field string) (value []byte, err error) {
	switch one, has := fields[field]; {
	case field == "":
		value, err = json.Marshal(fields)
	case !has:
		return nil, fmt.Errorf("has no field %s; it has %s", field, strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
	default:
		if text, is := one.(string); is {
			value = []byte(text)
		} else {
			value, err = json.Marshal(one)
		}
	}
	if len(value) > access.SecretBytesMax {
		return nil, fmt.Errorf("has %d bytes, at most %d are given to an instance", len(value), access.SecretBytesMax)
	}
	return value, err
}

// plain says in one line what Vault says in many.
func plain(err error) error {
	var refused *api.ResponseError
	if !errors.As(err, &refused) {
		return err
	}
	text := strings.Join(strings.Fields(strings.Join(refused.Errors, "; ")), " ")
	return fmt.Errorf("it says %d: %s", refused.StatusCode, text)
}
