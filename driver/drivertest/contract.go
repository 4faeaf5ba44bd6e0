package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"starling/driver"
)

func testExitCode(t *testing.T, b *bench) {
	for _, code := range []int{0, 7} {
		id := fmt.Sprintf("exit#%d", code)
		b.start(t, id, "exit", fmt.Sprint(code))
		wantExit(t, b.exited(t, id), code, 0)
	}
}

func testSignal(t *testing.T, b *bench) {
	b.start(t, "signal", "signal", "9")
	wantExit(t, b.exited(t, "signal"), 128+9, 9)
}

func testStartTwice(t *testing.T, b *bench) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := b.Start(b.ctx, b.task("twice", "exit", "3")); err != nil {
				t.Errorf("Start: %v", err)
			}
			if b.status("twice").State == 0 {
				t.Error("Start returned and the task is not in Tasks")
			}
		})
	}
	all.Wait()
	first := b.exited(t, "twice")
	b.start(t, "twice", "run")
	if again := b.status("twice"); again != first {
		t.Errorf("a second start made %+v of %+v", again, first)
	}
	if got, want := b.output(t, "twice", driver.Stdout), "exit\n"; got != want {
		t.Errorf("it wrote %q, want %q: the program must run once", got, want)
	}
}

func testNotFound(t *testing.T, b *bench) {
	missing := b.task("missing", "run")
	missing.Command = []string{"no-such-program"}
	missing.Env = []string{"PATH=/bin:/usr/bin"}
	b.startTask(t, missing)
	wantFailure(t, b.exited(t, "missing"), "no-such-program", "not found")
	b.reopen(t, func() {})
	wantFailure(t, b.status("missing"), "no-such-program", "not found")
}

func testRefused(t *testing.T, b *bench) {
	canceled, cancel := context.WithCancel(b.ctx)
	cancel()
	if err := b.Start(canceled, b.task("canceled", "run")); !errors.Is(err, context.Canceled) {
		t.Errorf("Start with a canceled context: got error %v, want context.Canceled", err)
	}
	if err := b.Start(b.ctx, driver.Task{ID: "empty"}); err == nil {
		t.Error("Start without a command: got no error")
	}
	if err := b.Start(b.ctx, b.task("", "run")); err == nil {
		t.Error("Start without an ID: got no error")
	}
	if got := b.Tasks(); len(got) != 0 {
		t.Errorf("refused starts left %+v", got)
	}
}

func testStopGraceful(t *testing.T, b *bench) {
	b.startReady(t, "graceful", "terminate", "7")
	if got := b.status("graceful"); got.State != driver.Running || got.PID == 0 || got.StartedAt.IsZero() ||
		!got.EndedAt.IsZero() {
		t.Errorf("got %+v, want running with a PID and a start", got)
	}
	b.stop(t, "graceful", longGrace)
	wantExit(t, b.exited(t, "graceful"), 7, 0)
}

func testStopByDefault(t *testing.T, b *bench) {
	b.startReady(t, "default", "run")
	b.stop(t, "default", longGrace)
	wantExit(t, b.exited(t, "default"), 128+15, int(syscall.SIGTERM))
}

func testStopSignal(t *testing.T, b *bench) {
	task := b.task("hung up", "run")
	task.StopSignal = syscall.SIGHUP
	b.startTask(t, task)
	b.ready(t, "hung up")
	b.stop(t, "hung up", longGrace)
	wantExit(t, b.exited(t, "hung up"), 128+1, int(syscall.SIGHUP))
}

func testStopKills(t *testing.T, b *bench) {
	b.startReady(t, "ignoring", "ignore")
	begin := time.Now()
	b.stop(t, "ignoring", shortGrace)
	wantExit(t, b.exited(t, "ignoring"), 128+9, int(syscall.SIGKILL))
	if took := time.Since(begin); took < shortGrace {
		t.Errorf("it was killed after %v, want a grace of %v", took, shortGrace)
	}
}

func testStopSooner(t *testing.T, b *bench) {
	b.startReady(t, "sooner", "ignore")
	b.stop(t, "sooner", longGrace)
	b.stop(t, "sooner", shortGrace)
	b.stop(t, "sooner", longGrace)
	wantExit(t, b.exited(t, "sooner"), 128+9, int(syscall.SIGKILL))
}

