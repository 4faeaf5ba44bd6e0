package kill

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/terms"
)

// web is an instance of a service that answers over HTTP with the version that it was given. A version called broken
// answers, but says of itself that it is not well. Told to end, it answers what it has begun and takes nothing new from
// that moment on.
func web(version string) int {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, version) })
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		if version == "broken" {
			http.Error(w, "not well", http.StatusInternalServerError)
		}
	})
	server := &http.Server{Addr: "127.0.0.1:" + os.Getenv("STARLING_PORT_HTTP"), Handler: mux,
		ReadHeaderTimeout: time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		soon, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		ended <- server.Shutdown(soon)
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	if err := <-ended; err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	return 0
}

// webJob is a service of this binary in a version.
func (tr *trial) webJob(version string) *terms.Job {
	spec := tr.job("web", terms.Stateless, webRole, 4)
	task := &spec.Tasks[0]
	task.Command[2] = version
	task.Ports = []terms.PortRequest{{Name: "http"}}
	task.Checks = []terms.Check{{Kind: terms.CheckHTTP, Port: "http", Path: "/health", IntervalMillis: 100,
		TimeoutMillis: 1000, FailuresMax: 50}}
	task.Restart.AttemptsMax = 3
	task.StopGraceMillis = 5000
	spec.Update = terms.UpdatePolicy{
		BatchSize: 1, MinHealthyMillis: 200, HealthyDeadlineMillis: 10_000, ProgressDeadlineMillis: 60_000, Rollback: true,
	}
	return spec
}

// change brings a new version of a job.
func (tr *trial) change(spec *terms.Job) {
	tr.Helper()
	api := tr.asked()
	status, err := api.JobStatus(tr.soon(), &starlingv1.JobStatusRequest{Job: string(spec.Name)})
	tr.must(err)
	_, err = api.SubmitJob(tr.soon(), spec, status.GetJob().GetVersion())
	tr.must(err)
	tr.written = api.Seen()
}

// awaitUpdate waits until the update of a job has ended, and wants it to have ended in a state.
func (tr *trial) awaitUpdate(job, want string) {
	tr.Helper()
	var update *starlingv1.Update
	err := tr.asked().FollowJob(tr.soon(), &starlingv1.JobStatusRequest{Job: job},
		func(status *starlingv1.JobStatusResponse) (bool, error) {
			update = status.GetJob().GetUpdate()
			return update.GetFinal(), nil
		})
	tr.must(err)
	if update.GetState() != want {
		tr.Fatalf("the update of %s ended %s (%s), want %s", job, update.GetState(), update.GetReason(), want)
	}
}

// addressKept is how long a client goes on with an address that it has looked up: as long as DNS allows.
const addressKept = time.Second

// load sends requests to a service all the time, as plain clients do: to instances that were ready when they were
// listed, also when they are not any more, and never to a second one.
type load struct {
	mu sync.Mutex
	// endpoints are the addresses, with the moment at which each was not listed any more.
	endpoints map[string]time.Time
	answers   map[string]int
	failed    []error
}

// startLoad begins to follow the service, and to send; the returned function ends that and waits.
func (tr *trial) startLoad(job string) (*load, func()) {
	l := &load{endpoints: map[string]time.Time{}, answers: map[string]int{}}
	ctx, cancel := context.WithCancel(tr.Context())
	var workers sync.WaitGroup
	api := tr.asked()
	workers.Go(func() {
		for ctx.Err() == nil {
			_ = api.FollowJob(ctx, &starlingv1.JobStatusRequest{Job: job},
				func(status *starlingv1.JobStatusResponse) (bool, error) {
					l.learn(status.GetSlots())
					return false, nil
				}) // the peer may be frozen: another answers
		}
	})
	for n := range 4 {
		workers.Go(func() { l.send(ctx, n) })
	}
	return l, func() {
		cancel()
		workers.Wait()
	}
}

func (l *load) learn(slots []*starlingv1.Slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	listed := map[string]time.Time{}
	for _, slot := range slots {
		if slot.GetPhase() == "running" && slot.GetHealth() != "starting" && len(slot.GetPorts()) > 0 {
			listed[fmt.Sprintf("http://127.0.0.1:%d/", slot.GetPorts()[0].GetNumber())] = time.Time{}
		}
	}
	for endpoint, gone := range l.endpoints {
		if _, still := listed[endpoint]; still {
			continue
		}
		if gone.IsZero() {
			gone = time.Now()
		}
		listed[endpoint] = gone
	}
	l.endpoints = listed
}

// targets returns the addresses that a client may still have.
func (l *load) targets() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.endpoints, func(_ string,
		gone time.Time) bool {
		return !gone.IsZero() && time.Since(gone) >= addressKept
	})
	return slices.Sorted(maps.Keys(l.endpoints))
}

// send asks one instance after the other, without a pause but for breath.
func (l *load) send(ctx context.Context, start int) {
	// A connection for each request: one that is kept would be closed in peace.
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for n := start; ctx.Err() == nil; n++ {
		if all := l.targets(); len(all) > 0 {
			l.ask(ctx, client, all[n%len(all)])
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// ask sends one request.
func (l *load) ask(ctx context.Context, client *http.Client, url string) {
	answer, err := get(ctx, client, url)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.answers[answer]++
	case ctx.Err() == nil:
		l.failed = append(l.failed, err)
	}
}

func get(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, response.Status)
	}
	return string(text), err
}

