package trust

import (
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"starling/terms/access"
)

// Folder is that of a node's keys, within its data directory.
const Folder = "trust"

// The files of a node, in that folder. The engine reads them too, again for every connection.
const (
	authorityFile    = "ca.pem"
	authorityKeyFile = "ca.key"
	nodeFile         = "node.pem"
	nodeKeyFile      = "node.key"
	addressesFile    = "addresses"
)

// Keys are what a node has to show who it is and to know others.
type Keys struct {
	folder  string
	node    string
	cluster *x509.Certificate
	// authority is nil on a node that does not hold its key.
	authority *Authority
	// instances signs for the instances of this node, with the node's own key.
	instances *Authority
	key       crypto.Signer
	shown     atomic.Pointer[tls.Certificate]
}

// Create makes a cluster: its authority, and the first node's key and certificate.
func Create(folder, node string) (*Keys, error) {
	authority, err := NewAuthority()
	if err != nil {
		return nil, err
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	der, err := authority.Sign(key.Public(), Identity{Kind: access.OfNode, Name: node}, NodeLife)
	if err != nil {
		return nil, err
	}
	return Store(folder, Admission{Certificate: der, Authority: authority.Certificate.Raw, key: key, authority: authority})
}

// Another returns what another node of the same cluster has in its folder, and makes it where that is missing.
func (k *Keys) Another(folder, node string) (*Keys, error) {
	if known, err := Load(folder); err == nil || !errors.Is(err, os.ErrNotExist) {
		return known, err
	}
	request, err := NewRequest()
	if err != nil {
		return nil, err
	}
	der, err := k.SignNode(node, request.key.Public())
	if err != nil {
		return nil, err
	}
	return Store(folder, request.Admission(der, k.cluster.Raw))
}

// Admission is what a node gets when it becomes one of a cluster.
type Admission struct {
	// Certificate and Authority are in DER.
	Certificate, Authority []byte
	key                    crypto.Signer
	authority              *Authority
}

// WithAuthority adds the authority's key, in PKCS #8.
func (a Admission) WithAuthority(der []byte) (Admission, error) {
	key, err := keyOf(der)
	if err != nil {
		return a, fmt.Errorf("the authority's key: %w", err)
	}
	certificate, err := x509.ParseCertificate(a.Authority)
	if err != nil {
		return a, fmt.Errorf("the authority's certificate: %w", err)
	}
	a.authority = &Authority{Certificate: certificate, key: key}
	return a, nil
}

// makeFolder makes the folder of keys. What is around it others may pass through, to what is theirs there.
func makeFolder(folder string) error {
	err := os.MkdirAll(filepath.Dir(folder), 0o755)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err != nil {
		return fmt.Errorf("make the folder of keys: %w", err)
	}
	return nil
}

// Store writes what a node has got into its folder, the certificate last: with it the rest is there.
func Store(folder string, a Admission) (*Keys, error) {
	if err := makeFolder(folder); err != nil {
		return nil, err
	}
	type file struct {
		name string
		text []byte
	}
	key, err := keyPEM(a.key)
	if err != nil {
		return nil, err
	}
	files := []file{{nodeKeyFile, key}, {authorityFile, certificatePEM(a.Authority)}}
	if a.authority != nil {
		text, err := keyPEM(a.authority.key)
		if err != nil {
			return nil, err
		}
		files = append(files, file{authorityKeyFile, text})
	}
	for _, f := range append(files, file{nodeFile, certificatePEM(a.Certificate, a.Authority)}) {
		if err := WritePrivate(filepath.Join(folder, f.name), f.text); err != nil {
			return nil, fmt.Errorf("keep %s: %w", f.name, err)
		}
	}
	return Load(folder)
}

// Load reads what a node keeps in its folder; the error is os.ErrNotExist if it is in no cluster yet.
func Load(folder string) (*Keys, error) {
	k := &Keys{folder: folder}
	texts := map[string][]byte{}
	for _, name := range []string{nodeFile, authorityFile, nodeKeyFile, authorityKeyFile} {
		text, err := ReadPrivate(filepath.Join(folder, name))
		if err != nil && !(name == authorityKeyFile && errors.Is(err, os.ErrNotExist)) {
			return nil, fmt.Errorf("read this node's keys: %w", err)
		}
		texts[name] = text
	}
	wrong := func(name string, err error) error { return fmt.Errorf("%s: %w", filepath.Join(folder, name), err) }
	var err error
	if k.cluster, err = parseCertificate(texts[authorityFile]); err != nil {
		return nil, wrong(authorityFile, err)
	}
	if k.key, err = parseKey(texts[nodeKeyFile]); err != nil {
		return nil, wrong(nodeKeyFile, err)
	}
	if text := texts[authorityKeyFile]; text != nil {
		key, err := parseKey(text)
		if err != nil {
			return nil, wrong(authorityKeyFile, err)
		}
		k.authority = &Authority{Certificate: k.cluster, key: key, cluster: clusterOf(k.cluster)}
	}
	if err := k.show(texts[nodeFile]); err != nil {
		return nil, wrong(nodeFile, err)
	}
	k.instances, err = selfSigned(&Authority{key: k.key, cluster: k.Cluster(), instances: true},
		"instances of "+k.node+" in "+k.Cluster(), forever)
	return k, err
}

// show lets others see this certificate from now on.
func (k *Keys) show(chain []byte) error {
	leaf, err := parseCertificate(chain)
	if err != nil {
		return err
	}
	if err := leaf.CheckSignatureFrom(k.cluster); err != nil {
		return fmt.Errorf("the authority of this cluster has not signed it: %w", err)
	}
	if !sameKey(leaf.PublicKey, k.key.Public()) {
		return errors.New("it is not for this node's key")
	}
	who, err := IdentityOf(leaf)
	if err != nil {
		return err
	}
	shown := &tls.Certificate{PrivateKey: k.key, Leaf: leaf}
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		shown.Certificate = append(shown.Certificate, block.Bytes)
	}
	k.node = who.Name
	k.shown.Store(shown)
	return nil
}

