// Package secret derives the secrets of jobs from the one that all machines of a cluster have, so that none has to be
// sent.
//
// The secret is a file that an administrator copies to every machine. Whoever has it comes to the same keys for a job
// by himself, from the job's name and number: nothing secret enters the journal, the API or a log. Whoever has a job's
// keys learns nothing of the secret, nor of other jobs' keys.
package secret

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"starling/terms"
)

// seedBytes is how much of it is secret.
const seedBytes = 32

// Secret is that of a cluster. Printed it tells nothing of itself.
type Secret struct{ seed [seedBytes]byte }

// String says what it is.
func (*Secret) String() string { return "the cluster's secret" }

// GoString says what it is.
func (s *Secret) GoString() string { return s.String() }

// New returns a secret that nobody has.
func New() *Secret {
	s := &Secret{}
	_, _ = rand.Read(s.seed[:]) // it never fails
	return s
}

// Load reads a secret from a file, which must be for its owner alone.
func Load(path string) (*Secret, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("the cluster's secret: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("the cluster's secret: others than its owner may use %s, whose mode is %04o\nhint: chmod 600 %s", path, mode, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the cluster's secret: %w", err)
	}
	seed, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(seed) != seedBytes {
		return nil, fmt.Errorf("the cluster's secret: %s does not hold %d bytes in base64\nhint: copy it whole from another machine of the cluster, "+
			"or make a new one: %s", path, seedBytes, HowToMake(path))
	}
	return &Secret{[seedBytes]byte(seed)}, nil
}

// LoadOrMake reads a secret from a file, or writes a new one if there is none.
func LoadOrMake(path string) (*Secret, error) {
	if s, err := Load(path); !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	s := New()
	text := base64.StdEncoding.EncodeToString(s.seed[:]) + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("keep the cluster's secret: %w", err)
	}
	return s, nil
}

// HowToMake returns what makes the file of a new secret, in a shell.
func HowToMake(path string) string {
	return "(umask 077; head -c 32 /dev/urandom | base64 > " + path + ")"
}

// Purpose is what a key pair of a job is for; each has its own.
type Purpose string

// The purposes. Their texts are in what is derived, so they never change.
const (
	// Login lets the members of a job in.
	Login Purpose = "ssh"
	// Host is by which their servers are known.
	Host Purpose = "ssh host"
)

// KeyPair returns the key pair of a job for a purpose. It is the same wherever the secret is; another job, even one
// that has the name later, has another.
func (s *Secret) KeyPair(job terms.JobName, id terms.JobID, purpose Purpose) (KeyPair, error) {
	info := binary.BigEndian.AppendUint32([]byte("starling job key\x00"), uint32(id))
	for _, part := range []string{string(job), string(purpose)} {
		info = append(binary.BigEndian.AppendUint32(info, uint32(len(part))), part...)
	}
	seed, err := hkdf.Key(sha256.New, s.seed[:], nil, string(info), ed25519.SeedSize)
	if err != nil {
		return KeyPair{}, fmt.Errorf("the keys of job %s: %w", job, err)
	}
	return newKeyPair(ed25519.NewKeyFromSeed(seed)), nil
}
