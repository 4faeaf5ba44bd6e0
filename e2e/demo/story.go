package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"starling/api/client"
	starlingv1 "starling/api/v1"
)

// The figures of the demo.
const (
	packers   = 24
	servers   = 3
	pulseTTL  = 3 * time.Second
	healMax   = pulseTTL + 2*time.Second
	killAfter = packers / 4
)

// story is the demo under way.
type story struct {
	began  time.Time
	folder string
	fleet  fleet
	client *client.Client
	poller *poller
	plain  chan packed
	// victim is the peer that is killed, at killed.
	victim *agent
	killed time.Time
	// lost are the allocations that died with it.
	lost []string
}

// packed is the result of the plain run.
type packed struct {
	sums map[string]string
	took time.Duration
	err  error
}

// tell prints what happened, with the time since the beginning.
func (s *story) tell(format string, args ...any) {
	fmt.Printf("%6.2fs  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// tellAll goes through the demo step by step, once the binary is built.
func (s *story) tellAll(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		s.startPeers, s.startService, s.startBatch, s.kill, s.ringCloses, s.lostRunsElsewhere, s.batchEnds,
		s.serviceAnswered, s.victimReturns, s.digestsAgree, s.stopService,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// build makes the binary, and finds the input.
func (s *story) build(ctx context.Context) error {
	s.fleet.binary = filepath.Join(s.folder, "starling")
	s.tell("build the binary; the first time takes a minute or two")
	build := exec.CommandContext(ctx, ".ci/build", s.fleet.binary)
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the binary: %w\n%s", err, text)
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find the Go standard library: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src")
	s.tell("built %s", s.fleet.binary)
	return s.writeJobs(source)
}

// startPeers starts the three agents and waits until they are a ring.
func (s *story) startPeers(ctx context.Context) error {
	begun := time.Now()
	if err := s.fleet.start(ctx, s.folder); err != nil {
		return err
	}
	s.client = client.New(s.fleet.addresses())
	ring, err := s.awaitRing(ctx, len(s.fleet.agents))
	if err != nil {
		return err
	}
	if err := s.awaitQuorum(ctx); err != nil {
		return err
	}
	s.tell("three peers, three processes, an etcd quorum among them, after %.2f s: %s", time.Since(begun).Seconds(), ring)
	return nil
}

// startService submits the service, waits until all its instances run, and begins to poll it.
func (s *story) startService(ctx context.Context) error {
	begun := time.Now()
	if err := s.submit(ctx, "service"); err != nil {
		return err
	}
	status, err := s.await(ctx, "service", func(status *starlingv1.JobStatusResponse) bool {
		return status.GetJob().GetCounts().GetRunning() == servers
	})
	if err != nil {
		return err
	}
	s.poller = startPoller(s.client, status)
	if err := s.poller.allAnswer(ctx); err != nil {
		return err
	}
	s.tell("service: %d instances answer HTTP after %.2f s, on %s; polled from now on", servers,
		time.Since(begun).Seconds(), places(status))
	return nil
}

// startBatch submits the batch job, and begins the plain run that its result is compared with.
func (s *story) startBatch(ctx context.Context) error {
	if err := s.submit(ctx, "batch"); err != nil {
		return err
	}
	_, err := s.await(ctx, "batch", func(status *starlingv1.JobStatusResponse) bool {
		return status.GetJob().GetCounts().GetSucceeded() >= killAfter
	})
	if err != nil {
		return err
	}
	s.tell("batch: %d of %d instances have packed their part of the Go standard library", killAfter, packers)
	return nil
}

// submit brings a job with the command line, as a user would.
func (s *story) submit(ctx context.Context, job string) error {
	command := exec.CommandContext(ctx, s.fleet.binary, "run", "--detach", filepath.Join(s.folder, job+".yaml"))
	command.Env = append(os.Environ(), "STARLING_ADDRESS="+s.fleet.agents[0].address)
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("starling run %s.yaml: %w\n%s", job, err, bytes.TrimSpace(text))
	}
	return nil
}

// await follows a job until it stands as wanted.
func (s *story) await(ctx context.Context, job string,
	wanted func(*starlingv1.JobStatusResponse) bool) (*starlingv1.JobStatusResponse, error) {
	var last *starlingv1.JobStatusResponse
	question := &starlingv1.JobStatusRequest{Job: job, PageSize: 1000}
	err := s.client.FollowJob(ctx, question, func(status *starlingv1.JobStatusResponse) (bool, error) {
		last = status
		switch {
		case wanted(status):
			return true, nil
		case status.GetJob().GetFinal():
			return true, fmt.Errorf("job %s has ended: %s", job, status.GetJob().GetStatus())
		}
		return false, nil
	})
	return last, err
}

// clear ends the jobs and the agents, and removes all that was made.
func (s *story) clear(ctx context.Context) error {
	if s.poller != nil {
		s.poller.stop()
	}
	return errors.Join(s.fleet.end(ctx), os.RemoveAll(s.folder))
}

// stopService stops the service as a user would, so that its machines are left as they were found.
func (s *story) stopService(ctx context.Context) error {
	s.poller.stop()
	if _, err := s.client.KillJob(ctx, "service", 0, false); err != nil {
		return err
	}
	_, err := s.await(ctx, "service",
		func(status *starlingv1.JobStatusResponse) bool { return status.GetJob().GetFinal() })
	return err
}

// places lists where the instances of a job are.
func places(status *starlingv1.JobStatusResponse) string {
	var all []string
	for _, slot := range status.GetSlots() {
		all = append(all, fmt.Sprintf("%s[%d] on %s", slot.GetTask(), slot.GetNumber(), slot.GetNode()))
	}
	return strings.Join(all, ", ")
}
