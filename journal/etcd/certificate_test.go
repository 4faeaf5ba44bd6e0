package etcd_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"starling/journal/etcd"
)

// TestCertificates has three members trust each other, a client that shows a certificate, and one that does not.
func TestCertificates(t *testing.T) {
	t.Parallel()
	files, trusted := certificates(t)
	members := cluster(t, "a", "b", "c")
	for i := range members {
		m := &members[i]
		m.Certificates = files
		for _, url := range []*string{&m.ClientURL, &m.PeerURL} {
			*url = strings.Replace(*url, "http:", "https:", 1)
		}
		for name, url := range m.InitialCluster {
			m.InitialCluster[name] = strings.Replace(url, "http:", "https:", 1)
		}
	}
	startAll(t, members)
	j := opened(t, etcd.ClientConfig{Endpoints: endpoints(members), TLS: trusted})
	w := writer{t: t, journal: j}
	w.append(3)
	follow(t, j).expect(3)

	_, others := certificates(t)
	for want, stranger := range map[string]*tls.Config{
		"certificate required":                             {RootCAs: trusted.RootCAs},
		"unknown certificate authority":                    {RootCAs: trusted.RootCAs, Certificates: others.Certificates},
		"certificate signed by unknown authority":          {RootCAs: others.RootCAs, Certificates: trusted.Certificates},
		"certificate is valid for 127.0.0.1, not 10.0.0.1": {RootCAs: trusted.RootCAs, ServerName: "10.0.0.1"},
	} {
		ctx, cancel := timeLimit(300 * time.Millisecond)
		_, err := etcd.Open(ctx, etcd.ClientConfig{Endpoints: endpoints(members), TLS: stranger})
		if cancel(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: a stranger got %v", want, err)
		}
	}
	plain := single(t)
	secure := strings.Replace(plain.ClientURL(), "http:", "https:", 1)
	ctx, cancel := timeLimit(300 * time.Millisecond)
	defer cancel()
	_, err := etcd.Open(ctx, etcd.ClientConfig{Endpoints: []string{secure}, TLS: trusted})
	if want := "first record does not look like a TLS handshake"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a server without TLS: got %v", err)
	}
}

func TestPlainTextStaysHere(t *testing.T) {
	local := "http://127.0.0.1:0"
	for _, c := range []etcd.MemberConfig{
		{ClientURL: "http://0.0.0.0:0", PeerURL: local},
		{ClientURL: "http://10.1.2.3:2379", PeerURL: local},
		{ClientURL: local, PeerURL: "http://[::]:0"},
		{ClientURL: local, PeerURL: "http://example.org:2380"},
		{ClientURL: "https://127.0.0.1:0", PeerURL: local},
		{ClientURL: local, PeerURL: "127.0.0.1"},
	} {
		c.Name, c.DataDir = "m", t.TempDir()
		if _, err := etcd.Start(t.Context(), c); err == nil {
			t.Errorf("%s, %s: a member without certificates has started", c.ClientURL, c.PeerURL)
		}
	}
}

// certificates makes an authority that has signed one certificate, for 127.0.0.1, and returns how to use that.
func certificates(t *testing.T) (etcd.Certificates, *tls.Config) {
	t.Helper()
	dir := t.TempDir()
	files := etcd.Certificates{
		CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem"),
		CAFile: filepath.Join(dir, "ca.pem"),
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "peer"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	authorityKey, leafKey := newKey(t), newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	must(t, err)
	writePEM(t, files.CAFile, "CERTIFICATE", der)
	der, err = x509.CreateCertificate(rand.Reader, leaf, authority, &leafKey.PublicKey, authorityKey)
	must(t, err)
	writePEM(t, files.CertFile, "CERTIFICATE", der)
	der, err = x509.MarshalECPrivateKey(leafKey)
	must(t, err)
	writePEM(t, files.KeyFile, "EC PRIVATE KEY", der)

	pair, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	must(t, err)
	pool := x509.NewCertPool()
	ca, err := os.ReadFile(files.CAFile)
	must(t, err)
	pool.AppendCertsFromPEM(ca)
	return files, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// TestRefused has a certificate count no more, and then again: connections that are open end, and no others begin.
func TestRefused(t *testing.T) {
	t.Parallel()
	files, trusted := certificates(t)
	var refused atomic.Pointer[string] // whose certificates are
	m := cluster(t, "a")[0]
	m.Certificates = files
	m.ClientURL = strings.Replace(m.ClientURL, "http:", "https:", 1)
	m.PeerURL = strings.Replace(m.PeerURL, "http:", "https:", 1)
	m.InitialCluster = nil
	m.Refuse = func(*x509.Certificate) (string, error) {
		if name := refused.Load(); name != nil {
			return *name, errors.New("it was removed")
		}
		return "any", nil
	}
	startAll(t, []etcd.MemberConfig{m})
	config := etcd.ClientConfig{Endpoints: []string{m.ClientURL}, TLS: trusted}
	client := opened(t, config)
	member, err := dial(m.PeerURL, trusted)
	must(t, err)

	removed, own := "removed", m.Name
	refused.Store(&removed)
	ends(t, member)
	answers(t, client, false)
	if _, err := dial(m.PeerURL, trusted); err == nil {
		t.Error("a stranger was let in where members meet")
	}
	refused.Store(&own)
	if _, err := dial(m.PeerURL, trusted); err != nil {
		t.Errorf("a member that the quorum has yet was refused: %v", err)
	}
	answers(t, client, false)
	refused.Store(nil)
	answers(t, client, true)
}

// dial opens a connection to where members meet. A server refuses after the client has done its part: by what it sends.
func dial(url string, config *tls.Config) (*tls.Conn, error) {
	connection, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), config)
	if err != nil {
		return nil, err
	}
	if err := connection.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		return nil, err
	}
	if _, err := connection.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, err
	}
	return connection, nil
}

// ends waits until the other end closes a connection.
func ends(t *testing.T, connection *tls.Conn) {
	t.Helper()
	must(t, connection.SetReadDeadline(time.Now().Add(patience)))
	if _, err := connection.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection goes on: %v", err)
	}
}

// answers waits until a client is answered, or is not.
func answers(t *testing.T, client *etcd.Journal, want bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx := limited(t); ; <-tick.C {
		short, cancel := context.WithTimeout(ctx, time.Second)
		_, err := client.Client().Get(short, "key")
		cancel()
		if (err == nil) == want {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("a client is answered: %v, want %t", err, want)
		}
	}
}
