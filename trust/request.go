package trust

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"starling/terms/access"
)

// Request is a new key, with what its owner asks an authority to sign.
type Request struct {
	// CSR is the certificate signing request, in DER. It proves that who sends it has the key.
	CSR []byte
	key crypto.Signer
}

// NewRequest makes a key and a request for it.
func NewRequest() (*Request, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	return requestFor(key)
}

// RequestIn is the request of a node that joins, with a key that it keeps in its folder from before it asks: a
// repetition, after an answer that did not come, is for the same key.
func RequestIn(folder string) (*Request, error) {
	path := filepath.Join(folder, nodeKeyFile)
	text, err := ReadPrivate(path)
	if err == nil {
		key, err := parseKey(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return requestFor(key)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	request, err := NewRequest()
	if err != nil {
		return nil, err
	}
	text, err = keyPEM(request.key)
	if err == nil {
		err = makeFolder(folder)
	}
	if err == nil {
		err = WritePrivate(path, text)
	}
	return request, err
}

// Forget removes what RequestIn has kept.
func Forget(folder string) error {
	return errors.Join(os.Remove(filepath.Join(folder, nodeKeyFile)), os.Remove(folder))
}

func requestFor(key crypto.Signer) (*Request, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate signing request: %w", err)
	}
	return &Request{CSR: der, key: key}, nil
}

// Admission is what the owner of the key has when the certificate has come, in DER like that of the authority which has
// signed it; listed are all of the cluster.
func (r *Request) Admission(certificate, authority []byte, listed []access.Authority) Admission {
	return Admission{Certificate: certificate, Authority: authority, listed: listed, key: r.key}
}

// Credentials are the same for a user.
func (r *Request) Credentials(addresses []string, certificate, authority []byte) (*Credentials, error) {
	return newCredentials(addresses, [][]byte{authority}, certificate, r.key)
}

// KeyOf returns the key of a certificate signing request whose sender has it.
func KeyOf(csr []byte) (crypto.PublicKey, error) {
	request, err := x509.ParseCertificateRequest(csr)
	if err == nil {
		err = request.CheckSignature()
	}
	if err != nil {
		return nil, fmt.Errorf("the certificate signing request: %w", err)
	}
	return request.PublicKey, nil
}

// RenewalRequest is what this node sends for a new certificate: the present one, which may have expired, and the
// proof that it has the key.
func (k *Keys) RenewalRequest() (certificate, csr []byte, err error) {
	request, err := requestFor(k.key)
	if err != nil {
		return nil, nil, err
	}
	return k.shown.Load().Leaf.Raw, request.CSR, nil
}

// Standing is what the cluster knows of a key.
type Standing struct {
	// Known tells that the key is known as that of who says so.
	Known bool
	// Role and Until are a user's, as they were given.
	Role  access.Role
	Until time.Time
}

// Renew returns a new certificate for a node or a user that shows its last one and proves that it has the key. Known
// tells what the cluster knows of the key: if nothing, an authority that counts must have signed the last one. A user's
// has the role and the end that are known, or else those of the last one: what that says is its owner's word where its
// signature is not asked for.
func (k *Keys) Renew(certificate, csr []byte, known func(Identity, crypto.PublicKey) (Standing, error)) (renewed []byte,
	who Identity, err error) {
	old, err := x509.ParseCertificate(certificate)
	if err != nil {
		return nil, who, fmt.Errorf("the certificate to renew: %w", err)
	}
	if who, err = IdentityOf(old); err != nil {
		return nil, who, err
	}
	key, err := KeyOf(csr)
	switch {
	case err != nil:
		return nil, who, err
	case who.Kind != access.OfNode && who.Kind != access.OfUser:
		return nil, who, fmt.Errorf("only nodes and users renew their certificates, not %s", who)
	case !sameKey(key, old.PublicKey):
		return nil, who, errors.New("the certificate signing request is not by the owner of the certificate")
	}
	stands, err := known(who, key)
	until := old.NotAfter
	if stands.Known {
		who.Role, until = stands.Role, stands.Until
	}
	switch life := time.Until(until); {
	case err != nil:
		return nil, who, err
	case who.Cluster != k.Cluster() || !stands.Known && signerOf(old, k.known.Load().counting) == nil:
		return nil, who, errors.New("the certificate to renew is not of this cluster, or of an authority that counts no more")
	case who.Kind == access.OfNode:
		renewed, err = k.SignNode(who.Name, key)
	case life <= 0:
		err = fmt.Errorf("the credentials of %s have expired: ask an admin for others", who)
	default:
		renewed, err = k.SignUser(who.Name, who.Role, key, life)
	}
	return renewed, who, err
}

// anybody is known to a node that renews its own certificate.
func anybody(Identity, crypto.PublicKey) (Standing, error) { return Standing{Known: true}, nil }

// RenewSelf renews this node's certificate, if it holds the key of an authority.
func (k *Keys) RenewSelf() error {
	certificate, csr, err := k.RenewalRequest()
	if err != nil {
		return err
	}
	renewed, _, err := k.Renew(certificate, csr, anybody)
	if err != nil {
		return err
	}
	return k.Renewed(renewed)
}

// RenewalRequest is what the user sends for a certificate by the newest authority.
func (c *Credentials) RenewalRequest() (certificate, csr []byte, err error) {
	request, err := requestFor(c.shown.PrivateKey.(crypto.Signer))
	if err != nil {
		return nil, nil, err
	}
	return c.shown.Certificate[0], request.CSR, nil
}

// Renewed returns the credentials with the certificate, in DER, and the authorities that count, and keeps them in the
// file that they came from.
func (c *Credentials) Renewed(certificate []byte, listed []access.Authority) (*Credentials, error) {
	var authorities [][]byte
	for _, one := range slices.Backward(listed) {
		ca, err := CertificateOf(one)
		if err != nil {
			return nil, err
		}
		if !one.Former {
			authorities = append(authorities, ca.Raw)
		}
	}
	if len(authorities) == 0 {
		return nil, errNoCertificate
	}
	fresh, err := newCredentials(c.Addresses, authorities, certificate, c.shown.PrivateKey.(crypto.Signer))
	if err != nil || c.file == "" {
		return fresh, err
	}
	fresh.file = c.file
	return fresh, Keep(c.file, fresh)
}
