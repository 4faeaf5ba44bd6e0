package trust

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"starling/terms/access"
)

// How long certificates are good for, and how much earlier they begin, for clocks that differ: those of nodes, which
// members of the engine show each other, and of authorities by more than a wrong time zone.
const (
	AuthorityLife = 10 * 365 * 24 * time.Hour
	NodeLife      = 30 * 24 * time.Hour
	early         = 5 * time.Minute
	nodeEarly     = 48 * time.Hour
)

// ServerName stands in the certificates of nodes and in no others: where names of hosts are verified, as between
// members of the engine, it is asked for whatever the address.
const ServerName = "node.starling"

// forever is how certificates say that they do not expire.
var forever = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// Authority signs certificates. The cluster's makes those of nodes and users, each node's own those of its instances.
type Authority struct {
	Certificate *x509.Certificate
	key         crypto.Signer
	cluster     string
	instances   bool
}

// NewAuthority makes the authority of a new cluster, and with it the cluster's name.
func NewAuthority() (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	cluster := strings.ToLower(rand.Text()[:12])
	a := &Authority{key: key, cluster: cluster}
	return a, a.certify(a, authorityPrefix+cluster, time.Now().Add(AuthorityLife))
}

// authorityPrefix begins the name of a cluster's authority; those that follow one another have the same.
const authorityPrefix = "starling "

// certify completes an authority by its certificate, which another signs, or itself. Its path has no limit, for those
// that follow are on it.
func (a *Authority) certify(by *Authority, name string, end time.Time) error {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-nodeEarly), NotAfter: end, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	parent := template
	if by != a {
		parent = by.Certificate
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, a.key.Public(), by.key)
	if err == nil {
		a.Certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return fmt.Errorf("make the certificate of an authority: %w", err)
	}
	return nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, nil
}

// ErrNobody tells that nobody can be called so.
var ErrNobody = errors.New("the name cannot be one")

// Sign returns a certificate for the owner of a key, in DER. It never ends later than the authority.
func (a *Authority) Sign(key crypto.PublicKey, who Identity, life time.Duration) ([]byte, error) {
	who.Cluster = a.cluster
	if reason := who.Problem(); reason != "" {
		return nil, fmt.Errorf("%w: %s", ErrNobody, reason)
	}
	if a.instances != (who.Kind == access.OfInstance) {
		return nil, fmt.Errorf("%s does not sign for %s", a.Certificate.Subject.CommonName, who)
	}
	end := time.Now().Add(life)
	if end.After(a.Certificate.NotAfter) || a.instances {
		end = a.Certificate.NotAfter
	}
	template := &x509.Certificate{
		NotBefore: time.Now().Add(-early), NotAfter: end, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}
	template.URIs = append(template.URIs, who.URI())
	switch who.Kind {
	case access.OfNode:
		template.NotBefore = time.Now().Add(-nodeEarly)
		template.Subject = pkix.Name{CommonName: who.Name}
		template.DNSNames = []string{ServerName}
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	case access.OfUser:
		template.Subject = pkix.Name{CommonName: who.Name, Organization: []string{who.Role.String()}}
	case access.OfInstance:
		template.Subject = pkix.Name{CommonName: who.Allocation}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for %s: %w", who, err)
	}
	return der, nil
}

// clusterOf returns the name of the cluster whose authority the certificate is of, "" if it is none of a cluster.
func clusterOf(ca *x509.Certificate) string {
	cluster, found := strings.CutPrefix(ca.Subject.CommonName, authorityPrefix)
	if !found || !ca.IsCA {
		return ""
	}
	return cluster
}

// Hash names an authority by its certificate, for those who must know it before they send anything.
func Hash(ca *x509.Certificate) string {
	sum := sha256.Sum256(ca.Raw)
	return hex.EncodeToString(sum[:])
}

// proofKey is what secrets of joining are derived with: only who holds the authority's key has it.
func (a *Authority) proofKey() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, fmt.Errorf("encode the authority's key: %w", err)
	}
	return mac(der, "starling join tokens"), nil
}

func mac(key []byte, texts ...string) []byte {
	hash := hmac.New(sha256.New, key)
	for _, text := range texts {
		hash.Write([]byte(text))
	}
	return hash.Sum(nil)
}
