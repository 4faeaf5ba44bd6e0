package metrics

import (
	"context"
	"path"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"starling/cluster/facts"
	"starling/replica/report"
	"starling/terms"
)

// Meter counts what a peer does and how long that takes. It is safe for concurrent use.
type Meter struct {
	registry *prometheus.Registry
	table    []metric

	entries, refusals, placements, starts, ends, restarts, reschedules, preemptions, unhealthy *prometheus.CounterVec
	appendFailures, checkFailures, requests                                                    *prometheus.CounterVec
	folds, appends, startTimes, requestTimes                                                   *prometheus.HistogramVec
}

// NewMeter returns a meter that has counted nothing.
func NewMeter() *Meter {
	m := &Meter{registry: prometheus.NewRegistry()}
	m.entries = m.counter("starling_peer_folded_entries_total", "Entries of the journal that this peer has folded, by state: "+
		"taken, or dropped as a whole.", "state")
	m.refusals = m.counter("starling_peer_folded_refusals_total", "Commands in entries that were refused, by code.", "code")
	m.placements = m.counter("starling_peer_folded_placements_total", "Instances that were given to a node.")
	m.starts = m.counter("starling_peer_folded_starts_total", "Instances that began to run.")
	m.ends = m.counter("starling_peer_folded_ends_total", "Instances that ended, by reason: succeeded with exit status 0, exited "+
		"with another.", "reason")
	m.restarts = m.counter("starling_peer_folded_restarts_total", "Instances that were started again on their node after a failure.")
	m.reschedules = m.counter("starling_peer_folded_reschedules_total", "Instances that were to find another node after a failure.")
	m.preemptions = m.counter("starling_peer_folded_preemptions_total", "Instances that were told to give way to other work.")
	m.unhealthy = m.counter("starling_peer_folded_unhealthy_total", "Instances that were not healthy in time.")
	m.folds = m.histogram("starling_peer_fold_seconds", "Time to fold an entry.",
		prometheus.ExponentialBuckets(1e-5, 4, 9))
	m.appends = m.histogram("starling_peer_append_seconds", "Time until the journal had taken an entry of this peer, without "+
		"attempts that failed.", prometheus.ExponentialBuckets(0.001, 2, 13))
	m.appendFailures = m.counter("starling_peer_append_failures_total", "Attempts of this peer to append that failed; it tries again.")
	m.startTimes = m.histogram("starling_peer_start_seconds", "Time to start an instance on this peer's node, once all that it "+
		"needs is there.", prometheus.ExponentialBuckets(0.001, 4, 9))
	m.checkFailures = m.counter("starling_peer_check_failures_total", "Checks of instances on this peer's node that failed, "+
		"tolerated failures included.")
	m.requests = m.counter("starling_peer_requests_total", "Requests that this peer's API has answered, by method of the API and "+
		"code of gRPC (ok, invalid_argument, ...); without those that it could not read.", "method", "code")
	m.requestTimes = m.histogram("starling_peer_request_seconds", "Time to answer a request, by method; without streams.",
		[]float64{0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 30}, "method")
	m.startAtZero()
	return m
}

// startAtZero gives each series whose labels are known a value, so that what happens first is seen as a rise.
func (m *Meter) startAtZero() {
	for _, state := range []string{entryTaken, entryDropped} {
		m.entries.WithLabelValues(state)
	}
	for code := facts.OK + 1; code <= facts.Unavailable; code++ {
		m.refusals.WithLabelValues(code.String())
	}
	m.ends.WithLabelValues(endSucceeded)
	for ending := facts.NotEnded + 1; ending < facts.EndingCount; ending++ {
		m.ends.WithLabelValues(ending.String())
	}
	for _, one := range []*prometheus.CounterVec{m.placements, m.starts, m.restarts, m.reschedules, m.preemptions,
		m.unhealthy, m.appendFailures, m.checkFailures} {
		one.WithLabelValues()
	}
	m.folds.WithLabelValues()
	m.appends.WithLabelValues()
	m.startTimes.WithLabelValues()
}

func (m *Meter) counter(name, help string, labels ...string) *prometheus.CounterVec {
	m.table = append(m.table, metric{name: name, help: help, labels: labels})
	made := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(made)
	return made
}

func (m *Meter) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	m.table = append(m.table, metric{name: name, help: help, labels: labels})
	made := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(made)
	return made
}

// Values of labels that are not named elsewhere.
const (
	entryTaken   = "taken"
	entryDropped = "dropped"
	endSucceeded = "succeeded"
	codeOK       = "ok"
)

// Folded counts an entry and what it did.
func (m *Meter) Folded(f *report.Folded, took time.Duration) {
	m.folds.WithLabelValues().Observe(took.Seconds())
	if f.Outcome.Dropped != "" {
		m.entries.WithLabelValues(entryDropped).Inc()
		return
	}
	m.entries.WithLabelValues(entryTaken).Inc()
	for _, result := range f.Outcome.Results {
		if result.Refused() {
			m.refusals.WithLabelValues(result.Refusal.Code.String()).Inc()
		}
	}
	counts := &f.Outcome.Counts
	add(m.placements, counts.Placed)
	add(m.starts, counts.Started)
	add(m.restarts, counts.Restarted)
	add(m.reschedules, counts.Rescheduled)
	add(m.preemptions, counts.Preempted)
	add(m.unhealthy, counts.Unhealthy)
	add(m.ends, counts.Succeeded, endSucceeded)
	for ending, count := range counts.Ended {
		if count > 0 {
			add(m.ends, count, facts.Ending(ending).String())
		}
	}
}

func add(to *prometheus.CounterVec, count uint32, labels ...string) {
	to.WithLabelValues(labels...).Add(float64(count))
}

// Appended notes an attempt to append.
func (m *Meter) Appended(took time.Duration, err error) {
	if err != nil {
		add(m.appendFailures, 1)
		return
	}
	m.appends.WithLabelValues().Observe(took.Seconds())
}

// Started observes a start.
func (m *Meter) Started(_ terms.AllocationID, took time.Duration, err error) {
	if err == nil {
		m.startTimes.WithLabelValues().Observe(took.Seconds())
	}
}

// CheckFailed counts a check that failed.
func (m *Meter) CheckFailed() { add(m.checkFailures, 1) }

// answered counts a request.
func (m *Meter) answered(spec connect.Spec, err error) (method string) {
	method, code := path.Base(spec.Procedure), codeOK
	if err != nil {
		code = connect.CodeOf(err).String()
	}
	add(m.requests, 1, method, code)
	return method
}

// WrapUnary counts and times procedures with one answer.
func (m *Meter) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		began := time.Now()
		answer, err := next(ctx, request)
		method := m.answered(request.Spec(), err)
		m.requestTimes.WithLabelValues(method).Observe(time.Since(began).Seconds())
		return answer, err
	}
}

// WrapStreamingHandler counts procedures with a stream of answers, when it ends.
func (m *Meter) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		err := next(ctx, conn)
		m.answered(conn.Spec(), err)
		return err
	}
}

// WrapStreamingClient does nothing: this is a server.
func (m *Meter) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}
