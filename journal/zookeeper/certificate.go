package zookeeper

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
)

// Files show servers who asks, and whom to trust. All are PEM.
type Files struct {
	CertFile, KeyFile, CAFile string
}

// Load returns how to speak with the servers. The certificate is read again for every connection, so it can be renewed
// in place.
func (f Files) Load() (*tls.Config, error) {
	if slices.Contains([]string{f.CertFile, f.KeyFile, f.CAFile}, "") {
		return nil, errors.New("cert, key and ca belong together: all three or none")
	}
	authority, err := os.ReadFile(f.CAFile)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("ca: %s holds no certificate", f.CAFile)
	}
	load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
		return &pair, err
	}
	if _, err := load(nil); err != nil {
		return nil, fmt.Errorf("cert and key: %w", err)
	}
	return &tls.Config{RootCAs: trusted, GetClientCertificate: load, MinVersion: tls.VersionTLS12}, nil
}
