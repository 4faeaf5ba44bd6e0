package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"

	"starling/api/words"
	"starling/command"
	"starling/journal/etcd/datadir"
	"starling/replica/report"
	"starling/terms"
)

// Limits of log files.
const (
	logMegabytesMax = 64
	logBackupsMax   = 3
)

// OpenLog returns a log of JSON lines in a file that is rotated; "-" is standard error. What the runtime says when a
// goroutine panics is kept there as well, and what libraries write to Go's own log, at level debug. Errors are told to
// a second place, too, unless that is nil: whoever started this program need not know where its log is.
func OpenLog(path string, level slog.Level, errors io.Writer) (*slog.Logger, error) {
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
	handler := slog.Handler(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level}))
	if errors != nil && path != "-" {
		handler = slog.NewMultiHandler(handler, slog.NewTextHandler(errors, &slog.HandlerOptions{Level: slog.LevelError}))
	}
	opened := slog.New(handler)
	log.SetFlags(0)
	log.SetOutput(libraryLog{opened})
	return opened, nil
}

// libraryLog takes what libraries write to Go's own log, as of what somebody sends them that breaks the protocol: the
// beginning of it, for who looks for it.
type libraryLog struct{ to *slog.Logger }

// Write implements io.Writer.
func (l libraryLog) Write(line []byte) (int, error) {
	const most = 300
	l.to.Debug("a library says", "line", strings.TrimSpace(string(line[:min(len(line), most)])))
	return len(line), nil
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
		hint := "start the agent again; if that ends alike, its data is damaged: " + datadir.Remedy(l.Folder)
		switch {
		case strings.Contains(said.Error, syscall.ENOSPC.Error()):
			hint = "free space on the disk of " + l.Folder + ", then start the agent again; its tasks go on"
		case strings.Contains(text, syscall.EMFILE.Error()), strings.Contains(text, syscall.ENFILE.Error()):
			hint = "let it have more files open (LimitNOFILE in its unit, ulimit -Hn), then start the agent again; its tasks go on"
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

// tellStory logs what happens to this machine and to the ring from now on, in a line each, until ctx ends.
func (h *Host) tellStory(ctx context.Context) {
	head, err := h.Head(ctx)
	for ; err != nil; head, err = h.Head(ctx) { // what was before this process began is not news
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
	_ = h.Follow(ctx, head+1, func(f *report.Folded) error { // it ends with ctx
		for _, line := range newsOf(f, h.config.Node) {
			h.config.Log.Info(line, "entry", uint64(f.Index))
		}
		return nil
	})
}

// newsOf returns what an entry brought to a node and to the ring.
func newsOf(f *report.Folded, node terms.NodeName) (lines []string) {
	if f.Entry != nil && f.Outcome.Dropped == "" {
		for _, one := range f.Entry.Commands {
			if drain, ok := one.(*command.DrainNode); ok && drain.Node == node {
				lines = append(lines, words.Command(one))
			}
		}
	}
	for i := range f.Outcome.Effects {
		e := &f.Outcome.Effects[i]
		if e.Kind == report.Joined || e.Kind == report.Left || e.Node == node {
			lines = append(lines, words.Effect(e))
		}
	}
	return lines
}
