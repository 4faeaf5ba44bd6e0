package trust

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"starling/terms/access"
)

// TokenPrefix begins every line by which a machine joins.
const TokenPrefix = "starling-join-1:"

// TokenLife is how long a token is good for unless asked otherwise, TokenLifeMax the longest.
const (
	TokenLife    = 15 * time.Minute
	TokenLifeMax = 30 * 24 * time.Hour
)

// Token lets machines join. It is one line of text, and may be used until it expires.
type Token struct {
	// Addresses are where nodes answer that can admit, CA the hash of the authority that these must have.
	Addresses []string `json:"addresses"`
	CA        string   `json:"ca"`
	// Claims are what the secret was made for; the joiner sends them, but never the secret.
	Claims []byte `json:"claims"`
	Secret []byte `json:"secret"`
}

// Claims say what a token is good for.
type Claims struct {
	Expires time.Time `json:"expires"`
	// Node is the only name under which a machine may join, "" for any.
	Node string `json:"node,omitempty"`
	// Keeper gives the machine the authority's key.
	Keeper bool `json:"keeper,omitempty"`
	// Uses is how many machines may join by it, as the cluster's registry counts; 0 for a token from before that had one,
	// which counts until it expires.
	Uses uint32 `json:"uses,omitempty"`
	// ID tells tokens apart.
	ID string `json:"id"`
}

// NewToken makes a token for what the claims say.
func (k *Keys) NewToken(addresses []string, claims Claims) (*Token, error) {
	signer := k.signer()
	if signer == nil {
		return nil, ErrNotKeeper
	}
	claims.ID = rand.Text()
	text, err := json.Marshal(claims)
	if err != nil {
		return nil, err
	}
	key, err := signer.proofKey()
	if err != nil {
		return nil, err
	}
	return &Token{addresses, Hash(signer.Certificate), text, mac(key, string(text))}, nil
}

// Line returns the token as text.
func (t *Token) Line() (string, error) { return encodeLine(TokenPrefix, t) }

// ParseToken reads a line.
func ParseToken(line string) (*Token, error) {
	t := &Token{}
	if err := decodeLine(TokenPrefix, line, t); err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	if len(t.Addresses) == 0 || t.CA == "" || len(t.Claims) == 0 || len(t.Secret) == 0 {
		return nil, errors.New("token: the line is damaged: copy all of it")
	}
	return t, nil
}

// Proof shows that the joiner has the secret, on this channel only and for this request only.
func (t *Token) Proof(channel, csr []byte) []byte { return mac(t.Secret, string(channel), string(csr)) }

// Check returns what a token is good for whose secret the joiner has proved to have, on the channel and for the
// request.
func (k *Keys) Check(text, proof, channel, csr []byte) (*Claims, error) {
	held := k.known.Load().held()
	if len(held) == 0 {
		return nil, ErrNotKeeper
	}
	isProof := func(a *Authority) bool {
		key, err := a.proofKey()
		return err == nil && hmac.Equal(proof, mac(mac(key, string(text)), string(channel), string(csr)))
	}
	if !slices.ContainsFunc(held, isProof) {
		return nil, errors.New("the token is not of this cluster, or was changed, or its authority counts no more: " +
			"make one with `starling token create`")
	}
	claims := &Claims{}
	if err := json.Unmarshal(text, claims); err != nil {
		return nil, fmt.Errorf("the token's claims: %w", err)
	}
	if time.Now().After(claims.Expires) {
		return nil, fmt.Errorf("the token expired at %s: make another with `starling token create`",
			claims.Expires.Format(time.RFC3339))
	}
	return claims, nil
}

// signInText is what the proof of a sign-in is about: no claims of a token begin so.
func signInText(code string, key access.Key) string { return "sign-in " + string(key[:]) + code }

// SignInProof shows that a sign-in with this secret code of the provider was begun for a key.
func (k *Keys) SignInProof(code string, key access.Key) ([]byte, error) {
	signer := k.signer()
	if signer == nil {
		return nil, ErrNotKeeper
	}
	by, err := signer.proofKey()
	return mac(by, signInText(code, key)), err
}

// IsSignIn tells whether a node that holds a key of an authority that counts has made the proof.
func (k *Keys) IsSignIn(proof []byte, code string, key access.Key) bool {
	return slices.ContainsFunc(k.known.Load().held(), func(a *Authority) bool {
		by, err := a.proofKey()
		return err == nil && hmac.Equal(proof, mac(by, signInText(code, key)))
	})
}

// Knows tells whether the authority of a token is one of this node's cluster, of now or before.
func (k *Keys) Knows(t *Token) bool {
	return slices.ContainsFunc(k.known.Load().all(), func(c *x509.Certificate) bool { return Hash(c) == t.CA })
}
