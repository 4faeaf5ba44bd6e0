package trust

import (
	"crypto/x509"
	"path/filepath"
	"testing"
)

// FuzzIdentityOf reads certificates that anyone may have made: none that is read lacks what the rest relies on.
func FuzzIdentityOf(f *testing.F) {
	keys, err := Create(filepath.Join(f.TempDir(), Folder), "a")
	if err != nil {
		f.Fatal(err)
	}
	instance, err := keys.Instance("etl/web/server/2", "etl/web.server[2]#7", "127.0.0.1:7460")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(keys.CA().Raw)
	f.Add(keys.Shows()[0].Certificate.Leaf.Raw)
	f.Add(instance.shown.Leaf.Raw)
	f.Fuzz(func(t *testing.T, der []byte) {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return
		}
		if who, err := IdentityOf(c); err == nil && (who.Problem() != "" || who.URI().String() == "" || who.String() == "") {
			t.Fatalf("got %#v", who)
		}
		_, _, _ = keys.Renew(der, der, nobody) // it refuses what is not signed by the cluster
		if _, err := KeyOf(der); err == nil {
			t.Fatal("a certificate is taken for a signing request")
		}
	})
}

// FuzzPin reads lines that tell where a cluster is.
func FuzzPin(f *testing.F) {
	f.Add(PinPrefix + "eyJhZGRyZXNzZXMiOlsiaDoxIl0sImNhIjoiMDAifQ")
	f.Add(PinPrefix + "e30")
	f.Fuzz(func(t *testing.T, line string) {
		pin, err := ParsePin(line)
		if err != nil {
			return
		}
		text, err := pin.Line()
		again, err2 := ParsePin(text)
		if err != nil || err2 != nil || again.CA != pin.CA || len(again.Addresses) != len(pin.Addresses) {
			t.Errorf("got %v, %v", err, err2)
		}
	})
}
