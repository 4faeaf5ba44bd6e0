package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"starling/api/chronicle"
	"starling/api/difference"
	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/replica/report"
	"starling/terms"
)

// Archive is the past of a peer. Errors with a method Refusal tell that it does not have what is asked for.
type Archive interface {
	difference.Archive
	// IndexAt returns the last index of which the value's time is not after a time, 0 if nothing had happened yet. Now
	// is the present time.
	IndexAt(ctx context.Context, at, now time.Time) (terms.Index, error)
	// Oldest returns the oldest index from which all entries up to another are there.
	Oldest(ctx context.Context, to terms.Index) (terms.Index, error)
	// Generation tells how often all that was kept was put aside.
	Generation() int64
	// Export writes the value at an index and the records behind it up to another, as one file.
	Export(ctx context.Context, from, to terms.Index, w io.Writer) error
}

// moment is what a request asks about: an index, or a time if that is not zero.
type moment struct {
	index terms.Index
	at    time.Time
}

// momentOf reads "4711", or a time as RFC 3339 has it.
func momentOf(text, field string) (moment, error) {
	if index, err := strconv.ParseUint(text, 10, 63); err == nil {
		return moment{index: terms.Index(index)}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return moment{}, invalid("the request", terms.Problem{Path: field,
			Reason: fmt.Sprintf("must be an index such as 4711, or a time such as 2006-01-02T15:04:05Z, is %q", text)})
	}
	return moment{at: at}, nil
}

// momentKey finds the moment of a request about the past.
type momentKey struct{}

// isPast tells whether a request is about the past.
func isPast(ctx context.Context) bool { return ctx.Value(momentKey{}) != nil }

// pasts lets requests be about the past, if they say so in the header wire.AtHeader.
type pasts struct{}

// WrapUnary does so for procedures with one answer.
func (pasts) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		ctx, err := withMoment(ctx, request.Header(), request.Spec())
		if err != nil {
			return nil, err
		}
		return next(ctx, request)
	}
}

// WrapStreamingHandler does so for procedures with a stream of answers.
func (pasts) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		ctx, err := withMoment(ctx, conn.RequestHeader(), conn.Spec())
		if err != nil {
			return err
		}
		return next(ctx, conn)
	}
}

// WrapStreamingClient does nothing: this is a server.
func (pasts) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// withMoment adds the moment that a request asks about. Only what reads the value knows of a past.
func withMoment(ctx context.Context, header http.Header, spec connect.Spec) (context.Context, error) {
	text := header.Get(wire.AtHeader)
	if text == "" {
		return ctx, nil
	}
	switch {
	case spec.IdempotencyLevel != connect.IdempotencyNoSideEffects:
		return ctx, &wire.Failure{Code: wire.Invalid, Reason: "the past cannot be changed: leave out --at"}
	case spec.Procedure == starlingv1connect.StarlingLogsProcedure,
		spec.Procedure == starlingv1connect.StarlingOutputProcedure,
		spec.Procedure == starlingv1connect.StarlingFilesProcedure,
		spec.Procedure == starlingv1connect.StarlingNodeStatsProcedure,
		spec.Procedure == starlingv1connect.StarlingInstanceStatsProcedure,
		spec.Procedure == starlingv1connect.StarlingListSessionsProcedure,
		spec.Procedure == starlingv1connect.StarlingInfoProcedure:
		return ctx, &wire.Failure{Code: wire.Invalid,
			Reason: "this is not part of the value that is archived: leave out --at"}
	}
	m, err := momentOf(text, wire.AtHeader)
	return context.WithValue(ctx, momentKey{}, m), err
}

// past returns the value of the past that a request asks about.
func (s *server) past(ctx context.Context, m moment) (*cluster.State, error) {
	index, archive, err := s.indexOf(ctx, m)
	if err != nil {
		return nil, err
	}
	if index == 0 && !m.at.IsZero() {
		return nil, &wire.Failure{Code: wire.NotFound, Decided: true, Reason: fmt.Sprintf(
			"nothing had happened yet at %s: ask for a later time", m.at.UTC().Format(time.RFC3339))}
	}
	state, err := archive.At(ctx, index)
	return state, archived(err)
}

