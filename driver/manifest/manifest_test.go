package manifest_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"starling/driver/manifest"
)

func full(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range map[string]string{"a": "one", "deep/er/b": "", "deep/c": strings.Repeat("two", 100_000),
		"run.sh": "#!/bin/sh\n"} {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "empty"), 0o700),
		os.Chmod(filepath.Join(dir, "run.sh"), 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func sent(t *testing.T, dir string) []byte {
	t.Helper()
	m, err := manifest.Of(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	if err := m.Send(dir, &stream); err != nil {
		t.Fatal(err)
	}
	return stream.Bytes()
}

func TestSendAndReceive(t *testing.T) {
	from, to, beside := full(t), t.TempDir(), t.TempDir()
	m, err := manifest.Receive(bytes.NewReader(sent(t, from)), to, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Files {
		want, _ := os.ReadFile(filepath.Join(from, f.Path))
		got, err := os.ReadFile(filepath.Join(to, f.Path))
		info, missing := os.Stat(filepath.Join(to, f.Path))
		switch {
		case missing != nil || info.IsDir() != f.Folder:
			t.Errorf("%s: %v", f.Path, missing)
		case !f.Folder && (err != nil || !bytes.Equal(got, want) || info.Mode()&0o100 != 0 != (f.Path == "run.sh")):
			t.Errorf("%s: %d bytes, mode %s: %v", f.Path, len(got), info.Mode(), err)
		}
	}
	if want := 7; len(m.Files) != want {
		t.Errorf("got %d files and folders, want %d", len(m.Files), want)
	}
	if _, err := manifest.Kept(beside); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without a manifest: %v", err)
	}
	if err := m.Keep(beside); err != nil {
		t.Fatal(err)
	}
	if kept, err := manifest.Kept(beside); err != nil || len(kept.Files) != len(m.Files) || kept.Files[0] != m.Files[0] {
		t.Errorf("got %v, %v", kept, err)
	}
}

// TestDamage changes, cuts and lengthens what was sent at many places: it is never taken for whole.
func TestDamage(t *testing.T) {
	whole := sent(t, full(t))
	for at := 0; at < len(whole); at += 1 + len(whole)/97 {
		changed := bytes.Clone(whole)
		changed[at] ^= 1
		for what, stream := range map[string][]byte{"cut": whole[:at], "changed": changed} {
			m, err := manifest.Receive(bytes.NewReader(stream), t.TempDir(), nil, nil)
			if err == nil && (what == "cut" || at > bytes.IndexByte(whole, '\n')) {
				t.Errorf("%s at %d: got %v", what, at, m)
			}
		}
	}
	if _, err := manifest.Receive(bytes.NewReader(append(whole, 'x')), t.TempDir(), nil, nil); err == nil {
		t.Error("more than the manifest says was taken")
	}
}

// TestEvil has manifests whose files would lie elsewhere.
func TestEvil(t *testing.T) {
	for _, path := range []string{"../x", "/x", "a/../../x", ""} {
		head := `{"files":[{"path":"` + path +
			`","sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]}` + "\n"
		if _, err := manifest.Receive(strings.NewReader(head), t.TempDir(), nil, nil); err == nil {
			t.Errorf("%q was taken", path)
		}
	}
}

func TestUnfit(t *testing.T) {
	link, long := t.TempDir(), t.TempDir()
	deep := filepath.Join(long, strings.Repeat(strings.Repeat("a", 200)+"/", 6))
	if err := errors.Join(os.Symlink("/etc", filepath.Join(link, "etc")), os.MkdirAll(deep, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{link, long} {
		if _, err := manifest.Of(context.Background(), dir); !errors.Is(err, manifest.ErrUnfit) {
			t.Errorf("%s: got %v", dir, err)
		}
	}
}

// TestUnfitName has a file, and a folder, whose name no manifest can have: it would be missing there for ever.
func TestUnfitName(t *testing.T) {
	for _, makes := range []func(string) error{
		func(path string) error { return os.WriteFile(path, nil, 0o600) },
		func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Mkdir(path+"/below", 0o700)) },
	} {
		dir := t.TempDir()
		if err := makes(filepath.Join(dir, "caf\xe9")); err != nil {
			t.Skip("a file system whose names are UTF-8:", err)
		}
		_, err := manifest.Of(t.Context(), dir)
		if !errors.Is(err, manifest.ErrUnfit) || !strings.Contains(err.Error(), `the name "caf\xe9" is not UTF-8`) {
			t.Errorf("got %v", err)
		}
	}
}

// TestCheck spoils a folder in several ways. What is in the files is checked when it is sent.
func TestCheck(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"nothing":  func(string) error { return nil },
		"a file":   func(dir string) error { return os.Remove(filepath.Join(dir, "deep/c")) },
		"a folder": func(dir string) error { return os.Remove(filepath.Join(dir, "empty")) },
		"a size":   func(dir string) error { return os.Truncate(filepath.Join(dir, "a"), 2) },
		"a kind": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "a")), os.Symlink("run.sh", filepath.Join(dir, "a")))
		},
		"a text": func(dir string) error { return os.WriteFile(filepath.Join(dir, "a"), []byte("two"), 0o600) },
		"all":    os.RemoveAll,
	} {
		dir := full(t)
		m, err := manifest.Of(t.Context(), dir)
		if err = errors.Join(err, spoil(dir)); err != nil {
			t.Fatal(err)
		}
		err = m.Check(dir)
		if want := name != "nothing" && name != "a text"; errors.Is(err, manifest.ErrChanged) != want || !want && err != nil {
			t.Errorf("%s: got %v", name, err)
		}
		err = m.Send(dir, &bytes.Buffer{})
		if want := name == "a file" || name == "a size" ||
			name == "a text"; errors.Is(err, manifest.ErrChanged) != want && name != "all" && name != "a kind" {
			t.Errorf("%s, sent: got %v", name, err)
		}
	}
}

func TestGrown(t *testing.T) {
	dir := full(t)
	if err := manifest.Grown(t.Context(), dir); err != nil {
		t.Errorf("a small folder: %v", err)
	}
	if err := os.Truncate(filepath.Join(dir, "deep/c"), manifest.BytesMax+1); err != nil {
		t.Skip("no file with so large a hole can be made here:", err)
	}
	if err := manifest.Grown(t.Context(), dir); !errors.Is(err, manifest.ErrUnfit) {
		t.Errorf("a large file: %v", err)
	}
	if err := manifest.Grown(t.Context(), filepath.Join(dir, "gone")); err != nil {
		t.Errorf("a folder that has gone: %v", err)
	}
}

// TestHoles has files of more bytes than are on the disk.
func TestHoles(t *testing.T) {
	for bytes, want := range map[int64]error{8 << 40: manifest.ErrUnfit, 60 << 30: context.DeadlineExceeded} {
		dir := t.TempDir()
		path := filepath.Join(dir, "holes")
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, bytes)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/10)
		done := make(chan error, 1)
		go func() {
			_, err := manifest.Of(ctx, dir)
			done <- err
		}()
		select {
		case err := <-done:
			if !errors.Is(err, want) {
				t.Errorf("%d bytes: got %v, want %v", bytes, err, want)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%d bytes are still read", bytes)
		}
		cancel()
	}
}