func testStopIgnored(t *testing.T, b *bench) {
	b.stop(t, "unknown", longGrace)
	b.start(t, "ended", "exit", "3")
	before := b.exited(t, "ended")
	b.stop(t, "ended", 0)
	if after := b.status("ended"); after != before {
		t.Errorf("stopping an ended task made %+v of %+v", after, before)
	}
}

func testForget(t *testing.T, b *bench) {
	b.forget(t, "unknown")
	b.startReady(t, "task", "run")
	if err := b.Forget("task"); err == nil {
		t.Error("Forget of a running task: got no error")
	}
	b.stop(t, "task", longGrace)
	b.exited(t, "task")
	b.forget(t, "task")
	b.forget(t, "task")
	if got := b.Tasks(); len(got) != 0 {
		t.Errorf("after Forget there is %+v", got)
	}
	b.reopen(t, func() {})
	if got := b.Tasks(); len(got) != 0 {
		t.Errorf("a new driver found the forgotten %+v", got)
	}
}

func testTasks(t *testing.T, b *bench) {
	ids := []string{"web.server[2]#4711", "a", "A", "../b", "etl/nightly.read[10]#1", "etl/nightly.read[2]#2", "%41", ".",
		"ä ö"}
	for _, id := range ids {
		b.start(t, id, "exit", "0")
	}
	slices.Sort(ids)
	for _, id := range ids {
		b.exited(t, id)
	}
	names := func() (names []string) {
		for _, s := range b.Tasks() {
			names = append(names, s.ID)
		}
		return names
	}
	if got := names(); !slices.Equal(got, ids) {
		t.Errorf("Tasks: got %q, want %q", got, ids)
	}
	before := b.Tasks()
	b.reopen(t, func() {})
	for i, got := range b.Tasks() {
		if want := before[i]; got.ID != want.ID || got.ExitCode != want.ExitCode || !got.EndedAt.Equal(want.EndedAt) ||
			!got.StartedAt.Equal(want.StartedAt) {
			t.Errorf("a new driver found %+v, want %+v", got, want)
		}
	}
	if got := names(); !slices.Equal(got, ids) {
		t.Errorf("a new driver's Tasks: got %q, want %q", got, ids)
	}
}

func testChanged(t *testing.T, b *bench) {
	for _, id := range []string{"one", "two", "three"} {
		b.start(t, id, "exit", "0")
	}
	b.until(t, "three exited", func() bool {
		return b.status("one").State == driver.Exited && b.status("two").State == driver.Exited &&
			b.status("three").State == driver.Exited
	})
	for range 2 { // one value may have been on its way while the last state was read
		select {
		case <-b.Changed():
		default:
		}
	}
	select {
	case <-b.Changed():
		t.Error("Changed held more than one value for changes that were already seen")
	default:
	}
	b.forget(t, "one")
	select {
	case <-b.Changed():
	case <-b.ctx.Done():
		t.Error("Forget changed Tasks and Changed did not tell")
	}
}

func testStreams(t *testing.T, b *bench) {
	b.start(t, "streams", "print", "to stdout", "to stderr")
	b.exited(t, "streams")
	if got, want := b.output(t, "streams", driver.Stdout), "to stdout"; got != want {
		t.Errorf("stdout: got %q, want %q", got, want)
	}
	if got, want := b.output(t, "streams", driver.Stderr), "to stderr"; got != want {
		t.Errorf("stderr: got %q, want %q", got, want)
	}
}

func testTail(t *testing.T, b *bench) {
	b.start(t, "tail", "print", "0123456789", "")
	b.exited(t, "tail")
	for tail, want := range map[int64]string{-1: "0123456789", 0: "", 4: "6789", 10: "0123456789", 99: "0123456789"} {
		for _, follow := range []bool{false, true} {
			o := driver.LogOptions{Stream: driver.Stdout, TailBytes: tail, Follow: follow}
			if got := read(t, b.logs(t, "tail", o)); got != want {
				t.Errorf("Logs(%+v): got %q, want %q", o, got, want)
			}
		}
	}
}

