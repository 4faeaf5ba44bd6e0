package trust

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"starling/terms/access"
)

// ServerTLS is how this node answers. It takes connections without a certificate, so that it can say what is missing,
// and refuses all certificates that are not of its cluster; IdentityOn tells whose came.
func (k *Keys) ServerTLS() *tls.Config {
	known := x509.NewCertPool() // their names are told to clients; those of all authorities of a cluster are the same
	known.AddCert(k.CA())
	known.AddCert(k.instances.Certificate)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequestClientCert, ClientCAs: known,
		SessionTicketsDisabled: true, // a ticket would outlive what the certificate may do
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.shown.Load(), nil },
		VerifyConnection: func(connection tls.ConnectionState) error {
			if len(connection.PeerCertificates) == 0 {
				return nil
			}
			return k.Verify(connection.PeerCertificates)
		},
	}
}

// Verify is an error if no authority that counts has signed the first certificate of a chain, or one that follows from
// those by the rest of the chain: whoever shows it may have heard of that earlier.
func (k *Keys) Verify(chain []*x509.Certificate) error {
	by := followed(k.known.Load().counting, chain[1:])
	if who, err := IdentityOf(chain[0]); err == nil && who.Kind == access.OfInstance {
		by = []*x509.Certificate{k.instances.Certificate}
	}
	return verifyLeaf(chain[0], by, x509.ExtKeyUsageClientAuth)
}

// IdentityOn returns who is at the other end of a connection to this node; of anyone if no certificate was shown.
func (k *Keys) IdentityOn(connection *tls.ConnectionState) (Identity, error) {
	if len(connection.PeerCertificates) == 0 {
		return Identity{}, nil
	}
	leaf := connection.PeerCertificates[0]
	who, err := IdentityOf(leaf)
	switch {
	case err != nil:
		return Identity{}, err
	case who.Cluster != k.Cluster():
		return Identity{}, fmt.Errorf("%s is of another cluster", who.URI())
	case time.Now().After(leaf.NotAfter): // the connection is older
		return Identity{}, fmt.Errorf("the certificate of %s has expired", who)
	}
	return who, nil
}

// Shows is what one end of a connection can show, if anything, and whom it knows.
type Shows struct {
	CA          *x509.Certificate
	Certificate *tls.Certificate
	// Renew returns what to show in its place to a peer whose newest authority has not signed it, nil for nothing else.
	Renew func() *tls.Certificate
}

// Shows is what a node shows to others as their client.
func (k *Keys) Shows() (all []Shows) {
	for _, ca := range k.known.Load().counting {
		all = append(all, Shows{CA: ca, Certificate: k.shown.Load()})
	}
	return all
}

// ShowsOf is the same for credentials.
func ShowsOf(all []*Credentials) []Shows {
	var shows []Shows
	for _, c := range all {
		for _, ca := range c.CAs {
			shows = append(shows, Shows{CA: ca, Certificate: &c.shown})
		}
	}
	return shows
}

// ErrStranger tells that a peer is of a cluster of which nothing is known here.
var ErrStranger = errors.New("there are no credentials for it here: ask an admin of that cluster for `starling user add NAME --role ROLE`, and keep what it prints with `starling login`")

// ClientTLS is how nodes are asked: it knows them by their authority, not by their addresses, and shows what there is
// for that authority's cluster. It asks anew for each connection what there is.
func ClientTLS(shows func() []Shows) *tls.Config {
	newest := atomic.Pointer[x509.Certificate]{} // that of the peer which has answered last
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // names of hosts mean nothing; VerifyConnection does the rest
		VerifyConnection: func(connection tls.ConnectionState) error {
			if len(connection.PeerCertificates) > 1 {
				newest.Store(connection.PeerCertificates[1])
			}
			return verifyNode(connection.PeerCertificates, shows())
		},
		GetClientCertificate: func(wanted *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			for _, one := range shows() {
				if one.Certificate == nil {
					continue
				}
				issuer := one.Certificate.Leaf.RawIssuer
				if !slices.ContainsFunc(wanted.AcceptableCAs, func(name []byte) bool { return string(name) == string(issuer) }) {
					continue
				}
				if end := one.Certificate.Leaf.NotAfter; time.Now().After(end) {
					return nil, fmt.Errorf("the credentials for cluster %s expired at %s: sign in again with `starling login --oidc`, or keep others from an admin with `starling login`",
						clusterOf(one.CA), end.Format(time.RFC3339))
				}
				return one.renewed(newest.Load()), nil
			}
			return &tls.Certificate{}, nil
		},
	}
}

