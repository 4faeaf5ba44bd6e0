package client_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
)

// mortal is a peer that sends so many messages of a stream and dies then.
type mortal struct {
	starlingv1connect.UnimplementedStarlingHandler
	messages int
	// outputs are those of allocations that follow each other.
	outputs []string
}

func (m mortal) TailJournal(_ context.Context, request *starlingv1.TailJournalRequest,
	stream *connect.ServerStream[starlingv1.TailJournalResponse]) error {
	first := max(request.GetFrom(), 1)
	for index := first; index <= 9; index++ {
		if int(index-first) == m.messages {
			panic(http.ErrAbortHandler)
		}
		if err := stream.Send(&starlingv1.TailJournalResponse{Entry: &starlingv1.JournalEntry{Index: index}}); err != nil {
			return err
		}
	}
	return nil
}

func (m mortal) Logs(_ context.Context, request *starlingv1.LogsRequest,
	stream *connect.ServerStream[starlingv1.LogsResponse]) error {
	names := []string{"web.main[0]#1", "web.main[0]#2"}
	sent := 0
	for i, name := range names {
		if request.GetAllocation() != "" && request.GetAllocation() != name {
			continue
		}
		pieces := []*starlingv1.LogsResponse{{Allocation: name}}
		for _, line := range strings.SplitAfter(m.outputs[i], "\n") {
			pieces = append(pieces, &starlingv1.LogsResponse{Data: []byte(line)})
		}
		for _, piece := range pieces {
			if sent++; sent > m.messages {
				panic(http.ErrAbortHandler)
			}
			if err := stream.Send(piece); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestTailJournalGoesOn follows the journal at peers of which the first dies.
func TestTailJournalGoesOn(t *testing.T) {
	c, ctx := ask(t, serve(t, mortal{messages: 4}), serve(t, mortal{messages: 99}))
	var got []uint64
	err := c.TailJournal(ctx, &starlingv1.TailJournalRequest{Follow: true},
		func(answer *starlingv1.TailJournalResponse) error {
			got = append(got, answer.GetEntry().GetIndex())
			return nil
		})
	if want := []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v (%v)", got, want, err)
	}
}

// TestLogsGoOn follows the output of an instance at peers of which the first dies after each number of messages.
func TestLogsGoOn(t *testing.T) {
	outputs := []string{"one\ntwo\n", "three\nfour\nfive\n"}
	for messages := 1; messages < 10; messages++ {
		c, ctx := ask(t, serve(t, mortal{messages: messages, outputs: outputs}),
			serve(t, mortal{messages: 99, outputs: outputs}))
		if got, err := followed(ctx, c); got != strings.Join(outputs, "") || err != nil {
			t.Errorf("%d messages: got %q (%v)", messages, got, err)
		}
	}
	c, ctx := ask(t, serve(t, mortal{messages: 3, outputs: outputs}),
		serve(t, mortal{messages: 99, outputs: []string{"two\nthree\nfour\n", ""}}))
	if got, err := followed(ctx, c); got != "one\ntwo\n" || err == nil ||
		!strings.Contains(err.Error(), "begin any more") {
		t.Errorf("what is not kept any more: got %q (%v)", got, err)
	}
}

func followed(ctx context.Context, c *client.Client) (text string, err error) {
	err = c.Logs(ctx, &starlingv1.LogsRequest{Job: "web", Follow: true}, func(piece *starlingv1.LogsResponse) error {
		text += string(piece.GetData())
		return nil
	})
	return text, err
}

// TestBrokenStreamNamesItsPeer asks two peers, of which one was asked and died.
func TestBrokenStreamNamesItsPeer(t *testing.T) {
	first, second := serve(t, mortal{messages: 4}), serve(t, mortal{})
	c, ctx := ask(t, first, second)
	err := c.TailJournal(ctx, &starlingv1.TailJournalRequest{}, func(*starlingv1.TailJournalResponse) error { return nil })
	if err == nil || !strings.Contains(err.Error(), first) || strings.Contains(err.Error(), second) {
		t.Errorf("got %v, want it to name %s alone", err, first)
	}
}