// testFollow reads a log while it is written and expects it to end with the task.
func testFollow(t *testing.T, b *bench) {
	b.startReady(t, "follow", "terminate", "0")
	if got, want := b.output(t, "follow", driver.Stdout), "ready\n"; got != want {
		t.Errorf("without following: got %q, want %q", got, want)
	}
	whole := b.logs(t, "follow", driver.LogOptions{Stream: driver.Stdout, Follow: true, TailBytes: -1})
	rest := b.logs(t, "follow", driver.LogOptions{Stream: driver.Stdout, Follow: true})
	b.stop(t, "follow", longGrace)
	if got, want := read(t, whole), "ready\nterminated\n"; got != want {
		t.Errorf("followed from the beginning: got %q, want %q", got, want)
	}
	if got, want := read(t, rest), "terminated\n"; got != want {
		t.Errorf("followed from the end: got %q, want %q", got, want)
	}
}

// testFollowGivesUp ends a blocked read by its context and by Close.
func testFollowGivesUp(t *testing.T, b *bench) {
	b.startReady(t, "quiet", "run")
	ctx, cancel := context.WithCancel(b.ctx)
	byContext, err := b.Logs(ctx, "quiet", driver.LogOptions{Stream: driver.Stdout, Follow: true})
	if err != nil {
		t.Fatalf("Logs: %v", err)
	}
	defer byContext.Close()
	byClose := b.logs(t, "quiet", driver.LogOptions{Stream: driver.Stdout, Follow: true})
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := byContext.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("after cancel: got error %v, want context.Canceled", err)
		}
	})
	both.Go(func() {
		if _, err := byClose.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("after Close: got error %v, want one that is not the end of the log", err)
		}
	})
	cancel()
	if err := byClose.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	both.Wait()
}

func testLogsUnknown(t *testing.T, b *bench) {
	_, err := b.Logs(b.ctx, "unknown", driver.LogOptions{Stream: driver.Stdout})
	wantNotExist(t, err)
}

func testLogsForgotten(t *testing.T, b *bench) {
	b.start(t, "forgotten", "print", "words", "")
	b.exited(t, "forgotten")
	follower := b.logs(t, "forgotten", driver.LogOptions{Stream: driver.Stdout, Follow: true, TailBytes: -1})
	b.forget(t, "forgotten")
	if got, want := read(t, follower), "words"; got != want {
		t.Errorf("a reader from before Forget: got %q, want %q", got, want)
	}
	if got, want := b.output(t, "forgotten", driver.Stdout), "words"; got != want {
		t.Errorf("after Forget: got %q, want %q", got, want)
	}
	b.reopen(t, func() {})
	if got, want := b.output(t, "forgotten", driver.Stdout), "words"; got != want {
		t.Errorf("with a new driver: got %q, want %q", got, want)
	}
}

func testVolumeSets(t *testing.T, b *bench) {
	wantSets := func(want ...string) {
		t.Helper()
		if got := b.VolumeSets(); !slices.Equal(got, want) {
			t.Errorf("got the sets of volumes %q, want %q", got, want)
		}
	}
	wantSets()
	for _, set := range []string{"db.main[0]@2", "db.main[0]@1"} {
		task := b.task("of "+set, "exit", "0")
		task.Volumes = []driver.Volume{{Set: set, Name: "data", Variable: "DATA"}}
		b.startTask(t, task)
		wantExit(t, b.exited(t, task.ID), 0, 0)
		b.forget(t, task.ID)
	}
	wantSets("db.main[0]@1", "db.main[0]@2")
	for range 2 {
		if err := b.DeleteVolumes("db.main[0]@1"); err != nil {
			t.Errorf("DeleteVolumes: %v", err)
		}
	}
	b.reopen(t, func() {})
	wantSets("db.main[0]@2")
	folder, err := b.SetVolumesAside("db.main[0]@2")
	if err != nil || folder == "" {
		t.Errorf("set aside: got the folder %q, %v, want one", folder, err)
	}
	// The fake has no folder.
	if _, missing := os.Stat(filepath.Join(folder, "data")); filepath.IsAbs(folder) && missing != nil {
		t.Errorf("set aside: in the folder %q is no volume: %v", folder, missing)
	}
	b.reopen(t, func() {})
	wantSets()
	if folder, err := b.SetVolumesAside("db.main[0]@2"); folder != "" || err != nil {
		t.Errorf("set aside once more: got %q, %v, want none and no error", folder, err)
	}
	task := b.task("anew", "exit", "0") // another job may have the number that the lost one had
	task.Volumes = []driver.Volume{{Set: "db.main[0]@2", Name: "data", Variable: "DATA"}}
	b.startTask(t, task)
	wantExit(t, b.exited(t, task.ID), 0, 0)
	b.forget(t, task.ID)
	wantSets("db.main[0]@2")
}

