package host

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"gopkg.in/natefinch/lumberjack.v2"
)

// Limits of log files.
const (
	logMegabytesMax = 64
	logBackupsMax   = 3
)

// OpenLog returns a log of JSON lines in a file that is rotated; "-" is standard error. What the runtime says when a
// goroutine panics is kept there as well.
func OpenLog(path string, level slog.Level) (*slog.Logger, error) {
	var out io.Writer = os.Stderr
	if path != "-" {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
		if err != nil {
			return nil, fmt.Errorf("open the log: %w\nhint: choose another with --log-file FILE", err)
		}
		defer file.Close() // the runtime has a copy
		if err := debug.SetCrashOutput(file, debug.CrashOptions{}); err != nil {
			return nil, fmt.Errorf("open the log for crashes: %w", err)
		}
		out = &lumberjack.Logger{Filename: path, MaxSize: logMegabytesMax, MaxBackups: logBackupsMax}
	}
	return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level})), nil
}

// EngineLog takes the lines that the journal's engine logs; they matter to whoever debugs the engine.
type EngineLog struct{ Log *slog.Logger }

// Write implements io.Writer.
func (l EngineLog) Write(line []byte) (int, error) {
	l.Log.Debug("etcd", "line", strings.TrimSpace(string(line)))
	return len(line), nil
}