// KeyOfPublic names a public key.
func KeyOfPublic(key crypto.PublicKey) (access.Key, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return access.Key{}, fmt.Errorf("encode a public key: %w", err)
	}
	return sha256.Sum256(der), nil
}

// Key names the node's key.
func (k *Keys) Key() access.Key {
	key, err := KeyOfPublic(k.key.Public())
	if err != nil {
		panic(err) // it is one that this package has made or read
	}
	return key
}

func sameKey(a, b crypto.PublicKey) bool {
	one, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && one.Equal(b)
}

// Node is the node's name in the cluster, Cluster the cluster's.
func (k *Keys) Node() string { return k.node }

// Cluster is the cluster's name.
func (k *Keys) Cluster() string { return clusterOf(k.cluster) }

// CA is the cluster's authority.
func (k *Keys) CA() *x509.Certificate { return k.cluster }

// IsKeeper tells whether this node holds the authority's key.
func (k *Keys) IsKeeper() bool { return k.authority != nil }

// Files are where the engine finds the node's certificate, its key, and the authority.
func (k *Keys) Files() (certificate, key, authority string) {
	return filepath.Join(k.folder, nodeFile), filepath.Join(k.folder, nodeKeyFile), filepath.Join(k.folder, authorityFile)
}

// Expires is when the node's certificate ends.
func (k *Keys) Expires() time.Time { return k.shown.Load().Leaf.NotAfter }

// NextRenewal draws when to renew the certificate: after 50 to 80 percent of its life, so that nodes which began
// together do not ask together.
func (k *Keys) NextRenewal() time.Time {
	leaf := k.shown.Load().Leaf
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	return leaf.NotBefore.Add(life/2 + time.Duration(rand.Int64N(int64(life*3/10)+1)))
}

// Renewed shows and keeps a new certificate for the same key, in DER.
func (k *Keys) Renewed(der []byte) error {
	chain := certificatePEM(der, k.cluster.Raw)
	if err := k.show(chain); err != nil {
		return fmt.Errorf("the renewed certificate: %w", err)
	}
	if err := WritePrivate(filepath.Join(k.folder, nodeFile), chain); err != nil {
		return fmt.Errorf("keep the renewed certificate: %w", err)
	}
	return nil
}

// ErrNotKeeper tells that only a node that holds the authority's key can do so.
var ErrNotKeeper = errors.New("this node does not hold the key of the cluster's authority: ask the first node, or one that joined with a token of --keeper")

// SignNode returns a certificate for a node, in DER.
func (k *Keys) SignNode(node string, key crypto.PublicKey) ([]byte, error) {
	if k.authority == nil {
		return nil, ErrNotKeeper
	}
	return k.authority.Sign(key, Identity{Kind: access.OfNode, Name: node}, NodeLife)
}

// SignUser returns a certificate for a user, in DER.
func (k *Keys) SignUser(name string, role access.Role, key crypto.PublicKey, life time.Duration) ([]byte, error) {
	if k.authority == nil {
		return nil, ErrNotKeeper
	}
	return k.authority.Sign(key, Identity{Kind: access.OfUser, Name: name, Role: role}, life)
}

// AuthorityKey returns the authority's key, in PKCS #8, for a node that is to hold it as well.
func (k *Keys) AuthorityKey() ([]byte, error) {
	if k.authority == nil {
		return nil, ErrNotKeeper
	}
	return x509.MarshalPKCS8PrivateKey(k.authority.key)
}

// Instance makes credentials for an instance of this node: only this node's API takes them.
func (k *Keys) Instance(path, allocation, address string) (*Credentials, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	der, err := k.instances.Sign(key.Public(), Identity{Kind: access.OfInstance, Name: path, Allocation: allocation}, 0)
	if err != nil {
		return nil, err
	}
	return newCredentials([]string{address}, k.cluster.Raw, der, key)
}

// Remember keeps where other nodes answer, for a time when nothing else tells; it fails only for want of a disk.
func (k *Keys) Remember(addresses []string) error {
	if slices.Equal(addresses, k.Known()) {
		return nil
	}
	return WritePrivate(filepath.Join(k.folder, addressesFile), []byte(strings.Join(addresses, "\n")))
}

// Known returns what was remembered last.
func (k *Keys) Known() []string {
	text, err := os.ReadFile(filepath.Join(k.folder, addressesFile))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}
