package door

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"starling/api/wire"
	"starling/terms/access"
	"starling/trust"
)

// admitBytesMax bounds a request about identities.
const admitBytesMax = 128 << 10

// JoinRequest asks for a node's first certificate.
type JoinRequest struct {
	Node   string `json:"node"`
	Claims []byte `json:"claims"`
	Proof  []byte `json:"proof"`
	CSR    []byte `json:"csr"`
}

// JoinAnswer has it, the authority that has signed it, the key of that if the token says so, and all authorities.
type JoinAnswer struct {
	Certificate  []byte             `json:"certificate"`
	Authority    []byte             `json:"authority"`
	AuthorityKey []byte             `json:"authority_key,omitempty"`
	Authorities  []access.Authority `json:"authorities,omitempty"`
}

// RenewRequest asks for the next certificate of a node or a user.
type RenewRequest struct {
	Certificate []byte `json:"certificate"`
	CSR         []byte `json:"csr"`
}

// RenewAnswer has it, and all authorities.
type RenewAnswer struct {
	Certificate []byte             `json:"certificate"`
	Authorities []access.Authority `json:"authorities,omitempty"`
}

// TokenRequest asks for a token.
type TokenRequest struct {
	LifeSeconds int64  `json:"life_seconds"`
	Node        string `json:"node,omitempty"`
	Keeper      bool   `json:"keeper,omitempty"`
	// Uses is how many machines may join by it, 0 for one.
	Uses uint32 `json:"uses,omitempty"`
}

// TokenAnswer has it.
type TokenAnswer struct {
	Token *trust.Token `json:"token"`
}

// UserRequest asks for a user's certificate.
type UserRequest struct {
	Name        string `json:"name"`
	Role        string `json:"role"`
	LifeSeconds int64  `json:"life_seconds"`
	CSR         []byte `json:"csr"`
	// OIDC lets the user sign in instead, and gives the role; there is no key and no certificate.
	OIDC bool `json:"oidc,omitempty"`
}

// UserAnswer has it.
type UserAnswer struct {
	Certificate []byte `json:"certificate,omitempty"`
	Authority   []byte `json:"authority"`
	Address     string `json:"address"`
}

// UserLife is how long a user's certificate is good for unless asked otherwise, userLifeMax the longest.
const (
	UserLife    = 90 * 24 * time.Hour
	userLifeMax = 5 * 365 * 24 * time.Hour
)

// join admits a node whose token is good. The proof counts on this connection alone.
func (d *Door) join(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathJoin, func(request *JoinRequest) (*JoinAnswer, error) {
		if r.TLS == nil {
			return nil, errors.New("a node joins over TLS")
		}
		channel, err := trust.Channel(r.TLS)
		if err != nil {
			return nil, err
		}
		claims, err := d.config.Keys.Check(request.Claims, request.Proof, channel, request.CSR)
		if err != nil {
			return nil, err
		}
		switch {
		case claims.Node != "" && claims.Node != request.Node:
			return nil, fmt.Errorf("the token is for node %s, not for %q", claims.Node, request.Node)
		case request.Node == d.config.Keys.Node():
			return nil, fmt.Errorf("the name %s is that of the node that admits: give each machine a name of its own", request.Node)
		}
		key, err := trust.KeyOf(request.CSR)
		if err == nil {
			err = d.admitNode(r.Context(), request.Node, key, claims)
		}
		if err != nil {
			return nil, err
		}
		if !d.config.Keys.IsKeeper() {
			return nil, trust.ErrNotKeeper
		}
		answer := &JoinAnswer{Authority: d.config.Keys.Signer().Raw, Authorities: d.config.Keys.Listed()}
		if answer.Certificate, err = d.config.Keys.SignNode(request.Node, key); err != nil {
			return nil, err
		}
		if claims.Keeper {
			if answer.AuthorityKey, err = d.config.Keys.AuthorityKey(); err != nil {
				return nil, err
			}
		}
		d.config.Log.Info("a node was admitted", "node", request.Node, "keeper", claims.Keeper, "token", claims.ID,
			"from", r.RemoteAddr)
		return answer, nil
	})
}

