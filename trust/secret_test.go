package trust

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"starling/terms/access"
)

func twoNodes(t *testing.T) (keeper, other *Keys) {
	t.Helper()
	keeper, err := Create(filepath.Join(t.TempDir(), Folder), "a")
	if err != nil {
		t.Fatal(err)
	}
	if other, err = keeper.Another(filepath.Join(t.TempDir(), Folder), "b"); err != nil {
		t.Fatal(err)
	}
	return keeper, other
}

// TestSecret seals and opens, and does not open what was altered.
func TestSecret(t *testing.T) {
	keys, _ := twoNodes(t)
	value := bytes.Repeat([]byte("swordfish"), access.SecretBytesMax/9)
	s, err := keys.SealSecret("shop", "db", value)
	if err != nil || len(s.Sealed) > access.SealedBytesMax || strings.Contains(s.Sealed, "swordfish") {
		t.Fatalf("sealed to %d bytes, %v", len(s.Sealed), err)
	}
	again, _ := keys.SealSecret("shop", "db", value)
	if again.Sealed == s.Sealed {
		t.Error("the same value is sealed to the same text, which tells that it is the same")
	}
	if got, err := keys.OpenSecret(&s); err != nil || !bytes.Equal(got, value) {
		t.Errorf("opened to %d bytes, %v", len(got), err)
	}
	for what, alter := range map[string]func(*access.Secret){
		"of another name": func(s *access.Secret) { s.Name = "mail" },
		"of another pool": func(s *access.Secret) { s.Pool = "thief" },
		"cut off":         func(s *access.Secret) { s.Sealed = s.Sealed[:8] },
		"no base64":       func(s *access.Secret) { s.Sealed = "?" + s.Sealed[1:] },
		"altered":         func(s *access.Secret) { s.Sealed = "AAAA" + s.Sealed[4:] },
	} {
		altered := s
		if alter(&altered); altered == s {
			t.Fatal("nothing was altered")
		}
		if _, err := keys.OpenSecret(&altered); err == nil || !strings.Contains(err.Error(), "was altered") {
			t.Errorf("one that is %s: %v", what, err)
		}
	}
}

// TestSecretsOfOthersAreLost opens a secret of another cluster, as after a restore.
func TestSecretsOfOthersAreLost(t *testing.T) {
	keys, _ := twoNodes(t)
	s, err := keys.SealSecret("shop", "db", []byte("swordfish"))
	if err != nil {
		t.Fatal(err)
	}
	stranger, _ := twoNodes(t)
	if _, err := stranger.OpenSecret(&s); !errors.Is(err, ErrLost) {
		t.Errorf("got %v, want that it is lost", err)
	}
}

// TestSecretsNeedTheKey seals and opens on a node without the key, and after the authority was replaced.
func TestSecretsNeedTheKey(t *testing.T) {
	keys, other := twoNodes(t)
	value := []byte("swordfish")
	s, err := keys.SealSecret("shop", "db", value)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.OpenSecret(&s); !errors.Is(err, ErrNotKeeper) {
		t.Errorf("a node without the key: %v", err)
	}
	if _, err := other.SealSecret("shop", "db", value); !errors.Is(err, ErrNotKeeper) {
		t.Errorf("a node without the key seals: %v", err)
	}

	for who, k := range map[string]*Keys{"a node with the newest key": keys, "a node without a key": other} {
		if _, ok, err := k.SealsAnew(&s); ok || err != nil {
			t.Errorf("%s: %t, %v", who, ok, err)
		}
	}
	next, err := keys.Successor()
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Adopt(append(keys.Listed(), next)); err != nil {
		t.Fatal(err)
	}
	s.Version = 7
	anew, ok, err := keys.SealsAnew(&s)
	if !ok || err != nil || anew.Key == s.Key || anew.Version != 7 {
		t.Fatalf("sealed anew: %t, %+v, %v", ok, anew, err)
	}
	if got, err := keys.OpenSecret(&anew); err != nil || !bytes.Equal(got, value) {
		t.Errorf("opened to %d bytes, %v", len(got), err)
	}
}
