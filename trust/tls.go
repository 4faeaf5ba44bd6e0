package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"starling/terms/access"
)

// ServerTLS is how this node answers. It takes connections without a certificate, so that it can say what is missing,
// and refuses all certificates that are not of its cluster; IdentityOn tells whose came.
func (k *Keys) ServerTLS() *tls.Config {
	known := x509.NewCertPool()
	known.AddCert(k.cluster)
	known.AddCert(k.instances.Certificate)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: known,
		SessionTicketsDisabled: true, // a ticket would outlive what the certificate may do
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.shown.Load(), nil },
	}
}

// IdentityOn returns who is at the other end of a connection to this node; of anyone if no certificate was shown.
func (k *Keys) IdentityOn(connection *tls.ConnectionState) (Identity, error) {
	if len(connection.VerifiedChains) == 0 {
		return Identity{}, nil
	}
	chain := connection.VerifiedChains[0]
	leaf, root := chain[0], chain[len(chain)-1]
	who, err := IdentityOf(leaf)
	isInstances := root.Equal(k.instances.Certificate)
	switch {
	case err != nil:
		return Identity{}, err
	case who.Cluster != k.Cluster() || isInstances != (who.Kind == access.OfInstance):
		return Identity{}, fmt.Errorf("%s has signed for %s, and may not", root.Subject.CommonName, who.URI())
	case time.Now().After(leaf.NotAfter): // the connection is older
		return Identity{}, fmt.Errorf("the certificate of %s has expired", who)
	}
	return who, nil
}

// Shows is what one end of a connection can show, if anything, and whom it knows.
type Shows struct {
	CA          *x509.Certificate
	Certificate *tls.Certificate
}

// Shows is what a node shows to others as their client.
func (k *Keys) Shows() []Shows { return []Shows{{k.cluster, k.shown.Load()}} }

// ShowsOf is the same for credentials.
func ShowsOf(all []*Credentials) []Shows {
	var shows []Shows
	for _, c := range all {
		shows = append(shows, Shows{c.CA, &c.shown})
	}
	return shows
}

// ErrStranger tells that a peer is of a cluster of which nothing is known here.
var ErrStranger = errors.New("there are no credentials for it here: ask an admin of that cluster for `starling user add NAME --role ROLE`, and keep what it prints with `starling login`")

// ClientTLS is how nodes are asked: it knows them by their authority, not by their addresses, and shows what there is
// for that authority's cluster. It asks anew for each connection what there is.
func ClientTLS(shows func() []Shows) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // names of hosts mean nothing; VerifyConnection does the rest
		VerifyConnection: func(connection tls.ConnectionState) error {
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
					return nil, fmt.Errorf("the credentials for cluster %s expired at %s: ask an admin for others, and keep them with `starling login`",
						clusterOf(one.CA), end.Format(time.RFC3339))
				}
				return one.Certificate, nil
			}
			return &tls.Certificate{}, nil
		},
	}
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
	for _, one := range known {
		if verifyChain(chain[0], one.CA) == nil && clusterOf(one.CA) == who.Cluster {
			return nil
		}
		if clusterOf(one.CA) == who.Cluster {
			return fmt.Errorf("the peer claims to be %s of cluster %s, and its authority has not signed that, or its certificate has expired: %w",
				who, who.Cluster, verifyChain(chain[0], one.CA))
		}
	}
	return fmt.Errorf("the peer is %s of cluster %s: %w", who, who.Cluster, ErrStranger)
}

func verifyChain(leaf, ca *x509.Certificate) error {
	known := x509.NewCertPool()
	known.AddCert(ca)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: known, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err
}

// JoinTLS is how a joiner asks: it knows the authority by its hash alone, and has nothing to show.
func JoinTLS(t *Token) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // VerifyConnection pins the authority
		VerifyConnection: func(connection tls.ConnectionState) error {
			for _, ca := range connection.PeerCertificates {
				if Hash(ca) == t.CA {
					return verifyNode(connection.PeerCertificates, []Shows{{CA: ca}})
				}
			}
			return errors.New("the authority of what answers is not the token's: this is another cluster, or somebody is in between")
		},
	}
}

// channelLabel separates what is proved when joining from all other uses of a channel.
const channelLabel = "EXPORTER-starling-join"

// Channel names a connection: both ends have it, and nobody in between has it with both.
func Channel(connection *tls.ConnectionState) ([]byte, error) {
	return connection.ExportKeyingMaterial(channelLabel, nil, 32)
}
