package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"starling/journal/etcd"
)

// clientTLS is how a client shows who it is to the quorum and knows it; nil without certificates. The client's own is
// read again for every connection, so it can be renewed in place.
func clientTLS(files etcd.Certificates) (*tls.Config, error) {
	if files == (etcd.Certificates{}) {
		return nil, nil
	}
	authority, err := os.ReadFile(files.CAFile)
	if err != nil {
		return nil, fail(exitUsage, "etcd.ca: %w", err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(authority) {
		return nil, fail(exitUsage, "etcd.ca: %s holds no certificate", files.CAFile)
	}
	load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
		return &pair, err
	}
	if _, err := load(nil); err != nil {
		return nil, fail(exitUsage, "etcd.cert and etcd.key: %w", err)
	}
	return &tls.Config{RootCAs: trusted, GetClientCertificate: load, MinVersion: tls.VersionTLS12}, nil
}
