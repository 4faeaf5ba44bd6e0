package trust

import (
	"crypto"
	"crypto/hmac"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"starling/terms/access"
)

// authorities are those of a cluster, the newest first.
type authorities struct {
	// counting are those whose certificates count. Behind them former are kept, by which who was away for long finds out
	// who came after.
	counting, former []*x509.Certificate
	// keys are those that this node holds: of authorities, or of one that is about to become one.
	keys []crypto.Signer
}

// all are the authorities that a node shows with its certificate.
func (a *authorities) all() []*x509.Certificate { return slices.Concat(a.counting, a.former) }

func raw(all []*x509.Certificate) (ders [][]byte) {
	for _, c := range all {
		ders = append(ders, c.Raw)
	}
	return ders
}

// held returns the authorities that count and whose keys this node holds, the newest first.
func (a *authorities) held() (all []*Authority) {
	for _, c := range a.counting {
		for _, key := range a.keys {
			if sameKey(key.Public(), c.PublicKey) {
				all = append(all, &Authority{Certificate: c, key: key, cluster: clusterOf(c)})
			}
		}
	}
	return all
}

// signerOf returns which of some authorities has signed a certificate, nil if none has.
func signerOf(c *x509.Certificate, by []*x509.Certificate) *x509.Certificate {
	for _, authority := range by {
		if c.CheckSignatureFrom(authority) == nil {
			return authority
		}
	}
	return nil
}

// chainMax bounds how many authorities somebody may show.
const chainMax = 32

// followed returns the authorities that follow from those that are known: each certificate of an authority is signed by
// one from before it, so that who knows an old one can tell a newer one.
func followed(known, shown []*x509.Certificate) []*x509.Certificate {
	for _, c := range slices.Backward(shown[:min(len(shown), chainMax)]) {
		if clusterOf(c) != "" && !slices.ContainsFunc(known, c.Equal) && signerOf(c, known) != nil {
			known = append(slices.Clip(known), c)
		}
	}
	return known
}

// Listed returns the authority as the value of the cluster lists it.
func Listed(ca *x509.Certificate) access.Authority {
	return access.Authority{Certificate: base64.StdEncoding.EncodeToString(ca.Raw)}
}

// CertificateOf returns the certificate of an authority that the value lists.
func CertificateOf(a access.Authority) (*x509.Certificate, error) {
	der, err := base64.StdEncoding.DecodeString(a.Certificate)
	if err != nil {
		return nil, fmt.Errorf("the certificate of authority %s: %w", a.ID(), err)
	}
	return x509.ParseCertificate(der)
}

// Listed lists the authorities as the value does, the oldest first.
func (k *Keys) Listed() (all []access.Authority) {
	known := k.known.Load()
	for _, c := range slices.Backward(known.former) {
		one := Listed(c)
		one.Former = true
		all = append(all, one)
	}
	for _, c := range slices.Backward(known.counting) {
		all = append(all, Listed(c))
	}
	return all
}

// AreOthers tells whether authorities are those of another cluster.
func (k *Keys) AreOthers(list []access.Authority) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(a access.Authority) bool {
		c, err := CertificateOf(a)
		return err == nil && clusterOf(c) == k.Cluster()
	})
}

// Adopt makes the authorities count that the cluster lists, the oldest first, and keeps them. An empty list changes
// nothing: the first authority was never replaced.
func (k *Keys) Adopt(list []access.Authority) error {
	if len(list) == 0 || slices.Equal(list, k.Listed()) {
		return nil
	}
	k.changing.Lock()
	defer k.changing.Unlock()
	next := &authorities{}
	for _, one := range slices.Backward(list) {
		c, err := CertificateOf(one)
		switch {
		case err != nil:
			return err
		case clusterOf(c) != k.Cluster():
			return fmt.Errorf("authority %s is not of this cluster", one.ID())
		case one.Former:
			next.former = append(next.former, c)
		default:
			next.counting = append(next.counting, c)
		}
	}
	for _, key := range k.known.Load().keys {
		isFormer := func(c *x509.Certificate) bool { return sameKey(key.Public(), c.PublicKey) }
		if !slices.ContainsFunc(next.former, isFormer) {
			next.keys = append(next.keys, key)
		}
	}
	return k.keep(next, k.shown.Load().Leaf.Raw)
}