// want holds what was seen against what must be: no request failed, and these versions answered.
func (l *load) want(t *testing.T, versions ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("answers by version: %v", l.answers)
	if len(l.failed) > 0 {
		t.Errorf("%d requests failed, the first: %v", len(l.failed), l.failed[0])
	}
	for _, version := range versions {
		if l.answers[version] == 0 {
			t.Errorf("no answer of version %s: %v", version, l.answers)
		}
	}
}

// TestAnUpdateLosesNoRequest rolls a service from one version to another under load, and then to one that is not well,
// which is stopped by the budget of failures and rolled back.
func TestAnUpdateLosesNoRequest(t *testing.T) {
	t.Parallel()
	tr := begin(t, 3*time.Second)
	tr.submit(tr.webJob("one"))
	tr.awaitUpdate("web", "SUCCEEDED")
	l, stop := tr.startLoad("web")
	tr.change(tr.webJob("two"))
	tr.awaitUpdate("web", "SUCCEEDED")
	tr.change(tr.webJob("broken"))
	tr.awaitUpdate("web", "ROLLED_BACK")
	tr.wantTasks(tr.awaitRunning(tr.Agents[0], "web"))
	stop()
	l.want(t, "one", "two")
	if count := l.answers["broken"]; count > 0 {
		t.Errorf("%d answers of a version that was never ready", count)
	}
	for _, slot := range tr.status(tr.Agents[1], "web").GetSlots() {
		if slot.GetVersion() != 4 {
			t.Errorf("%s has version %d, want the copy of the second, which is 4", slot.GetAllocation(), slot.GetVersion())
		}
	}
	tr.loseRequests()
	tr.wantWhole()
}

// loseRequests takes the delay away from the service, which replaces nothing, and updates it once more: the same
// clients must see it.
func (tr *trial) loseRequests() {
	tr.Helper()
	hasty := func(version string) *terms.Job {
		spec := tr.webJob(version)
		spec.Tasks[0].StopDelayMillis = terms.StopDelayLeast
		return spec
	}
	before := tr.wantTasks(tr.awaitRunning(tr.Agents[0], "web"))
	tr.change(hasty("two"))
	tr.awaitUpdate("web", "SUCCEEDED")
	if now := tr.wantTasks(tr.awaitRunning(tr.Agents[0], "web")); !maps.Equal(now, before) {
		tr.Errorf("another delay replaced instances: these run: %v, these ran: %v", now, before)
	}
	l, stop := tr.startLoad("web")
	tr.change(hasty("three"))
	tr.awaitUpdate("web", "SUCCEEDED")
	stop()
	if len(l.failed) == 0 {
		tr.Error("no request failed although the instances had no delay: these clients would not see what they are there for")
	}
}

// TestAFrozenPeerReturns freezes a peer, not its tasks, for longer than its pulse lives: its instance is unknown,
// another takes its place, and when the peer goes on the original stays, as the policy says.
func TestAFrozenPeerReturns(t *testing.T) {
	t.Parallel()
	for _, keep := range []terms.Survivor{terms.KeepOriginal, terms.KeepReplacement} {
		t.Run(keep.String(), func(t *testing.T) {
			t.Parallel()
			tr := begin(t, 2*time.Second)
			spec := tr.job("web", terms.Stateless, serverRole, 3)
			spec.Tasks[0].Disconnect = terms.Disconnect{LostAfterMillis: 120_000, Keep: keep}
			spec.Tasks[0].Reschedule = terms.Reschedule{AttemptsMax: terms.RestartsUnlimited}
			tr.submit(spec)
			before := tr.awaitRunning(tr.Agents[0], "web")
			frozen := tr.memberThat(false)
			other := tr.others(frozen)[0]
			original := allocationOn(before, frozen.Node)
			tr.must(frozen.Pause())
			tr.awaitPeer(other, frozen, "has left", hasLeft)
			replacement := ""
			tr.eventually("another takes its place", func() string {
				for _, slot := range tr.status(other, "web").GetSlots() {
					if slot.GetAllocation() != original && slot.GetPhase() == "running" &&
						strings.HasPrefix(slot.GetAllocation(), slotOf(original)) {
						replacement = slot.GetAllocation()
						return ""
					}
				}
				return "nothing runs in its place"
			})
			tr.must(frozen.Resume())
			survivor := original
			if keep == terms.KeepReplacement {
				survivor = replacement
			}
			tr.eventually("one of the two stays: "+survivor, func() string {
				found := tr.processes()
				_, kept := found[survivor]
				if len(found) != 3 || !kept {
					return fmt.Sprintf("these run: %v", found)
				}
				return ""
			})
			tr.awaitPeer(other, frozen, "is a member again", isMember)
			tr.wantTasks(tr.awaitRunning(other, "web"))
			tr.wantWhole()
		})
	}
}

// allocationOn returns the allocation that a node runs.
func allocationOn(slots []*starlingv1.Slot, node string) string {
	for _, slot := range slots {
		if slot.GetNode() == node {
			return slot.GetAllocation()
		}
	}
	return ""
}

// slotOf returns the slot of an allocation, with what stands before the order.
func slotOf(allocation string) string { return allocation[:strings.IndexByte(allocation, '#')+1] }
