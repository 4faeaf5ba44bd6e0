package settings

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"starling/journal/etcd"
)

// ClientTLS is how a client shows who it is to the quorum and knows it; nil without certificates. The client's own is
// read again for every connection, so it can be renewed in place.
func (c *Agent) ClientTLS() (*tls.Config, error) {
	files := c.Etcd.Certificates
	if files == (etcd.Certificates{}) {
		return nil, nil
	}
	authority, err := os.ReadFile(files.CAFile)
	if err != nil {
		return nil, fmt.Errorf("etcd.ca: %w", err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("etcd.ca: %s holds no certificate", files.CAFile)
	}
	load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
		return &pair, err
	}
	if _, err := load(nil); err != nil {
		return nil, fmt.Errorf("etcd.cert and etcd.key: %w", err)
	}
	return &tls.Config{RootCAs: trusted, GetClientCertificate: load, MinVersion: tls.VersionTLS12}, nil
}
