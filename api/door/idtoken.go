package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"starling/api/wire"
	"starling/cluster"
	"starling/replica/reaction"
	"starling/terms"
	"starling/terms/access"
	"starling/trust"
)

// IDTokensRequest asks for the id tokens of an instance on the node that asks.
type IDTokensRequest struct {
	Allocation string `json:"allocation"`
	// Index is that of a value in which the node has the instance.
	Index terms.Index `json:"index"`
	// PullSecret asks instead for the secret with which the registry of its image is asked, and for no other.
	PullSecret bool `json:"pull_secret,omitempty"`
}

// IDTokensAnswer has them, by their names, and what the secrets hold that the instance may read, with their versions.
type IDTokensAnswer struct {
	Tokens   map[string]string               `json:"tokens"`
	Secrets  map[string][]byte               `json:"secrets,omitempty"`
	Versions map[string]access.SecretVersion `json:"versions,omitempty"`
	// Missing says of secrets that nobody can open why: they were removed, or are lost.
	Missing map[string]string `json:"missing,omitempty"`
	// Vault is the id token with which the node reads what Vault keeps for the instance.
	Vault string `json:"vault,omitempty"`
}

// idTokens signs the id tokens of an instance for its node.
func (d *Door) idTokens(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathIDTokens, func(request *IDTokensRequest) (*IDTokensAnswer, error) {
		return d.IDTokens(r.Context(), terms.NodeName(CallerOf(r.Context()).Name), request)
	})
}

// IDTokens signs the id tokens that the task of an instance asks for, if the value has the instance on the node.
func (d *Door) IDTokens(ctx context.Context, node terms.NodeName, request *IDTokensRequest) (*IDTokensAnswer, error) {
	state, err := d.keptState(ctx, request.Index)
	if err != nil {
		return nil, err
	}
	id, ok := terms.ParseAllocationID(request.Allocation)
	if !ok {
		return nil, &wire.Failure{Code: wire.Invalid, Reason: fmt.Sprintf("%q is not an allocation", request.Allocation)}
	}
	task := reaction.TaskOn(state, node, id)
	if task == nil {
		return nil, fmt.Errorf("node %s does not have %s, and gets no id tokens for it", node, id)
	}
	signed, pool := &IDTokensAnswer{Tokens: map[string]string{}}, id.Slot.Job.Pool()
	if request.PullSecret {
		value, _, err := d.openSecret(state, pool, &terms.SecretUse{Name: task.Container.PullSecret})
		signed.Secrets = map[string][]byte{task.Container.PullSecret: value}
		return signed, err
	}
	sign := func(audience string, life time.Duration) (string, error) {
		return d.config.Keys.SignIDToken(trust.IDTokenFor{Allocation: id, Node: node, Audience: audience, Life: life,
			Issuer: d.config.Issuer})
	}
	for _, k := range task.IDTokens {
		if signed.Tokens[k.Name], err = sign(k.Audience, time.Duration(k.LifeMillis)*time.Millisecond); err != nil {
			return nil, err
		}
	}
	if task.AsksVault() {
		if signed.Vault, err = sign(trust.VaultAudience, vaultTokenLife); err != nil {
			return nil, err
		}
	}
	return signed, d.openSecrets(state, pool, task.PoolSecrets(), signed)
}

// vaultTokenLife is how long an id token is good for by which a node signs in to Vault, which it does at once.
const vaultTokenLife = time.Minute

// keptState is a value of at least that index for whoever asks a keeper; other nodes refuse.
func (d *Door) keptState(ctx context.Context, index terms.Index) (*cluster.State, error) {
	answer := d.answer.Load()
	switch {
	case !d.config.Keys.IsKeeper():
		return nil, trust.ErrNotKeeper
	case answer == nil || answer.peer == nil:
		return nil, &wire.Failure{Code: wire.Unavailable, Reason: errNoPeer.Error()}
	}
	state, err := answer.peer.State(ctx, index)
	if err != nil {
		return nil, &wire.Failure{Code: wire.Unavailable, Reason: err.Error()}
	}
	return state, nil
}

