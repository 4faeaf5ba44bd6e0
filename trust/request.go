package trust

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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

// Admission is what the owner of the key has when the certificate has come, in DER like the authority's.
func (r *Request) Admission(certificate, authority []byte) Admission {
	return Admission{Certificate: certificate, Authority: authority, key: r.key}
}

// Credentials are the same for a user.
func (r *Request) Credentials(addresses []string, certificate, authority []byte) (*Credentials, error) {
	return newCredentials(addresses, authority, certificate, r.key)
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

// RenewNode returns a new certificate for a node that shows its last one and proves that it has the key.
func (k *Keys) RenewNode(certificate, csr []byte) (renewed []byte, node string, err error) {
	old, err := x509.ParseCertificate(certificate)
	if err != nil {
		return nil, "", fmt.Errorf("the certificate to renew: %w", err)
	}
	if err := old.CheckSignatureFrom(k.cluster); err != nil {
		return nil, "", fmt.Errorf("the certificate to renew is not of this cluster: %w", err)
	}
	who, err := IdentityOf(old)
	if err != nil {
		return nil, "", err
	}
	key, err := KeyOf(csr)
	switch {
	case err != nil:
		return nil, "", err
	case who.Kind != access.OfNode:
		return nil, "", fmt.Errorf("only nodes renew their certificates, not %s", who)
	case !sameKey(key, old.PublicKey):
		return nil, "", errors.New("the certificate signing request is not by the owner of the certificate")
	}
	renewed, err = k.SignNode(who.Name, key)
	return renewed, who.Name, err
}
