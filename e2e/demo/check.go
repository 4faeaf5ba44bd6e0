package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	starlingv1 "starling/api/v1"
)

// writeJobs writes the two job files.
func (s *story) writeJobs(source string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	result := filepath.Join(s.folder, "result")
	if err := os.MkdirAll(result, 0o777); err != nil {
		return err
	}
	s.plain = make(chan packed, 1)
	go func() { // ends by itself; what it found waits in the channel
		begun := time.Now()
		sums, err := packPlainly(context.Background(), source)
		s.plain <- packed{sums, time.Since(begun), err}
	}()
	batch := fmt.Sprintf(`job: batch
tasks:
  - name: pack
    instances: %d
    command: [%q, pack]
    env: {SOURCE: %q, RESULT: %q}
    resources: {cpu: 500m, memory: 256Mi}
    placement: spread
`, packers, program, source, result)
	service := fmt.Sprintf(`job: service
type: stateless
tasks:
  - name: web
    instances: %d
    command: [%q, serve]
    ports: {http: auto}
    resources: {cpu: 100m, memory: 128Mi}
    placement: spread
`, servers, program)
	return errors.Join(os.WriteFile(filepath.Join(s.folder, "batch.yaml"), []byte(batch), 0o666),
		os.WriteFile(filepath.Join(s.folder, "service.yaml"), []byte(service), 0o666))
}

// kill ends one peer and everything on it, while it works for both jobs.
func (s *story) kill(ctx context.Context) error {
	s.victim = s.fleet.agents[2]
	_, err := s.await(ctx, "batch", func(status *starlingv1.JobStatusResponse) bool {
		return len(s.runningOn(status)) > 0
	})
	if err != nil {
		return fmt.Errorf("wait for batch instances on %s: %w", s.victim.name, err)
	}
	for _, job := range []string{"batch", "service"} {
		status, err := s.client.JobStatus(ctx, &starlingv1.JobStatusRequest{Job: job, PageSize: 1000})
		if err != nil {
			return err
		}
		s.lost = append(s.lost, s.runningOn(status)...)
	}
	processes, err := s.victim.kill()
	if err != nil {
		return fmt.Errorf("kill %s: %w", s.victim.name, err)
	}
	s.killed = time.Now()
	s.tell("kill -9 of peer %s and everything on it, %d processes: %s", s.victim.name, processes,
		strings.Join(s.lost, ", "))
	return nil
}

// runningOn lists the allocations of a job that the victim runs.
func (s *story) runningOn(status *starlingv1.JobStatusResponse) []string {
	var all []string
	for _, slot := range status.GetSlots() {
		if slot.GetNode() == s.victim.name && slot.GetPhase() == "running" {
			all = append(all, slot.GetAllocation())
		}
	}
	return all
}

// ringCloses waits until the ring goes without the victim.
func (s *story) ringCloses(ctx context.Context) error {
	ring, err := s.awaitRing(ctx, len(s.fleet.agents)-1)
	if err != nil {
		return err
	}
	return s.inTime("the ring is closed: "+ring, healMax)
}

// lostRunsElsewhere waits until everything that the victim ran has another allocation, and that runs or is done. What
// was seen running and then succeeded before the kill keeps its allocation: it was not lost.
func (s *story) lostRunsElsewhere(ctx context.Context) error {
	for _, job := range []string{"service", "batch"} {
		_, err := s.await(ctx, job, func(status *starlingv1.JobStatusResponse) bool {
			for _, slot := range status.GetSlots() {
				if slot.GetPhase() != "succeeded" && slices.Contains(s.lost, slot.GetAllocation()) {
					return false
				}
			}
			return status.GetJob().GetType() == "batch" || status.GetJob().GetCounts().GetRunning() == servers
		})
		if err != nil {
			return fmt.Errorf("what %s ran of %s: %w", s.victim.name, job, err)
		}
		if job == "service" {
			if err := s.inTime("the service has all its instances again, elsewhere", healMax); err != nil {
				return err
			}
		}
	}
	s.tell("what it had not finished of the batch job runs elsewhere, too")
	return nil
}

// inTime tells something, and fails if it came too late after the kill.
func (s *story) inTime(what string, most time.Duration) error {
	took := time.Since(s.killed)
	s.tell("%s, %.2f s after the kill", what, took.Seconds())
	if took > most {
		return fmt.Errorf("that took %s, and at most %s is promised: the pulse's time to live and two seconds",
			took.Round(time.Millisecond), most)
	}
	return nil
}