// renewed returns the certificate to show to a peer with this newest authority.
func (s *Shows) renewed(newest *x509.Certificate) *tls.Certificate {
	if s.Renew == nil || newest == nil || clusterOf(newest) != clusterOf(s.CA) ||
		s.Certificate.Leaf.CheckSignatureFrom(newest) == nil {
		return s.Certificate
	}
	if fresh := s.Renew(); fresh != nil {
		return fresh
	}
	return s.Certificate
}

// verifyNode wants a chain to be that of a node in one of the known clusters.
func verifyNode(chain []*x509.Certificate, known []Shows) error {
	if len(chain) == 0 {
		return errors.New("the peer shows no certificate")
	}
	who, err := IdentityOf(chain[0])
	if err != nil || who.Kind != access.OfNode {
		return errors.New("what answers is not a node of a Starling cluster")
	}
	var by []*x509.Certificate
	for _, one := range known {
		if clusterOf(one.CA) == who.Cluster {
			by = append(by, one.CA)
		}
	}
	if len(by) == 0 {
		return fmt.Errorf("the peer is %s of cluster %s: %w", who, who.Cluster, ErrStranger)
	}
	if err := verifyLeaf(chain[0], followed(by, chain[1:]), x509.ExtKeyUsageServerAuth); err != nil {
		return fmt.Errorf("the peer claims to be %s of cluster %s, and no authority that is known here has signed that, or "+
			"its certificate has expired: %w", who, who.Cluster, err)
	}
	return nil
}

// verifyLeaf is an error if none of the authorities has signed a certificate, or it has expired. When it begins does
// not matter: that is by the clock of who signed it, which may have been ahead.
func verifyLeaf(leaf *x509.Certificate, by []*x509.Certificate, usage x509.ExtKeyUsage) error {
	known, at := x509.NewCertPool(), time.Now()
	for _, ca := range by {
		known.AddCert(ca)
	}
	for _, one := range []*x509.Certificate{leaf, signerOf(leaf, by)} {
		if one != nil && at.Before(one.NotBefore) {
			at = one.NotBefore
		}
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: known, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}

// PinnedTLS is how those ask who have nothing to show, and know an authority of the cluster by its hash alone.
func PinnedTLS(hash string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // VerifyConnection pins the authority
		VerifyConnection: func(connection tls.ConnectionState) error {
			for _, ca := range connection.PeerCertificates {
				if Hash(ca) == hash {
					return verifyNode(connection.PeerCertificates, []Shows{{CA: ca}})
				}
			}
			return errors.New("the authority of what answers is not the one in the line: this is another cluster, or somebody is in between")
		},
	}
}

// channelLabel separates what is proved when joining from all other uses of a channel.
const channelLabel = "EXPORTER-starling-join"

// Channel names a connection: both ends have it, and nobody in between has it with both.
func Channel(connection *tls.ConnectionState) ([]byte, error) {
	return connection.ExportKeyingMaterial(channelLabel, nil, 32)
}

// Ask connects to a node, without showing anything, and returns which authority has signed its certificate, and which
// is its newest.
func (k *Keys) Ask(ctx context.Context, address string) (signer, newest *x509.Certificate, err error) {
	nothing := func() (all []Shows) {
		for _, one := range k.Shows() {
			all = append(all, Shows{CA: one.CA})
		}
		return all
	}
	dialed, err := (&tls.Dialer{Config: ClientTLS(nothing)}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, nil, err
	}
	defer dialed.Close()
	chain := dialed.(*tls.Conn).ConnectionState().PeerCertificates // it has been shaken by Dial
	if signer = signerOf(chain[0], chain[1:]); signer == nil {
		return nil, nil, errors.New("it does not show who has signed its certificate")
	}
	return signer, chain[1], nil
}
