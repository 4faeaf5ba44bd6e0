package host

import (
	"fmt"
	"io"
	"log/slog"
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
