package workdir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	starlingv1 "starling/api/v1"
)

// answer is what Send sends, in a line.
func answer(t *testing.T, root *os.Root, path string) string {
	var text strings.Builder
	err := Send(root, path, func(piece *starlingv1.FilesResponse) error {
		for _, one := range piece.GetFiles() {
			fmt.Fprintf(&text, "%s %s %d %s;", one.GetMode(), one.GetName(), one.GetBytes(), one.GetLink())
		}
		if piece.GetFile() != nil {
			fmt.Fprintf(&text, "file %s %d:", piece.GetFile().GetName(), piece.GetFile().GetBytes())
		}
		text.Write(piece.GetData())
		return nil
	})
	if err != nil {
		return text.String() + err.Error()
	}
	return text.String()
}

func TestSend(t *testing.T) {
	above := t.TempDir()
	folder := filepath.Join(above, "work")
	for _, make := range []error{
		os.WriteFile(filepath.Join(above, "secret"), []byte("of the machine"), 0o600),
		os.MkdirAll(filepath.Join(folder, "sub", "empty"), 0o755),
		os.WriteFile(filepath.Join(folder, "text"), []byte("hello"), 0o640),
		os.WriteFile(filepath.Join(folder, "none"), nil, 0o600),
		os.Symlink("text", filepath.Join(folder, "link")),
		os.Symlink("../secret", filepath.Join(folder, "out")),
		os.Symlink("/etc", filepath.Join(folder, "etc")),
		syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600),
		os.WriteFile(filepath.Join(folder, "caf\xe9"), []byte("x"), 0o600),
		os.Symlink("caf\xe9", filepath.Join(folder, "odd")),
	} {
		if make != nil {
			t.Fatal(make)
		}
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for path, want := range map[string]string{
		"sub":           "drwxr-xr-x empty",
		"/sub/../sub/.": "drwxr-xr-x empty",
		"sub/empty":     "",
		"text":          "file text 5:hello",
		"none":          "file none 0:",
		"link":          "file link 5:hello",
		"missing":       "there is no missing",
		"text/more":     "there is no text/more",
		"../secret":     "there is no secret",
		"out":           "out leads out of the instance's folder",
		"etc/passwd":    "etc/passwd leads out of the instance's folder",
		"pipe":          "pipe is neither a file nor a folder: prw-------",
	} {
		if got := answer(t, root, path); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
	got := answer(t, root, "")
	for _, want := range []string{"lrwxrwxrwx link 4 text;", "lrwxrwxrwx out 9 ../secret;", "-rw-r----- text 5 ;",
		"prw------- pipe", `?rw------- "caf\xe9" 1 ;`, `lrwxrwxrwx odd 4 "caf\xe9";`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}

// TestSendMuch sends a folder with more files than are told, and a file of several pieces.
func TestSendMuch(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.WriteFile("long", make([]byte, 3*chunkBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	pieces, bytes := 0, 0
	if err := Send(root, "long", func(piece *starlingv1.FilesResponse) error {
		pieces, bytes = pieces+1, bytes+len(piece.GetData())
		return nil
	}); err != nil || pieces != 5 || bytes != 3*chunkBytes+1 {
		t.Errorf("got %d bytes in %d pieces: %v", bytes, pieces, err)
	}
	if err := root.Mkdir("many", 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range entriesMax + 1 {
		if err := root.WriteFile(fmt.Sprintf("many/%d", i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, more := 0, false
	if err := Send(root, "many", func(piece *starlingv1.FilesResponse) error {
		files, more = files+len(piece.GetFiles()), more || piece.GetMore()
		return nil
	}); err != nil || files != entriesMax || !more {
		t.Errorf("got %d files, more %v: %v", files, more, err)
	}
}
