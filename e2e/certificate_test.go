package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// certificates writes an authority, ca.pem, and for each name a certificate and key that it signed for this machine:
// certificates a b.
func certificates(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: certificates NAME...")
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	sign := func(template *x509.Certificate, key *ecdsa.PrivateKey, name string) {
		der, err := x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, signer)
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	}
	sign(authority, signer, "ca")
	for i, name := range args {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		ts.Check(err)
		sign(&x509.Certificate{
			SerialNumber: big.NewInt(int64(i) + 2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}, key, name)
		der, err := x509.MarshalECPrivateKey(key)
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
			0o600))
	}
}
