package trust

import (
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"strconv"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"starling/terms"
	"starling/terms/access"
)

// VaultAudience is for whom those id tokens are with which nodes read what Vault keeps for instances.
const VaultAudience = "vault"

// IDTokenFor says of whom an id token is, for whom, and how long it is good for.
type IDTokenFor struct {
	Allocation terms.AllocationID
	Node       terms.NodeName
	Audience   string
	Life       time.Duration
	// Issuer is who signs, as outsiders know the cluster; "" for the cluster's SPIFFE id.
	Issuer string
}

// instanceClaims are what an id token says beside what all of them do.
type instanceClaims struct {
	Pool       string `json:"starling_pool"`
	Job        string `json:"starling_job"`
	Task       string `json:"starling_task"`
	Index      string `json:"starling_index"`
	Allocation string `json:"starling_allocation"`
	Node       string `json:"starling_node"`
}

// InstanceName is what an instance is called as an identity.
func InstanceName(slot terms.SlotName) string {
	return fmt.Sprintf("%s/%s/%d", slot.Job, slot.Task, slot.Index)
}

// IssuerOf returns the issuer that stands in id tokens.
func (k *Keys) IssuerOf(told string) string {
	if told != "" {
		return told
	}
	return "spiffe://" + k.Cluster()
}

// SignIDToken returns an id token of an instance, signed with the key of the newest authority that this node holds.
func (k *Keys) SignIDToken(of IDTokenFor) (string, error) {
	by := k.signer()
	if by == nil {
		return "", ErrNotKeeper
	}
	options := (&jose.SignerOptions{}).WithType("JWT")
	key := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: by.key, KeyID: keyID(by.Certificate)}}
	signer, err := jose.NewSigner(key, options)
	if err != nil {
		return "", fmt.Errorf("sign an id token: %w", err)
	}
	slot, at := of.Allocation.Slot, time.Now().Truncate(time.Second)
	who := Identity{Kind: access.OfInstance, Cluster: k.Cluster(), Name: InstanceName(slot)}
	token, err := jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: k.IssuerOf(of.Issuer), Subject: who.URI().String(), Audience: jwt.Audience{of.Audience},
		Expiry: jwt.NewNumericDate(at.Add(of.Life)), NotBefore: jwt.NewNumericDate(at), IssuedAt: jwt.NewNumericDate(at),
		ID: rand.Text(),
	}).Claims(instanceClaims{
		Pool: string(slot.Job.Pool()), Job: string(slot.Job), Task: string(slot.Task),
		Index: strconv.FormatUint(uint64(slot.Index), 10), Allocation: of.Allocation.String(), Node: string(of.Node),
	}).Serialize()
	if err != nil {
		return "", fmt.Errorf("sign an id token: %w", err)
	}
	return token, nil
}

// keyID is what the key of an authority is called in id tokens.
func keyID(ca *x509.Certificate) string { return Listed(ca).ID().String() }

// IDTokenKeys are the public keys of the authorities that count, by which anybody verifies id tokens.
func (k *Keys) IDTokenKeys() jose.JSONWebKeySet {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, ca := range k.known.Load().counting {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: ca.PublicKey, KeyID: keyID(ca), Algorithm: string(jose.ES256),
			Use: "sig"})
	}
	return set
}
