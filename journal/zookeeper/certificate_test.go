package zookeeper_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"starling/journal/journaltest/engines"
	"starling/journal/zookeeper"
	"starling/journal/zookeeper/ensemble"
)

// TestTLS has a server that takes clients with a certificate of its authority, and no others.
func TestTLS(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server of its own")
	}
	ensemble.Need(t)
	t.Parallel()
	e, err := ensemble.New(t.TempDir(), engines.At("127.0.0.1", 1)...)
	must(t, err)
	t.Cleanup(e.Kill)
	files, both := certificates(t)
	addresses, err := e.Secure(both, files.CAFile)
	must(t, err)
	must(t, e.Start())

	config := place(e)
	config.Servers = addresses
	config.TLS, err = files.Load()
	must(t, err)
	j := opened(t, config)
	w := writer{t: t, journal: j}
	w.append(3)
	follow(t, j).expect(3)
	p, err := j.Pulse(limited(t), "p", pulseTTL, false)
	must(t, err)
	must(t, p.Confirm(limited(t)))

	strange, _ := certificates(t)
	strange.CAFile = files.CAFile
	stranger := config
	stranger.TLS, err = strange.Load()
	must(t, err)
	for name, refused := range map[string]zookeeper.Config{
		"of another authority": stranger, "in plain text": {Servers: addresses, Chroot: config.Chroot},
	} {
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := zookeeper.Open(short, refused); err == nil {
			t.Errorf("a client %s was let in", name)
		}
		cancel()
	}
}

func TestFilesRefused(t *testing.T) {
	files, _ := certificates(t)
	for _, wrong := range []zookeeper.Files{
		{}, {CertFile: files.CertFile, KeyFile: files.KeyFile}, {files.CertFile, files.KeyFile, files.KeyFile},
		{files.CertFile, files.CertFile, files.CAFile}, {files.CertFile, files.KeyFile, "none"},
	} {
		if _, err := wrong.Load(); err == nil {
			t.Errorf("%+v were taken", wrong)
		}
	}
}

// certificates writes an authority, and a certificate that it has signed for this machine; both is a file with that and
// its key.
func certificates(t *testing.T) (files zookeeper.Files, both string) {
	t.Helper()
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	write := func(path, kind string, der []byte) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		must(t, err)
		defer f.Close()
		must(t, pem.Encode(f, &pem.Block{Type: kind, Bytes: der}))
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &signer.PublicKey, signer)
	must(t, err)
	write(at("ca.pem"), "CERTIFICATE", der)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err = x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, authority, &key.PublicKey, signer)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	write(at("node.key"), "PRIVATE KEY", private)
	write(at("both.pem"), "PRIVATE KEY", private)
	write(at("node.pem"), "CERTIFICATE", der)
	write(at("both.pem"), "CERTIFICATE", der)
	return zookeeper.Files{CertFile: at("node.pem"), KeyFile: at("node.key"), CAFile: at("ca.pem")}, at("both.pem")
}
