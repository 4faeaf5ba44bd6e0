package trust

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The kinds of PEM blocks.
const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

func certificatePEM(chain ...[]byte) []byte {
	var text []byte
	for _, der := range chain {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der})...)
	}
	return text
}

var errNoCertificate = errors.New("there is no certificate in PEM")

// parseCertificate reads the first certificate of a text in PEM.
func parseCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != certificateBlock {
		return nil, errNoCertificate
	}
	return x509.ParseCertificate(block.Bytes)
}

func keyPEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

func parseKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != keyBlock {
		return nil, errors.New("there is no key in PEM")
	}
	return keyOf(block.Bytes)
}

// parseKeys reads all keys of a text in PEM; it may have none.
func parseKeys(text []byte) (all []crypto.Signer, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		key, err := keyOf(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, key)
	}
	return all, nil
}

func keyOf(der []byte) (crypto.Signer, error) {
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of type %T cannot sign", key)
	}
	return signer, nil
}

// ErrOpenToOthers tells that others than the owner can read what is secret.
var ErrOpenToOthers = errors.New("others than its owner can read it")

// ReadPrivate reads a file that only its owner may read.
func ReadPrivate(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: %w: its mode is %#o\nhint: chmod 600 %s", path, ErrOpenToOthers, info.Mode().Perm(), path)
	}
	return os.ReadFile(path)
}

// WritePrivate replaces a file by one that only its owner may read: after a crash there is the old one or the new
// one.
func WritePrivate(path string, text []byte) error {
	fresh, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // its mode is 0600
	if err != nil {
		return err
	}
	_, err = fresh.Write(text)
	if err == nil {
		err = fresh.Sync()
	}
	err = errors.Join(err, fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh.Name()))
	}
	return nil
}