// indexOf returns the index of a moment.
func (s *server) indexOf(ctx context.Context, m moment) (terms.Index, Archive, error) {
	archive := s.backend.Archive()
	if archive == nil {
		return 0, nil, &wire.Failure{Code: wire.NotFound, Decided: true, Reason: "this peer keeps no archive: " +
			"start the agent with archive.bytes, and ask for what comes from then on"}
	}
	if m.at.IsZero() {
		return m.index, archive, nil
	}
	index, err := archive.IndexAt(ctx, m.at, time.Now())
	return index, archive, archived(err)
}

// archived returns what an error of an archive means to who asked.
func archived(err error) error {
	var refused interface {
		error
		Refusal() facts.Refusal
	}
	if errors.As(err, &refused) {
		return wire.Refused(0, refused.Refusal())
	}
	return err
}

// stretch returns the indexes of two moments between which no entry is missing: from "" or a time before everything is
// the oldest, to "" the newest.
func (s *server) stretch(ctx context.Context, from, to string) (first, last terms.Index, archive Archive, err error) {
	newest, err := s.stateAt(ctx, 0)
	if err != nil {
		return 0, 0, nil, err
	}
	if last, archive, err = s.indexOf(ctx, moment{index: newest.Index}); err == nil && to != "" {
		last, err = s.indexIn(ctx, to, "to")
	}
	if err != nil {
		return 0, 0, nil, err
	}
	if from != "" {
		first, err = s.indexIn(ctx, from, "from")
	}
	switch {
	case err != nil:
	case first == 0:
		first, err = archive.Oldest(ctx, last)
		err = archived(err)
	case first > last:
		err = invalid("the request", terms.Problem{Path: "from",
			Reason: fmt.Sprintf("must not be after what it goes to: it is index %d, and that %d", first, last)})
	}
	return first, last, archive, err
}

// indexIn reads a moment of a request and returns its index.
func (s *server) indexIn(ctx context.Context, text, field string) (terms.Index, error) {
	m, err := momentOf(text, field)
	if err != nil {
		return 0, err
	}
	index, _, err := s.indexOf(ctx, m)
	return index, err
}

// Diff tells what changed from one moment to another.
func (s *server) Diff(ctx context.Context, request *starlingv1.DiffRequest) (*starlingv1.DiffResponse, error) {
	if request.GetFrom() == "" {
		return nil, invalid("the request", terms.Problem{Path: "from", Reason: "must say from which moment on"})
	}
	from, to, archive, err := s.stretch(ctx, request.GetFrom(), request.GetTo())
	if err != nil {
		return nil, err
	}
	place, err := s.walking.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer place.Done()
	answer, err := difference.Of(ctx, archive, from, to)
	return answer, archived(err)
}

// Blame tells all that happened to a job.
func (s *server) Blame(ctx context.Context, request *starlingv1.BlameRequest,
	stream *connect.ServerStream[starlingv1.TailJournalResponse]) error {
	if request.GetJob() == "" {
		return invalid("the request", terms.Problem{Path: "job", Reason: "must not be empty"})
	}
	from, to, archive, err := s.stretch(ctx, request.GetSince(), "")
	if err != nil {
		return err
	}
	place, err := s.walking.Take(ctx)
	if err != nil {
		return err
	}
	defer place.Done()
	target := chronicle.Target{Job: terms.JobName(request.GetJob()), Task: terms.TaskName(request.GetTask()), Number: -1}
	if request.Number != nil {
		target.Number = int64(request.GetNumber())
	}
	found, known, sees := false, target.Task == "", s.seer(ctx)
	err = archive.Walk(ctx, from, to, func(s *cluster.State, f *report.Folded) error {
		part, ok := target.Part(f, sees)
		if known = known || ok && target.In(s); !ok || !known {
			return nil // what happened to the job is not yet about this task
		}
		found = true
		piece := &starlingv1.TailJournalResponse{Index: uint64(f.Index), Entry: wire.Entry(&part)}
		return place.Aside(ctx, func() error { return stream.Send(piece) })
	})
	if err == nil && !found {
		err = &wire.Failure{Code: wire.NotFound, Index: to, Decided: true, Reason: fmt.Sprintf(
			"nothing happened to %s from index %d to %d: `starling --at %d ps --all` lists the jobs of then", target.String(), from,
			to, from)}
	}
	return archived(err)
}

