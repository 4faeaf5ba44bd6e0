package host

import (
	"io"
	"log/slog"
	"os"
	"strings"

	"gopkg.in/natefinch/lumberjack.v2"
)

// Limits of log files.
const (
	logMegabytesMax = 64
	logBackupsMax   = 3
)

// OpenLog returns a log of JSON lines in a file that is rotated; "-" is standard error.
func OpenLog(path string, level slog.Level) *slog.Logger {
	var out io.Writer = os.Stderr
	if path != "-" {
		out = &lumberjack.Logger{Filename: path, MaxSize: logMegabytesMax, MaxBackups: logBackupsMax}
	}
	return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level}))
}

// EngineLog takes the lines that the journal's engine logs; they matter to whoever debugs the engine.
type EngineLog struct{ Log *slog.Logger }

// Write implements io.Writer.
func (l EngineLog) Write(line []byte) (int, error) {
	l.Log.Debug("etcd", "line", strings.TrimSpace(string(line)))
	return len(line), nil
}
