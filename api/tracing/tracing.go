// Package tracing sends traces of what users ask for, by OpenTelemetry: each entry of the journal with a request, or
// that gives an instance to a node, is one, from when it was made over its append and its fold by each peer to the
// starts that it has ordered, whichever peer does what. The entry's index gives the ids of the trace and of its first
// span, so that nothing has to be passed on.
package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"starling/api/words"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
)

// Meter is what a peer tells of its work.
type Meter interface {
	// Folded takes an entry that was folded.
	Folded(f *report.Folded, took time.Duration)
	// Appended takes an attempt to append.
	Appended(took time.Duration, err error)
	// Started takes how long the driver took to start an allocation, and its error.
	Started(id terms.AllocationID, took time.Duration, err error)
	// CheckFailed takes a check that failed.
	CheckFailed()
}

// Tracer is a meter that passes on what it is told.
type Tracer struct {
	Meter
	cluster  string
	node     terms.NodeName
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// flushTimeout is how long the last spans may take to be sent.
const flushTimeout = 2 * time.Second

// Of names whose work is told.
type Of struct {
	Cluster string
	Node    terms.NodeName
	Version string
	Log     *slog.Logger
}

// IsOn tells whether the environment names where traces go, as OpenTelemetry has it.
func IsOn() bool {
	return os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != ""
}

// New returns a tracer that sends by OTLP over gRPC, as the variables OTEL_EXPORTER_OTLP_… say.
func New(of Of, meter Meter) (*Tracer, error) {
	exporter, err := otlptracegrpc.New(context.Background())
	if err != nil {
		return nil, fmt.Errorf("send traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { of.Log.Warn("traces", "error", err) }))
	return with(of, meter, sdk.WithBatcher(exporter)), nil
}

// with returns a tracer whose spans go somewhere.
func with(of Of, meter Meter, to sdk.TracerProviderOption) *Tracer {
	provider := sdk.NewTracerProvider(to, sdk.WithIDGenerator(ids{}), sdk.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "starling"), attribute.String("service.instance.id", string(of.Node)),
		attribute.String("service.version", of.Version))))
	return &Tracer{Meter: meter, cluster: of.Cluster, node: of.Node, provider: provider,
		tracer: provider.Tracer("starling")}
}

// Close sends what was not sent yet.
func (t *Tracer) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // who does not take the last spans has none
}

// first are the ids of the first span of an entry's trace, alike on all peers.
type first struct {
	trace trace.TraceID
	span  trace.SpanID
}

func (t *Tracer) firstOf(entry terms.Index) (f first) {
	sum := sha256.Sum256(fmt.Appendf(nil, "starling %s %d", t.cluster, entry))
	copy(f.trace[:], sum[:])
	copy(f.span[:], sum[len(f.trace):])
	return f
}

// firstKey is where a context has the ids that a span is to get.
type firstKey struct{}

// ids makes ids: those that are asked for, or others.
type ids struct{}

// NewIDs implements sdk.IDGenerator.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if f, ok := ctx.Value(firstKey{}).(first); ok {
		return f.trace, f.span
	}
	var id trace.TraceID
	_, _ = rand.Read(id[:])
	return id, ids{}.NewSpanID(ctx, id)
}

// NewSpanID implements sdk.IDGenerator.
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	_, _ = rand.Read(id[:])
	return id
}

// part is a part of the work for an entry.
type part struct {
	entry    terms.Index
	name     string
	from, to time.Time
}

// tell sends a span for a part.
func (t *Tracer) tell(p part, about ...attribute.KeyValue) {
	f := t.firstOf(p.entry)
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: f.trace, SpanID: f.span, TraceFlags: trace.FlagsSampled, Remote: true}))
	_, span := t.tracer.Start(ctx, p.name, trace.WithTimestamp(p.from), trace.WithAttributes(about...))
	span.End(trace.WithTimestamp(p.to))
}

// Folded tells of the fold of an entry, and who wrote it tells of the whole.
func (t *Tracer) Folded(f *report.Folded, took time.Duration) {
	t.Meter.Folded(f, took)
	if f.Entry == nil || !isTold(f) {
		return
	}
	now := time.Now()
	t.tell(part{f.Index, "fold", now.Add(-took), now}, attribute.String("starling.node", string(t.node)))
	if f.Entry.Writer.Node() != t.node {
		return
	}
	made := time.UnixMilli(int64(f.Entry.Time))
	t.tell(part{f.Index, "append", made, now.Add(-took)})
	_, whole := t.tracer.Start(context.WithValue(context.Background(), firstKey{}, t.firstOf(f.Index)), nameOf(f),
		trace.WithNewRoot(), trace.WithTimestamp(made), trace.WithAttributes(
			attribute.Int64("starling.index", int64(f.Index)), attribute.String("starling.writer", string(f.Entry.Writer))))
	for _, result := range f.Outcome.Results {
		if result.Refused() {
			whole.SetStatus(codes.Error, result.Refusal.Reason)
		}
	}
	whole.End(trace.WithTimestamp(now))
}

// isTold tells whether an entry has a request, or an order to start something.
func isTold(f *report.Folded) bool {
	return slices.ContainsFunc(f.Entry.Commands, func(c command.Command) bool { return c.Kind() == command.KindAs }) ||
		slices.ContainsFunc(f.Outcome.Effects, func(e report.Effect) bool { return e.Kind == report.Placed })
}

// nameOf says what an entry is for: the first request in it, or else the first command.
func nameOf(f *report.Folded) string {
	for _, c := range f.Entry.Commands {
		if c.Kind() == command.KindAs {
			return words.Command(command.Plain(c))
		}
	}
	if len(f.Entry.Commands) == 0 {
		return "entry"
	}
	return words.Command(f.Entry.Commands[0])
}

// Started tells of the start of an instance, in the trace of the entry that has ordered it.
func (t *Tracer) Started(id terms.AllocationID, took time.Duration, err error) {
	t.Meter.Started(id, took, err)
	now := time.Now()
	about := []attribute.KeyValue{attribute.String("starling.instance", id.Slot.String()),
		attribute.String("starling.node", string(t.node))}
	if err != nil {
		about = append(about, attribute.String("starling.error", err.Error()))
	}
	t.tell(part{id.Order, "start " + id.Slot.String(), now.Add(-took), now}, about...)
}
