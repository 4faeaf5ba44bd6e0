package drivertest

import (
	"testing"
	"time"

	"starling/driver"
	"starling/driver/uptime"
)

// shortProof is how long a proof lasts where a test waits for its end; longProof is the longest that is tried on a
// machine so busy that a start takes most of that.
const shortProof, longProof = 5 * time.Second, 40 * time.Second

// startProved starts a task whose first proof is of now and lasts for a short time, and returns when it is ready, with
// half of that time left.
func (b *bench) startProved(t *testing.T, id string, grace time.Duration, verb ...string) {
	t.Helper()
	for lasts := shortProof; ; lasts *= 2 {
		began, task := time.Now(), b.task(id, verb...)
		task.Proofs = driver.Proofs{StopAfter: lasts, StopGrace: grace, First: uptime.Now()}
		b.startTask(t, task)
		line, err := b.firstLine(t, id)
		took := time.Since(began)
		switch {
		case line == "ready\n" && took < lasts/2:
			return
		case lasts >= longProof:
			t.Fatalf("the task %q wrote %q (%v) after %v, want ready; it is %+v", id, line, err, took, b.status(id))
		}
		b.stop(t, id, 0)
		b.exited(t, id)
		b.forget(t, id)
	}
}

func (b *bench) prove(t *testing.T, id string, at uptime.Moment) {
	t.Helper()
	if err := b.Prove(id, at); err != nil {
		t.Fatalf("Prove(%q): %v", id, err)
	}
}

// wantUnproved waits for the end of a task that nobody proved.
func (b *bench) wantUnproved(t *testing.T, id string, code int) {
	t.Helper()
	if got := b.exited(t, id); !got.Unproved || got.ExitCode != code {
		t.Errorf("got %+v, want unproved with exit code %d", got, code)
	}
}

func testUnproved(t *testing.T, b *bench) {
	begin := time.Now()
	b.startProved(t, "task", longGrace, "run")
	b.wantUnproved(t, "task", 128+15)
	if took := time.Since(begin); took < shortProof {
		t.Errorf("it ended after %v, want it to run for %v", took, shortProof)
	}
	b.reopen(t, func() {})
	b.wantUnproved(t, "task", 128+15)
}

func testUnprovedKills(t *testing.T, b *bench) {
	b.startProved(t, "task", shortGrace, "ignore")
	b.wantUnproved(t, "task", 128+9)
}

// testUnprovedStart has an order to start come too late, as from a peer that slept.
func testUnprovedStart(t *testing.T, b *bench) {
	task := b.task("task", "print", "it ran", "")
	task.Proofs = driver.Proofs{StopAfter: time.Millisecond, First: 1}
	b.startTask(t, task)
	b.wantUnproved(t, "task", driver.NoExitCode)
	if got := b.output(t, "task", driver.Stdout); got != "" {
		t.Errorf("it wrote %q, want it never to run", got)
	}
}

// testUnprovedAlone has proofs end while no driver is there, or another.
func testUnprovedAlone(t *testing.T, b *bench) {
	b.startProved(t, "task", longGrace, "run")
	b.reopen(t, func() {})
	b.wantUnproved(t, "task", 128+15)
}

func testProved(t *testing.T, b *bench) {
	b.startProved(t, "proved", longGrace, "terminate", "3")
	b.prove(t, "proved", uptime.Now()+uptime.Moment(time.Hour))
	b.prove(t, "proved", uptime.Now()) // late, and changes nothing
	b.startProved(t, "unproved", longGrace, "run")
	b.wantUnproved(t, "unproved", 128+15)
	if got := b.status("proved"); got.State != driver.Running {
		t.Errorf("got %+v, want running", got)
	}
	b.reopen(t, func() {})
	b.prove(t, "proved", uptime.Now()+2*uptime.Moment(time.Hour))
	b.stop(t, "proved", longGrace)
	wantExit(t, b.exited(t, "proved"), 3, 0)
	if got := b.status("proved"); got.Unproved {
		t.Errorf("got %+v, want it stopped on request", got)
	}
}

func testProvedIgnored(t *testing.T, b *bench) {
	b.prove(t, "unknown", uptime.Now())
	b.startReady(t, "for ever", "run")
	b.prove(t, "for ever", 1)
	b.start(t, "ended", "exit", "0")
	b.exited(t, "ended")
	b.prove(t, "ended", 1)
	if got := b.status("for ever"); got.State != driver.Running {
		t.Errorf("a task that needs no proofs: got %+v, want running", got)
	}
}
