package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"starling/api/client"
	starlingv1 "starling/api/v1"
)

// serve is the program of the service: it answers with its name until it is told to stop.
func serve(ctx context.Context) error {
	server := &http.Server{
		Addr: net.JoinHostPort("127.0.0.1", os.Getenv("STARLING_PORT_HTTP")), ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "%s on %s\n", os.Getenv("STARLING_ALLOCATION"), os.Getenv("STARLING_NODE"))
		}),
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// The figures of polling.
const (
	pollEvery = 20 * time.Millisecond
	pollMax   = 250 * time.Millisecond
	// silenceMax is how long the whole service may give no answer: two polls that had to wait in vain.
	silenceMax = 2 * pollMax
	// outageMin is the shortest silence of one instance that is told.
	outageMin = 500 * time.Millisecond
)

// poller asks every instance of the service all the time.
type poller struct {
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mu        sync.Mutex
	instances map[uint32]*instance
	answers   int
	last      time.Time
	// silence is the longest time in which no instance answered.
	silence time.Duration
	outages []outage
}

// instance is one of the service's, where it is now and when it answered last.
type instance struct {
	at   string
	node string
	last time.Time
}

// outage is a time in which one instance did not answer.
type outage struct {
	number   uint32
	from, to time.Time
	moved    string
}

// startPoller begins to follow where the instances are, and to poll them.
func startPoller(peers *client.Client, status *starlingv1.JobStatusResponse) *poller {
	ctx, cancel := context.WithCancel(context.Background())
	p := &poller{cancel: cancel, instances: map[uint32]*instance{}, last: time.Now()}
	p.place(status)
	p.workers.Go(func() { p.follow(ctx, peers, status.GetJob().GetName()) })
	for _, slot := range status.GetSlots() {
		p.workers.Go(func() { p.poll(ctx, slot.GetNumber()) })
	}
	return p
}

// follow keeps up with where the instances are, for as long as a peer answers.
func (p *poller) follow(ctx context.Context, peers *client.Client, job string) {
	for ctx.Err() == nil {
		question := &starlingv1.JobStatusRequest{Job: job}
		_ = peers.FollowJob(ctx, question, func(status *starlingv1.JobStatusResponse) (bool, error) {
			p.place(status)
			return false, nil
		}) // a peer has died: ask again, another answers
	}
}

// place notes where the running instances are.
func (p *poller) place(status *starlingv1.JobStatusResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, slot := range status.GetSlots() {
		if slot.GetPhase() != "running" || len(slot.GetPorts()) == 0 {
			continue
		}
		known := p.instances[slot.GetNumber()]
		if known == nil {
			known = &instance{last: time.Now()}
			p.instances[slot.GetNumber()] = known
		}
		known.at, known.node = fmt.Sprintf("http://127.0.0.1:%d/", slot.GetPorts()[0].GetNumber()), slot.GetNode()
	}
}

// poll asks one instance again and again, wherever it is.
func (p *poller) poll(ctx context.Context, number uint32) {
	asking := &http.Client{Timeout: pollMax}
	defer asking.CloseIdleConnections()
	pause := time.NewTicker(pollEvery)
	defer pause.Stop()
	for {
		p.mu.Lock()
		at := p.instances[number].at
		p.mu.Unlock()
		if answers(ctx, asking, at, fmt.Sprintf("[%d]#", number)) {
			p.answered(number)
		}
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// answers tells whether the right instance answers.
func answers(ctx context.Context, asking *http.Client, at, want string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return false
	}
	response, err := asking.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return err == nil && response.StatusCode == http.StatusOK && strings.Contains(string(text), want)
}

// answered notes an answer, and the silence before it.
func (p *poller) answered(number uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.answers++
	p.silence = max(p.silence, now.Sub(p.last))
	p.last = now
	one := p.instances[number]
	if now.Sub(one.last) > outageMin {
		p.outages = append(p.outages, outage{number, one.last, now, one.node})
	}
	one.last = now
}

// allAnswer waits until every instance has answered, and forgets the time before.
func (p *poller) allAnswer(ctx context.Context) error {
	for {
		p.mu.Lock()
		ready := p.answers > 0
		for _, one := range p.instances {
			ready = ready && time.Since(one.last) < outageMin
		}
		if ready && p.answers >= servers {
			p.silence, p.outages = 0, nil
			p.mu.Unlock()
			return nil
		}
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return fmt.Errorf("the service does not answer: %w", ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

// seen returns what was seen so far.
func (p *poller) seen() (answers int, silence time.Duration, outages []outage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answers, max(p.silence, time.Since(p.last)), slices.Clone(p.outages)
}

// stop ends the polling.
func (p *poller) stop() {
	p.cancel()
	p.workers.Wait()
}