// keep makes the authorities, and the certificate that this node shows, the present ones, on the disk as well.
func (k *Keys) keep(next *authorities, leaf []byte) error {
	var counting, keys []byte
	for _, c := range next.counting {
		counting = append(counting, certificatePEM(c.Raw)...)
	}
	for _, key := range next.keys {
		text, err := keyPEM(key)
		if err != nil {
			return err
		}
		keys = append(keys, text...)
	}
	chain := certificatePEM(leaf)
	for _, c := range next.all() {
		chain = append(chain, certificatePEM(c.Raw)...)
	}
	type file struct {
		name string
		text []byte
	}
	files := []file{{nodeFile, chain}, {authorityFile, counting}}
	if len(keys) > 0 {
		files = slices.Insert(files, 0, file{authorityKeyFile, keys})
	}
	for _, f := range files {
		if err := WritePrivate(filepath.Join(k.folder, f.name), f.text); err != nil {
			return fmt.Errorf("keep %s: %w", f.name, err)
		}
	}
	if err := k.show(chain, next.all()); err != nil {
		return err
	}
	k.known.Store(next)
	return nil
}

// IsCurrent tells whether the newest authority has signed the certificate that this node shows.
func (k *Keys) IsCurrent() bool { return k.shown.Load().Leaf.CheckSignatureFrom(k.CA()) == nil }

// Lacks tells whether this node holds the key of an authority, but not that of the newest.
func (k *Keys) Lacks() bool {
	held := k.known.Load().held()
	return len(held) > 0 && !held[0].Certificate.Equal(k.CA())
}

// Successor makes the authority that is to come after the newest whose key is here, which signs for it, and keeps its
// key. It counts when the cluster lists it.
func (k *Keys) Successor() (access.Authority, error) {
	k.changing.Lock()
	defer k.changing.Unlock()
	known := k.known.Load()
	held := known.held()
	if len(held) == 0 {
		return access.Authority{}, ErrNotKeeper
	}
	key, err := newKey()
	if err != nil {
		return access.Authority{}, err
	}
	fresh := &Authority{key: key}
	if err := fresh.certify(held[0], authorityPrefix+k.Cluster(), time.Now().Add(AuthorityLife)); err != nil {
		return access.Authority{}, err
	}
	next := *known
	next.keys = append([]crypto.Signer{key}, known.keys...)
	return Listed(fresh.Certificate), k.keep(&next, k.shown.Load().Leaf.Raw)
}

// proofOfKey is what a holder of an authority's key proves that with, on a channel.
func (a *Authority) proofOfKey(channel []byte) ([]byte, error) {
	key, err := a.proofKey()
	return mac(key, "another holder", string(channel)), err
}

// HolderProof proves on a channel that this node holds the key of an authority, to get that of the newest.
func (k *Keys) HolderProof(channel []byte) ([]byte, error) {
	held := k.known.Load().held()
	if len(held) == 0 {
		return nil, ErrNotKeeper
	}
	return held[0].proofOfKey(channel)
}

// KeyFor returns the key of the newest authority, in PKCS #8, for who proves on a channel to hold that of another one
// that counts.
func (k *Keys) KeyFor(proof, channel []byte) ([]byte, error) {
	held := k.known.Load().held()
	if len(held) == 0 || k.Lacks() {
		return nil, ErrNotKeeper
	}
	for _, one := range held {
		if want, err := one.proofOfKey(channel); err == nil && hmac.Equal(want, proof) {
			return x509.MarshalPKCS8PrivateKey(held[0].key)
		}
	}
	return nil, errors.New("only who holds the key of an authority that counts gets that of the newest")
}

// Hold keeps the key of the newest authority, in PKCS #8.
func (k *Keys) Hold(der []byte) error {
	key, err := keyOf(der)
	if err != nil {
		return fmt.Errorf("the authority's key: %w", err)
	}
	k.changing.Lock()
	defer k.changing.Unlock()
	next := *k.known.Load()
	if !sameKey(key.Public(), next.counting[0].PublicKey) {
		return errors.New("the key is not that of the newest authority")
	}
	next.keys = append([]crypto.Signer{key}, next.keys...)
	return k.keep(&next, k.shown.Load().Leaf.Raw)
}

// parseCertificates reads all certificates of a text in PEM.
func parseCertificates(text []byte) (all []*x509.Certificate, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errNoCertificate
	}
	return all, nil
}
