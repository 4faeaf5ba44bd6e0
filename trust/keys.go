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
	"sync"
	"sync/atomic"
	"time"

	"starling/terms/access"
)

// Folder is that of a node's keys, within its data directory.
const Folder = "trust"

// The files of a node, in that folder. The engine reads them too, again for every connection.
const (
	authorityFile    = "ca.pem" // all that count, the newest first; the former ones are behind the node's certificate
	authorityKeyFile = "ca.key"
	nodeFile         = "node.pem"
	nodeKeyFile      = "node.key"
	addressesFile    = "addresses"
)

// Keys are what a node has to show who it is and to know others.
type Keys struct {
	folder  string
	node    string
	cluster string
	// instances signs for the instances of this node, with the node's own key.
	instances *Authority
	key       crypto.Signer
	// known and shown are replaced while changing is locked.
	known    atomic.Pointer[authorities]
	shown    atomic.Pointer[tls.Certificate]
	changing sync.Mutex
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
	return Store(folder, request.Admission(der, k.Signer().Raw, k.Listed()))
}

// Admission is what a node gets when it becomes one of a cluster.
type Admission struct {
	// Certificate and Authority, which has signed it, are in DER.
	Certificate, Authority []byte
	// listed are the cluster's authorities.
	listed    []access.Authority
	key       crypto.Signer
	authority *Authority
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
	k, err := Load(folder)
	if err != nil {
		return nil, err
	}
	return k, k.Adopt(a.listed)
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
	known := &authorities{}
	if known.counting, err = parseCertificates(texts[authorityFile]); err != nil {
		return nil, wrong(authorityFile, err)
	}
	k.cluster = clusterOf(known.counting[0])
	if k.key, err = parseKey(texts[nodeKeyFile]); err != nil {
		return nil, wrong(nodeKeyFile, err)
	}
	if known.keys, err = parseKeys(texts[authorityKeyFile]); err != nil {
		return nil, wrong(authorityKeyFile, err)
	}
	chain, err := parseCertificates(texts[nodeFile])
	if err != nil {
		return nil, wrong(nodeFile, err)
	}
	for _, c := range chain[1:] {
		if !slices.ContainsFunc(known.counting, c.Equal) {
			known.former = append(known.former, c)
		}
	}
	k.known.Store(known)
	if err := k.show(texts[nodeFile], known.all()); err != nil {
		return nil, wrong(nodeFile, err)
	}
	k.instances = &Authority{key: k.key, cluster: k.cluster, instances: true}
	return k, k.instances.certify(k.instances, "instances of "+k.node+" in "+k.cluster, forever)
}

// show lets others see this certificate from now on, which one of the authorities has signed.
func (k *Keys) show(chain []byte, by []*x509.Certificate) error {
	leaf, err := parseCertificate(chain)
	if err != nil {
		return err
	}
	if signerOf(leaf, by) == nil {
		return errors.New("no authority of this cluster has signed it")
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
func (k *Keys) Cluster() string { return k.cluster }

// CA is the newest authority of the cluster.
func (k *Keys) CA() *x509.Certificate { return k.known.Load().counting[0] }

// Signer is the authority by which this node signs for others, nil if it holds no key of one.
func (k *Keys) Signer() *x509.Certificate {
	if signer := k.signer(); signer != nil {
		return signer.Certificate
	}
	return nil
}

// signer is the newest authority whose key this node holds, nil if there is none.
func (k *Keys) signer() *Authority {
	if held := k.known.Load().held(); len(held) > 0 {
		return held[0]
	}
	return nil
}

// IsKeeper tells whether this node holds an authority's key.
func (k *Keys) IsKeeper() bool { return k.signer() != nil }

// Files are where the engine finds the node's certificate, its key, and the authorities that count.
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
	k.changing.Lock()
	defer k.changing.Unlock()
	if err := k.keep(k.known.Load(), der); err != nil {
		return fmt.Errorf("the renewed certificate: %w", err)
	}
	return nil
}

// ErrNotKeeper tells that only a node that holds the authority's key can do so.
var ErrNotKeeper = errors.New("this node does not hold the key of the cluster's authority: ask the first node, or one that joined with a token of --keeper")

// SignNode returns a certificate for a node, in DER.
func (k *Keys) SignNode(node string, key crypto.PublicKey) ([]byte, error) {
	return k.sign(key, Identity{Kind: access.OfNode, Name: node}, NodeLife)
}

// SignUser returns a certificate for a user, in DER.
func (k *Keys) SignUser(name string, role access.Role, key crypto.PublicKey, life time.Duration) ([]byte, error) {
	return k.sign(key, Identity{Kind: access.OfUser, Name: name, Role: role}, life)
}

func (k *Keys) sign(key crypto.PublicKey, who Identity, life time.Duration) ([]byte, error) {
	signer := k.signer()
	if signer == nil {
		return nil, ErrNotKeeper
	}
	return signer.Sign(key, who, life)
}

// AuthorityKey returns the key of the authority that signs here, in PKCS #8, for a node that is to hold it as well.
func (k *Keys) AuthorityKey() ([]byte, error) {
	signer := k.signer()
	if signer == nil {
		return nil, ErrNotKeeper
	}
	return x509.MarshalPKCS8PrivateKey(signer.key)
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
	return newCredentials([]string{address}, raw(k.known.Load().counting), der, key)
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
