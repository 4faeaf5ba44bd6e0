package trust

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"
)

// CredentialsPrefix begins every line of credentials.
const CredentialsPrefix = "starling-credentials-1:"

// lineBytesMax bounds a line of credentials or a token.
const lineBytesMax = 16 << 10

// Credentials let a user or an instance into one cluster. They are one line of text.
type Credentials struct {
	// Addresses are where the cluster's nodes answer.
	Addresses []string
	// CAs are the cluster's authorities as far as they are known, the newest first.
	CAs   []*x509.Certificate
	shown tls.Certificate
	who   Identity
	// file is where they are kept, "" for nowhere.
	file string
}

// credentialsJSON is what stands in the line behind the prefix, in base64.
type credentialsJSON struct {
	Addresses   []string `json:"addresses"`
	CA          []byte   `json:"ca"`
	Older       [][]byte `json:"older,omitempty"`
	Certificate []byte   `json:"certificate"`
	Key         []byte   `json:"key"`
}

func newCredentials(addresses []string, authorities [][]byte, certificate []byte,
	key crypto.Signer) (*Credentials, error) {
	c := &Credentials{Addresses: addresses}
	for _, der := range authorities {
		ca, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("the authority's certificate: %w", err)
		}
		c.CAs = append(c.CAs, ca)
	}
	leaf, err := x509.ParseCertificate(certificate)
	if err != nil {
		return nil, fmt.Errorf("the certificate: %w", err)
	}
	if c.who, err = IdentityOf(leaf); err != nil {
		return nil, err
	}
	if clusterOf(c.CAs[0]) != c.who.Cluster || !sameKey(leaf.PublicKey, key.Public()) {
		return nil, errors.New("the authority, the certificate and the key do not belong together")
	}
	c.shown = tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key, Leaf: leaf}
	return c, nil
}

// Identity says whose they are.
func (c *Credentials) Identity() Identity { return c.who }

// EndSoon returns when the credentials expire if less than a tenth of their life is left, and the zero time if not.
func (c *Credentials) EndSoon(now time.Time) time.Time {
	leaf := c.shown.Leaf
	if leaf.NotAfter.Sub(now) < leaf.NotAfter.Sub(leaf.NotBefore)/10 {
		return leaf.NotAfter
	}
	return time.Time{}
}

// Line returns them as text. It holds the key: it is for no log.
func (c *Credentials) Line() (string, error) {
	key, err := x509.MarshalPKCS8PrivateKey(c.shown.PrivateKey)
	if err != nil {
		return "", fmt.Errorf("encode a key: %w", err)
	}
	return encodeLine(CredentialsPrefix, credentialsJSON{c.Addresses, c.CAs[0].Raw, raw(c.CAs[1:]),
		c.shown.Certificate[0], key})
}

// ParseCredentials reads a line of credentials.
func ParseCredentials(line string) (*Credentials, error) {
	var told credentialsJSON
	if err := decodeLine(CredentialsPrefix, line, &told); err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	key, err := keyOf(told.Key)
	if err != nil {
		return nil, fmt.Errorf("credentials: the key: %w", err)
	}
	c, err := newCredentials(told.Addresses, append([][]byte{told.CA}, told.Older...), told.Certificate, key)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	return c, nil
}

func encodeLine(prefix string, told any) (string, error) {
	text, err := json.Marshal(told)
	if err != nil {
		return "", err
	}
	return prefix + base64.RawURLEncoding.EncodeToString(text), nil
}

func decodeLine(prefix, line string, told any) error {
	rest, found := strings.CutPrefix(strings.TrimSpace(line), prefix)
	switch {
	case !found:
		return fmt.Errorf("the line must begin with %s", prefix)
	case len(rest) > lineBytesMax:
		return fmt.Errorf("the line must have at most %d bytes", lineBytesMax)
	}
	text, err := base64.RawURLEncoding.DecodeString(rest)
	if err == nil {
		err = json.Unmarshal(text, told)
	}
	if err != nil {
		return errors.New("the line is damaged: copy all of it")
	}
	return nil
}

// DefaultFile is where a user's credentials are: the file of STARLING_CREDENTIALS, or else below the user's folder
// for configurations. Services often have no HOME; the list of users knows it.
func DefaultFile() (string, error) {
	if file := os.Getenv("STARLING_CREDENTIALS"); file != "" {
		return file, nil
	}
	folder := os.Getenv("XDG_CONFIG_HOME")
	if folder == "" {
		home, err := os.UserHomeDir()
		if me, found := user.Current(); err != nil && found == nil {
			home, err = me.HomeDir, nil
		}
		if err != nil {
			return "", fmt.Errorf("find the folder for credentials: %w; set HOME, or STARLING_CREDENTIALS to a file", err)
		}
		folder = filepath.Join(home, ".config")
	}
	return filepath.Join(folder, "starling", "credentials"), nil
}

// ReadFile reads the lines of a file of credentials; one that is missing has none.
func ReadFile(path string) ([]*Credentials, error) {
	text, err := ReadPrivate(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	var all []*Credentials
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		one, err := ParseCredentials(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		one.file = path
		all = append(all, one)
	}
	return all, nil
}

// WritePEM writes the credentials into a folder, as files in PEM that other programs read: the cluster's authorities in
// ca.pem, the certificate in cert.pem, its key in key.pem. Only their owner may read them.
func (c *Credentials) WritePEM(folder string) error {
	key, err := keyPEM(c.shown.PrivateKey.(crypto.Signer))
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	for _, file := range []struct {
		name string
		text []byte
	}{{"ca.pem", certificatePEM(raw(c.CAs)...)}, {"cert.pem", certificatePEM(c.shown.Certificate...)}, {"key.pem", key}} {
		if err == nil {
			err = WritePrivate(filepath.Join(folder, file.name), file.text)
		}
	}
	if err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	return nil
}

// Keep puts credentials into a file, in place of those for the same cluster.
func Keep(path string, fresh *Credentials) error {
	kept, err := ReadFile(path)
	if err != nil {
		return err
	}
	text := strings.Builder{}
	for _, one := range append(kept, fresh) {
		if one != fresh && one.who.Cluster == fresh.who.Cluster {
			continue
		}
		line, err := one.Line()
		if err != nil {
			return err
		}
		text.WriteString(line + "\n")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep credentials: %w", err)
	}
	if err := WritePrivate(path, []byte(text.String())); err != nil {
		return fmt.Errorf("keep credentials: %w", err)
	}
	return nil
}
