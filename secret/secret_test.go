package secret

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"starling/terms"
)

// fixed is a secret that all tests know.
func fixed() *Secret { return &Secret{[seedBytes]byte([]byte("0123456789abcdef0123456789abcdef"))} }

func pair(t *testing.T, s *Secret, job terms.JobName, id terms.JobID, purpose Purpose) KeyPair {
	t.Helper()
	p, err := s.KeyPair(job, id, purpose)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestKeyPair holds what is derived for ever: all machines of a cluster must come to the same, whatever their versions.
func TestKeyPair(t *testing.T) {
	const want = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILB/a+7Enk6s0nAp7UsJA/Jh4dE8MVJ5GLlXZ3o3tfl+"
	if got := string(pair(t, fixed(), "ml/train", 7, Login).Public); got != want+"\n" {
		t.Errorf("got %q, want %q", got, want)
	}
	seen := map[string]string{}
	for _, c := range []struct {
		secret  *Secret
		job     terms.JobName
		id      terms.JobID
		purpose Purpose
	}{
		{fixed(), "ml/train", 7, Login}, {fixed(), "ml/train", 7, Host}, {fixed(), "ml/train", 8, Login},
		{fixed(), "ml/trai", 7, Login}, {New(), "ml/train", 7, Login}, {New(), "ml/train", 7, Login},
	} {
		key := string(pair(t, c.secret, c.job, c.id, c.purpose).Private)
		if other := seen[key]; other != "" {
			t.Errorf("%s %d %s has the key of %s", c.job, c.id, c.purpose, other)
		}
		seen[key] = fmt.Sprint(c.job, c.id, c.purpose)
		if again := pair(t, c.secret, c.job, c.id, c.purpose); string(again.Private) != key {
			t.Errorf("%s %d %s: another key when asked again", c.job, c.id, c.purpose)
		}
	}
}

// TestOpenSSHReadsIt has the program itself make the public key of the private one.
func TestOpenSSHReadsIt(t *testing.T) {
	program, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("there is no ssh-keygen here")
	}
	keys := pair(t, fixed(), "train", 1, Login)
	file := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(file, keys.Private, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command(program, "-y", "-f", file).CombinedOutput()
	if err != nil || !bytes.Equal(bytes.TrimSpace(got), bytes.TrimSpace(keys.Public)) {
		t.Errorf("got %s %v, want %s", got, err, keys.Public)
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a missing file: got %v", err)
	}
	made, err := LoadOrMake(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadOrMake(path)
	if err != nil || *again != *made {
		t.Errorf("read again: got another, %v", err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others may read: got %v", err)
	}
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("c2hvcnQ=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrMake(short); err == nil || !strings.Contains(err.Error(), "does not hold 32 bytes") {
		t.Errorf("a short file: got %v", err)
	}
}

// TestHowToMake runs what users are told to run.
func TestHowToMake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if out, err := exec.Command("sh", "-c", HowToMake(path)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := Load(path); err != nil {
		t.Error(err)
	}
}

func TestPrintedItTellsNothing(t *testing.T) {
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format, fixed()); got != "the cluster's secret" {
			t.Errorf("%s: got %s", format, got)
		}
	}
}
