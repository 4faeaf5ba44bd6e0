package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRoom sets room aside for a record: it cannot be read before it is stored, however little of it is missing.
func TestRoom(t *testing.T) {
	folder, got := t.TempDir(), ""
	const name, want = "end.json", "it has ended"
	if _, did := Reserved(folder, name); did {
		t.Error("room is set aside before that was done")
	}
	if err := Reserve(folder, name); err != nil {
		t.Fatal(err)
	}
	if at, did := Reserved(folder, name); !did || at.IsZero() {
		t.Errorf("got room set aside at %v, %t", at, did)
	}
	path := filepath.Join(folder, name)
	whole := `"` + want + `"`
	for written := range whole {
		room := whole[:written] + strings.Repeat(" ", reservedBytes-written)
		if err := os.WriteFile(path, []byte(room), 0o600); err != nil {
			t.Fatal(err)
		}
		if known, err := Read(folder, name, &got); known || err != nil {
			t.Errorf("%d bytes: got %q, %t, %v, want no record", written, got, known, err)
		}
	}
	for _, store := range []func(folder, name string, value any) error{Fill, WriteDurably, Write} {
		if err := store(folder, name, want); err != nil {
			t.Fatal(err)
		}
		if known, err := Read(folder, name, &got); !known || err != nil || got != want {
			t.Errorf("got %q, %t, %v, want %q", got, known, err, want)
		}
		if err := Reserve(folder, name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRoomOfEarlierPrograms finds the room that those set aside, under the name of a record that is not whole.
func TestRoomOfEarlierPrograms(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "end.json.new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if at, did := Reserved(folder, "end.json"); !did || at.IsZero() {
		t.Errorf("got room set aside at %v, %t", at, did)
	}
}
