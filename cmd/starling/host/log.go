package host

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

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

// EngineLog takes the lines of JSON that the journal's engine logs. Most matter to whoever debugs the engine; with
// some it ends the whole process at once, and these are for whoever operates it.
type EngineLog struct {
	Log *slog.Logger
	// Folder is where the engine's data is, Tell says something to the user.
	Folder string
	Tell   func(format string, args ...any)
}

// Write implements io.Writer.
func (l EngineLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	said := struct{ Level, Msg, Error string }{}
	_ = json.Unmarshal(line, &said) // what is no JSON has no level
	switch said.Level {
	case "fatal", "panic", "dpanic":
		hint := "start the agent again; if that ends alike, its data may be damaged: on one of several members, delete " +
			l.Folder + " and start it with --join, otherwise restore it"
		if strings.Contains(said.Error, syscall.ENOSPC.Error()) {
			hint = "free space on the disk of " + l.Folder + ", then start the agent again; its tasks go on"
		}
		l.Log.Error("etcd ends this process", "line", text, "hint", hint)
		l.Tell("starling: this node's etcd member cannot go on and ends the agent: %s: %s\nhint: %s", said.Msg, said.Error, hint)
	case "error":
		l.Log.Warn("etcd", "line", text)
	default:
		l.Log.Debug("etcd", "line", text)
	}
	return len(line), nil
}