// openSecrets adds what secrets of a pool hold, or why nobody can open one. The error is that another keeper may.
func (d *Door) openSecrets(state *cluster.State, pool terms.PoolPath, uses []terms.SecretUse,
	to *IDTokensAnswer) error {
	to.Secrets, to.Versions = map[string][]byte{}, map[string]access.SecretVersion{}
	to.Missing = map[string]string{}
	for _, use := range uses {
		value, version, err := d.openSecret(state, pool, &use)
		switch to.Versions[use.Name] = version; {
		case errors.Is(err, trust.ErrNotKeeper):
			return err
		case err != nil:
			to.Missing[use.Name] = err.Error()
		default:
			to.Secrets[use.Name] = value
		}
	}
	return nil
}

func (d *Door) openSecret(state *cluster.State, pool terms.PoolPath,
	use *terms.SecretUse) (value []byte, version access.SecretVersion, err error) {
	s := state.Registry().Secret(pool, use.Name, use.Version)
	switch {
	case s == nil && state.Registry().Secret(pool, use.Name, 0) != nil:
		return nil, version, &wire.Failure{Code: wire.NotFound, Reason: fmt.Sprintf(
			"pool %s has no version %d of secret %s: name one of those that \"starling secret ls\" lists", pool, use.Version,
			use.Name)}
	case s == nil:
		return nil, version, &wire.Failure{Code: wire.NotFound, Reason: fmt.Sprintf(
			"pool %s has no secret %s: put it there with \"starling secret put %[1]s/%[2]s\"", pool, use.Name)}
	}
	value, err = d.config.Keys.OpenSecret(s)
	return value, s.Put(), err
}

// SealRequest asks that what a secret holds be sealed.
type SealRequest struct {
	Pool  terms.PoolPath `json:"pool"`
	Name  string         `json:"name"`
	Value []byte         `json:"value"`
}

// seal seals what a secret holds, for a node that does not hold the authority's key.
func (d *Door) seal(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathSeal, func(request *SealRequest) (*access.Secret, error) {
		if len(request.Value) > access.SecretBytesMax {
			return nil, &wire.Failure{Code: wire.Invalid,
				Reason: fmt.Sprintf("a secret has at most %d bytes", access.SecretBytesMax)}
		}
		s, err := d.config.Keys.SealSecret(request.Pool, request.Name, request.Value)
		return &s, err
	})
}

// discovered is what OpenID Connect Discovery says of an issuer, as far as there is something to say.
type discovered struct {
	Issuer     string   `json:"issuer"`
	Keys       string   `json:"jwks_uri"`
	Responses  []string `json:"response_types_supported"`
	Subjects   []string `json:"subject_types_supported"`
	Algorithms []string `json:"id_token_signing_alg_values_supported"`
}

// keysLifeSeconds is how long others may keep the public keys, and take what is signed by one that counts no more.
const keysLifeSeconds = 300

// discovery tells outsiders who signs id tokens, and where the keys are.
func (d *Door) discovery(w http.ResponseWriter, r *http.Request) {
	base := strings.TrimSuffix(d.config.Issuer, "/")
	if base == "" {
		base = "https://" + r.Host
	}
	publish(w, "application/json", discovered{Issuer: d.config.Keys.IssuerOf(d.config.Issuer), Keys: base + PathJWKS,
		Responses: []string{"id_token"}, Subjects: []string{"public"}, Algorithms: []string{string(jose.ES256)}})
}

// jwks tells outsiders the public keys by which they verify id tokens.
func (d *Door) jwks(w http.ResponseWriter, _ *http.Request) {
	publish(w, "application/jwk-set+json", d.config.Keys.IDTokenKeys())
}

func publish(w http.ResponseWriter, kind string, document any) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", keysLifeSeconds))
	_ = json.NewEncoder(w).Encode(document) // it fails only if who asked has gone
}