// Usage tells what was held, and for how long.
func (s *server) Usage(ctx context.Context, request *starlingv1.UsageRequest) (*starlingv1.UsageResponse, error) {
	for _, by := range request.GetBy() {
		if !slices.Contains(chronicle.Groupings(), by) {
			return nil, invalid("the request", terms.Problem{Path: "by", Reason: fmt.Sprintf("must be of %s, is %q",
				strings.Join(chronicle.Groupings(), ", "), by)})
		}
	}
	from, to, archive, err := s.stretch(ctx, request.GetSince(), request.GetUntil())
	if err != nil {
		return nil, err
	}
	place, err := s.walking.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer place.Done()
	first, err := archive.At(ctx, from)
	if err != nil {
		return nil, archived(err)
	}
	p := chronicle.Period{From: from, To: to, Since: first.Time, Until: terms.Time(time.Now().UnixMilli())}
	for text, into := range map[string]*terms.Time{request.GetSince(): &p.Since, request.GetUntil(): &p.Until} {
		if m, err := momentOf(text, "since"); err == nil && !m.at.IsZero() {
			*into = terms.Time(m.at.UnixMilli())
		}
	}
	if m, err := momentOf(request.GetUntil(), "until"); err == nil && m.at.IsZero() {
		last, err := archive.At(ctx, to)
		if err != nil {
			return nil, archived(err)
		}
		p.Until = last.Time
	}
	rows, err := chronicle.Usage(ctx, archive, request.GetBy(), p)
	if err != nil {
		return nil, archived(err)
	}
	answer := &starlingv1.UsageResponse{Since: timestamp(p.Since), Until: timestamp(p.Until)}
	for _, row := range rows {
		m := &starlingv1.UsageRow{Keys: row.Keys, Allocations: row.Allocations, CpuHours: row.CPU, MemoryGibHours: row.Memory}
		for _, kind := range row.Kinds() {
			m.Devices = append(m.Devices, &starlingv1.DeviceHours{Kind: kind, Hours: row.Devices[kind]})
		}
		answer.Rows = append(answer.Rows, m)
	}
	return answer, nil
}

// Export writes the value at an index and the entries behind it as one file.
func (s *server) Export(ctx context.Context, request *starlingv1.ExportRequest,
	stream *connect.ServerStream[starlingv1.ExportResponse]) error {
	from, to, archive, err := s.stretch(ctx, request.GetFrom(), request.GetTo())
	if err != nil {
		return err
	}
	place, err := s.walking.Take(ctx)
	if err != nil {
		return err
	}
	defer place.Done()
	if last := terms.Index(request.GetLast()); last > 0 && to > last {
		from = max(from, to-last)
	}
	if err := stream.Send(&starlingv1.ExportResponse{From: uint64(from), To: uint64(to)}); err != nil {
		return err
	}
	pieces := bufio.NewWriterSize(sender(func(data []byte) error {
		return place.Aside(ctx, func() error { return stream.Send(&starlingv1.ExportResponse{Data: data}) })
	}), chunkBytes)
	err = archive.Export(ctx, from, to, pieces)
	if err == nil {
		err = pieces.Flush()
	}
	return archived(err)
}

// sender sends what is written.
type sender func([]byte) error

// Write implements io.Writer.
func (s sender) Write(data []byte) (int, error) {
	for piece := range slices.Chunk(data, chunkBytes) {
		if err := s(piece); err != nil {
			return 0, err
		}
	}
	return len(data), nil
}