// renew gives a node or a user the next certificate.
func (d *Door) renew(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathRenew, func(request *RenewRequest) (*RenewAnswer, error) {
		renewed, who, err := d.config.Keys.Renew(request.Certificate, request.CSR, d.knows)
		if err != nil {
			return nil, err
		}
		d.config.Log.Info("a certificate was renewed", "of", who.String())
		return &RenewAnswer{renewed, d.config.Keys.Listed()}, nil
	})
}

// token makes a token by which machines join.
func (d *Door) token(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathToken, func(request *TokenRequest) (*TokenAnswer, error) {
		life := time.Duration(request.LifeSeconds) * time.Second
		if life <= 0 || life > trust.TokenLifeMax {
			return nil, fmt.Errorf("a token must be good for 1 s to %s", trust.TokenLifeMax)
		}
		claims := trust.Claims{Expires: time.Now().Add(life).UTC().Truncate(time.Second), Node: request.Node,
			Keeper: request.Keeper}
		if d.isInForce(r.Context()) {
			claims.Uses = max(request.Uses, 1)
		} else if err := d.blind(); err != nil {
			return nil, err
		}
		token, err := d.config.Keys.NewToken([]string{d.config.Address}, claims)
		if err == nil && claims.Uses > 0 {
			err = d.addToken(r.Context(), token)
		}
		if err != nil {
			return nil, err
		}
		d.config.Log.Info("a join token was made", "by", CallerOf(r.Context()).String(), "life", life.String(),
			"node", request.Node, "keeper", request.Keeper)
		return &TokenAnswer{token}, nil
	})
}

// user signs the certificate of a user, whose key it never sees.
func (d *Door) user(w http.ResponseWriter, r *http.Request) {
	admit(w, r, PathUser, func(request *UserRequest) (*UserAnswer, error) {
		role := access.NoRole
		if request.Role != "" {
			var err error
			if role, err = access.ParseRole(request.Role); err != nil {
				return nil, err
			}
		}
		if request.OIDC {
			return d.letSignIn(r.Context(), request.Name, role)
		}
		life := time.Duration(request.LifeSeconds) * time.Second
		if life <= 0 || life > userLifeMax {
			return nil, fmt.Errorf("credentials must be good for 1 s to %s", userLifeMax)
		}
		key, err := trust.KeyOf(request.CSR)
		if err != nil {
			return nil, err
		}
		certificate, err := d.config.Keys.SignUser(request.Name, role, key, life)
		if err == nil {
			err = d.addUser(r.Context(), request.Name, role, certificate)
		}
		if err != nil {
			return nil, err
		}
		d.config.Log.Info("credentials were made", "by", CallerOf(r.Context()).String(), "for", request.Name,
			"role", request.Role, "life", life.String())
		return &UserAnswer{certificate, d.config.Keys.Signer().Raw, d.config.Address}, nil
	})
}

// admit reads a request, if its sender may make it, and writes its answer.
func admit[Q, A any](w http.ResponseWriter, r *http.Request, method string, do func(*Q) (*A, error)) {
	err := Check(r.Context(), method)
	if err != nil {
		WriteFailure(w, http.StatusForbidden, &wire.Failure{Code: wire.Denied, Reason: err.Error()})
		return
	}
	request := new(Q)
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, admitBytesMax))
	var large *http.MaxBytesError
	var failure *wire.Failure
	switch {
	case errors.As(err, &large):
		WriteFailure(w, http.StatusRequestEntityTooLarge, tooLarge())
		return
	case errors.As(err, &failure):
		WriteFailure(w, StatusOf(failure.Code), failure)
		return
	case err == nil:
		err = json.Unmarshal(text, request)
	}
	if err != nil {
		WriteFailure(w, http.StatusBadRequest, &wire.Failure{Code: wire.Invalid,
			Reason: fmt.Sprintf("the request cannot be read: %v", err)})
		return
	}
	answer, err := do(request)
	if errors.As(err, &failure) {
		WriteFailure(w, http.StatusForbidden, failure)
		return
	}
	if err != nil {
		code := wire.Denied
		switch {
		case errors.Is(err, trust.ErrNotKeeper):
			code = wire.Conflict
		case errors.Is(err, trust.ErrNobody):
			code = wire.Invalid
		}
		WriteFailure(w, http.StatusForbidden, &wire.Failure{Code: code, Reason: err.Error()})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // it fails only if who asked has gone
}