// batchEnds waits for the batch job and compares its result with the plain run's.
func (s *story) batchEnds(ctx context.Context) error {
	status, err := s.await(ctx, "batch",
		func(status *starlingv1.JobStatusResponse) bool { return status.GetJob().GetFinal() })
	if err != nil {
		return err
	}
	if got := status.GetJob().GetCounts().GetSucceeded(); got != packers {
		return fmt.Errorf("batch is %s: %d of %d instances succeeded", status.GetJob().GetStatus(), got, packers)
	}
	got, err := readParts(filepath.Join(s.folder, "result"), packers)
	if err != nil {
		return err
	}
	s.tell("batch: all %d instances have succeeded", packers)
	var plain packed
	select {
	case plain = <-s.plain:
	case <-ctx.Done():
		return fmt.Errorf("the plain run has not ended: %w", ctx.Err())
	}
	if plain.err != nil {
		return fmt.Errorf("plain run: %w", plain.err)
	}
	if !maps.Equal(got, plain.sums) {
		return fmt.Errorf("the checksums of %d packages differ from those of a plain run over %d", len(got), len(plain.sums))
	}
	s.tell("batch: the checksums of all %d packages are those of a plain run", len(got))
	return nil
}

// serviceAnswered looks back on what the poller saw.
func (s *story) serviceAnswered(context.Context) error {
	answers, silence, outages := s.poller.seen()
	for _, o := range outages {
		s.tell("service: web[%d] was silent for %.2f s, then answered from %s", o.number, o.to.Sub(o.from).Seconds(), o.moved)
	}
	if silence > silenceMax {
		return fmt.Errorf("the service as a whole gave no answer for %s", silence)
	}
	if len(outages) == 0 {
		return errors.New("no instance of the service was ever silent: the kill has hit nothing")
	}
	s.tell("service: %d answers; never without an answer for longer than %d ms", answers, silence.Milliseconds())
	return nil
}

// victimReturns starts the killed peer again: it joins as a new incarnation.
func (s *story) victimReturns(ctx context.Context) error {
	begun := time.Now()
	if err := s.victim.launch(); err != nil {
		return err
	}
	ring, err := s.awaitRing(ctx, len(s.fleet.agents))
	if err != nil {
		return err
	}
	s.tell("peer %s is back after %.2f s, in a new life: %s", s.victim.name, time.Since(begun).Seconds(), ring)
	return nil
}

// awaitRing waits until the ring has that many members, each watching one and watched by one, and describes it.
func (s *story) awaitRing(ctx context.Context, members int) (string, error) {
	least := uint64(0)
	for {
		answer, err := s.client.ListPeers(ctx, &starlingv1.ListPeersRequest{MinIndex: least})
		switch {
		case ctx.Err() != nil:
			return "", fmt.Errorf("wait for a ring of %d: %w", members, ctx.Err())
		case err != nil:
			least = 0 // nobody answers yet, or nothing has changed for long
			continue
		}
		if ring := ringOf(answer.GetPeers()); len(ring) == members+1 {
			return strings.Join(ring, " → "), nil
		}
		least = answer.GetIndex() + 1
	}
}

// awaitQuorum waits until all keep the journal, so that any of them can be lost.
func (s *story) awaitQuorum(ctx context.Context) error {
	for {
		voters := 0
		answer, err := s.client.Quorum(ctx)
		for _, m := range answer.GetMembers() {
			if m.GetState() == "leader" || m.GetState() == "voter" {
				voters++
			}
		}
		if voters == len(s.fleet.agents) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for a quorum of %d: %w, %v", len(s.fleet.agents), ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ringOf walks from member to watched member, until it is back where it began; nil if not all members are on the way.
func ringOf(peers []*starlingv1.Peer) []string {
	watches := map[string]string{}
	first := ""
	for _, p := range peers {
		if p.GetState() == "member" {
			watches[p.GetPeer()] = p.GetWatches()
			first = max(first, p.GetPeer())
		}
	}
	ring := []string{first}
	for next := watches[first]; next != "" && len(ring) <= len(watches); next = watches[next] {
		ring = append(ring, next)
		if next == first {
			break
		}
	}
	if len(ring) != len(watches)+1 || ring[len(ring)-1] != first {
		return nil
	}
	return ring
}

// digestsAgree waits until all peers have published the same index, and compares their digests.
func (s *story) digestsAgree(ctx context.Context) error {
	for {
		answer, err := s.client.AllPeers(ctx)
		if err != nil {
			return err
		}
		digests, indexes := map[string]bool{}, map[uint64]bool{}
		alive := 0
		for _, p := range answer.GetPeers() {
			if !p.GetAlive() {
				continue
			}
			alive++
			digests[p.GetDigest()], indexes[p.GetJournalIndex()] = true, true
			if p.DigestAgrees != nil && !p.GetDigestAgrees() {
				return fmt.Errorf("peer %s has another value at index %d", p.GetPeer(), p.GetJournalIndex())
			}
		}
		if alive == len(s.fleet.agents) && len(indexes) == 1 && !indexes[0] {
			if len(digests) != 1 {
				return fmt.Errorf("digests differ at the same index: %q", slices.Sorted(maps.Keys(digests)))
			}
			s.tell("all %d digests are equal at index %d: %s", alive, slices.Sorted(maps.Keys(indexes))[0],
				slices.Sorted(maps.Keys(digests))[0])
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the peers to publish one index: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
