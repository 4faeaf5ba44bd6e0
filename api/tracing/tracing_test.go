package tracing

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"starling/api/metrics"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/access"
)

// TestOneTrace lets three peers tell of one entry: whoever does what, it is one trace below one span.
func TestOneTrace(t *testing.T) {
	all := tracetest.NewInMemoryExporter()
	tracers := map[terms.NodeName]*Tracer{}
	for _, node := range []terms.NodeName{"a", "b", "c"} {
		tracers[node] = with(Of{Cluster: "k", Node: node, Log: slog.New(slog.DiscardHandler)}, metrics.NewMeter(),
			sdk.WithSyncer(all))
	}
	slot := terms.SlotName{Job: "web", Task: "main"}
	submit := &command.As{Subject: access.Subject{Kind: access.OfUser, Name: "alice"},
		Command: &command.KillJob{Job: "web"}}
	folded := &report.Folded{Index: 7, Entry: &command.Entry{Writer: "b~1", Time: terms.Time(time.Now().UnixMilli()) - 50,
		Commands: []command.Command{submit}}, Outcome: report.Outcome{
		Results: []report.Result{{Refusal: facts.Refusal{Code: facts.NotFound, Reason: "no job"}}},
		Effects: []report.Effect{{Kind: report.Placed, Slot: slot, Order: 7, Node: "c"}}}}
	for _, one := range tracers {
		one.Folded(folded, time.Millisecond)
		one.Folded(&report.Folded{Index: 8, Entry: &command.Entry{Writer: "a~1", Commands: []command.Command{
			&command.TellTime{}}}}, time.Millisecond) // of what users do not ask for nothing is told
	}
	tracers["c"].Started(terms.AllocationID{Slot: slot, Order: 7}, time.Millisecond, errors.New("no such program"))
	var got []string
	first := tracers["a"].firstOf(7)
	for _, span := range all.GetSpans() {
		if span.SpanContext.TraceID() != first.trace {
			t.Errorf("%s is in trace %s, want %s", span.Name, span.SpanContext.TraceID(), first.trace)
		}
		below := "below"
		if span.SpanContext.SpanID() == first.span {
			below = "first " + span.Status.Description
		} else if span.Parent.SpanID() != first.span {
			t.Errorf("%s is below %s, want %s", span.Name, span.Parent.SpanID(), first.span)
		}
		if !span.EndTime.After(span.StartTime) {
			t.Errorf("%s took from %s to %s", span.Name, span.StartTime, span.EndTime)
		}
		got = append(got, fmt.Sprintf("%s %s", below, span.Name))
	}
	slices.Sort(got)
	want := "below append,below fold,below fold,below fold,below start web.main[0],first no job kill job web"
	if text := strings.Join(got, ","); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}
