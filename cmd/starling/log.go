package main

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

// openLog returns a log of JSON lines in a file that is rotated; "-" is standard error.
func openLog(path string, level slog.Level) *slog.Logger {
	var out io.Writer = os.Stderr
	if path != "-" {
		out = &lumberjack.Logger{Filename: path, MaxSize: logMegabytesMax, MaxBackups: logBackupsMax}
	}
	log := slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level}))
	slog.SetDefault(log)
	return log
}

// logWriter takes the lines that the journal's engine logs.
type logWriter struct{ log *slog.Logger }

// Write implements io.Writer.
func (w logWriter) Write(line []byte) (int, error) {
	w.log.Debug("etcd", "line", strings.TrimSpace(string(line)))
	return len(line), nil
}
