package host

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheEndOfTheEngineSaysWhatHelps writes the last lines of engines that could not go on.
func TestTheEndOfTheEngineSaysWhatHelps(t *testing.T) {
	for cause, want := range map[string]string{
		"write /var/x: no space left on device":            "free space on the disk of /data",
		"open /data/member/wal/0.wal: too many open files": "let it have more files open",
		"walpb: crc mismatch":                              "its data is damaged",
	} {
		var told string
		log := EngineLog{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Folder: "/data",
			Tell: func(format string, args ...any) { told = fmt.Sprintf(format, args...) }}
		if _, err := fmt.Fprintf(log, `{"level":"fatal","msg":"failed to purge wal file","error":%q}`, cause); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(told, want) || strings.Contains(told, "damaged") != (want == "its data is damaged") {
			t.Errorf("of %q is said %q, want %q", cause, told, want)
		}
	}
}

// TestLibrariesWriteToTheLog has a library say at length what somebody sent it.
func TestLibrariesWriteToTheLog(t *testing.T) {
	defer log.SetOutput(log.Writer())
	defer log.SetFlags(log.Flags())
	path := filepath.Join(t.TempDir(), "log")
	if _, err := OpenLog(path, slog.LevelDebug, nil); err != nil {
		t.Fatal(err)
	}
	log.Print("Unsolicited response: ", strings.Repeat("z", 10_000))
	text, err := os.ReadFile(path)
	if err != nil || len(text) > 1000 || !strings.Contains(string(text), `"level":"DEBUG"`) ||
		!strings.Contains(string(text), "Unsolicited response: zzz") {
		t.Errorf("got %d bytes, %.100s, %v", len(text), text, err)
	}
}