// testReceivesVolumes makes sets of what was sent: all of it or nothing, and none that is there already.
func testReceivesVolumes(t *testing.T, b *bench) {
	if err := b.SendVolumes(b.ctx, "unknown", io.Discard); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("sending what is not there: %v", err)
	}
	if _, err := b.VolumeBytes(b.ctx, "unknown"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("measuring what is not there: %v", err)
	}
	long := "db." + strings.Repeat("é", 70) + "[0]@1"
	var archive bytes.Buffer
	for _, set := range []string{"db.main[0]@1", long} {
		task := b.task("of "+set, "exit", "0")
		task.Volumes = []driver.Volume{{Set: set, Name: "data", Variable: "DATA"}}
		b.startTask(t, task)
		b.exited(t, task.ID)
		b.forget(t, task.ID)
		archive.Reset()
		if err := b.SendVolumes(b.ctx, set, &archive); err != nil {
			t.Fatal(err)
		}
		if err := b.ReceiveVolumes(set, bytes.NewReader(archive.Bytes())); !errors.Is(err, os.ErrExist) {
			t.Errorf("receiving what is there: %v", err)
		}
		if err := b.DeleteVolumes(set); err != nil {
			t.Fatal(err)
		}
		lost := errors.New("the other machine is gone")
		if err := b.ReceiveVolumes(set, iotest.ErrReader(lost)); !errors.Is(err, lost) {
			t.Errorf("receiving what does not come: %v", err)
		}
		if got := b.VolumeSets(); len(got) != 0 {
			t.Errorf("got the sets %q of what did not come", got)
		}
		if err := b.ReceiveVolumes(set, bytes.NewReader(archive.Bytes())); err != nil {
			t.Fatal(err)
		}
		b.reopen(t, func() {})
		if got := b.VolumeSets(); !slices.Equal(got, []string{set}) {
			t.Errorf("got the sets %q, want %q", got, set)
		}
		got, err := b.VolumeBytes(b.ctx, set)
		if _, has := got["data"]; err != nil || !has || len(got) != 1 {
			t.Errorf("got the volumes %v, %v", got, err)
		}
		if err := b.DeleteVolumes(set); err != nil {
			t.Fatal(err)
		}
	}
}

func testRunNotRunning(t *testing.T, b *bench) {
	if driver.Run(b.ctx, b, b.task("unknown", "exit", "0")) == nil {
		t.Error("a program ran beside a task that is not there")
	}
	b.start(t, "ended", "exit", "0")
	b.exited(t, "ended")
	if driver.Run(b.ctx, b, b.task("ended", "exit", "0")) == nil {
		t.Error("a program ran beside a task that has ended")
	}
}

// testSurvivesRunning closes the driver under a running task and gives orders through the next one.
func testSurvivesRunning(t *testing.T, b *bench) {
	b.startReady(t, "survivor", "terminate", "5")
	before := b.status("survivor")
	b.reopen(t, func() {})
	after := b.status("survivor")
	if after.State != driver.Running || after.PID != before.PID || !after.StartedAt.Equal(before.StartedAt) {
		t.Errorf("a new driver found %+v, want %+v", after, before)
	}
	b.start(t, "survivor", "exit", "1")
	b.stop(t, "survivor", longGrace)
	wantExit(t, b.exited(t, "survivor"), 5, 0)
	if got, want := b.output(t, "survivor", driver.Stdout), "ready\nterminated\n"; got != want {
		t.Errorf("it wrote %q, want %q", got, want)
	}
}

// testSurvivesExited closes the driver under a task that is about to end by itself.
func testSurvivesExited(t *testing.T, b *bench) {
	b.startReady(t, "survivor", "run")
	b.stop(t, "survivor", longGrace)
	b.reopen(t, func() {})
	wantExit(t, b.exited(t, "survivor"), 128+15, 15)
	b.reopen(t, func() {})
	wantExit(t, b.status("survivor"), 128+15, 15)
}
