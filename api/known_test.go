package api

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/command"
)

// TestWatchTellsWhatDiffers goes from one moment to another, in both directions, from the past to the present, and by
// kinds: what is known and what differs is what is there.
func TestWatchTellsWhatDiffers(t *testing.T) {
	a, b := pair()
	a.add(a.self, &command.SubmitJob{Spec: *jobOn("web", 3, "a")}, &command.SubmitJob{Spec: *jobOn("gone", 2, "b")})
	early := a.state.Copy()
	spec := *jobOn("web", 2, "a")
	spec.Tasks[0].Command = []string{"other"}
	a.add(a.self, &command.SubmitJob{Spec: spec, Against: 1}, &command.SubmitJob{Spec: *jobOn("new", 2, "b")})
	b.volunteer("10.0.0.2:7070")
	a.add("c~1", &command.PrepareJoin{Joiner: "c~1", Attempt: 1})
	a.archive = &pastOf{early: early, late: a.state.Copy()}
	address, now := a.serve(t), uint64(a.state.Index)
	for _, c := range []struct {
		at    string
		index uint64
		known uint64
		kinds []string
	}{
		{fmt.Sprint(now), now, uint64(early.Index), nil},
		{fmt.Sprint(early.Index), uint64(early.Index), now, nil},
		{fmt.Sprint(early.Index), uint64(early.Index), now, []string{"job"}},
		{fmt.Sprint(now), now, now, nil},
		{"", now, uint64(early.Index), nil},
	} {
		there := client.NewAt([]string{address}, c.at)
		before := client.NewAt([]string{address}, fmt.Sprint(c.known))
		want, got := things(t, there, &starlingv1.WatchRequest{Kinds: c.kinds, Once: true}, nil),
			things(t, before, &starlingv1.WatchRequest{Kinds: c.kinds, Once: true}, nil)
		told := 0
		got = things(t, there, &starlingv1.WatchRequest{Kinds: c.kinds, Once: true, Known: &c.known}, got, &told)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("from %d to %q: got %v, want %v", c.known, c.at, got, want)
		}
		if (told == 0) != (c.index == c.known) {
			t.Errorf("from %d to %q: %d things were told", c.known, c.at, told)
		}
		there.Close()
		before.Close()
	}
	c := ask(t, address)
	unknown := uint64(99)
	for want, request := range map[string]*starlingv1.WatchRequest{
		`goes with "once"`:    {Known: &unknown},
		"it has a hole there": {Known: &unknown, Once: true},
		`and without "after"`: {Known: &unknown, Once: true, After: &unknown, MinIndex: 1},
	} {
		request.MinIndex = 1
		if request.After != nil {
			*request.After = 1
		}
		err := c.Watch(within(t), request, func(*starlingv1.WatchResponse) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// things applies what is told to what was there, and counts it.
func things(t *testing.T, c *client.Client, request *starlingv1.WatchRequest, was map[string]string,
	told ...*int) map[string]string {
	t.Helper()
	all := map[string]string{}
	for key, value := range was {
		all[key] = value
	}
	err := c.Watch(context.WithoutCancel(within(t)), request, func(w *starlingv1.WatchResponse) error {
		key := w.GetKind() + "/" + w.GetName()
		if w.GetKind() == "" {
			return nil
		}
		for _, n := range told {
			*n++
		}
		_, known := all[key]
		if was != nil && known != (w.GetType() != "added") {
			t.Errorf("%s of %s, which was known: %t", w.GetType(), key, known)
		}
		kind := w.GetType()
		w.Index, w.Time, w.Type = 0, nil, ""
		if all[key] = protojson.Format(w); kind == "removed" {
			delete(all, key)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestGrid tells of each instance in short what is told of it at length, and of each machine what runs there.
func TestGrid(t *testing.T) {
	a, _ := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	spec := jobOn("web", 6, "a") // there is room for four
	second := spec.Tasks[0]
	second.Name, second.Instances = "other", 2
	second.Constraints = jobOn("x", 1, "b").Tasks[0].Constraints
	spec.Tasks = append(spec.Tasks, second)
	a.add(a.self, &command.SubmitJob{Spec: *spec}, &command.SubmitJob{Spec: *jobOn("also", 1, "b")})
	status, err := c.JobStatus(ctx, &starlingv1.JobStatusRequest{Job: "web", Grid: true})
	if err != nil {
		t.Fatal(err)
	}
	grid := status.GetGrid()
	if len(grid.GetNumbers()) != len(status.GetSlots()) || len(grid.GetKinds()) != 3 {
		t.Fatalf("got %v", grid)
	}
	for i, slot := range status.GetSlots() {
		got := proto.CloneOf(grid.GetKinds()[grid.GetKind()[i]])
		if got.Number = grid.GetNumbers()[i]; grid.GetNode()[i] > 0 {
			got.Node = grid.GetNodes()[grid.GetNode()[i]-1]
		}
		want := &starlingv1.Slot{Task: slot.GetTask(), Number: slot.GetNumber(), Phase: slot.GetPhase(),
			Health: slot.GetHealth(), Version: slot.GetVersion(), Seat: slot.GetSeat(), Node: slot.GetNode()}
		if !proto.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	peers, err := c.ListPeers(ctx, &starlingv1.ListPeersRequest{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"web 0 4 of 1", "also 0 1 of 2"} {
		p := peers.GetPeers()[i]
		one := p.GetJobs()[0]
		if got := fmt.Sprint(one.GetJob(), " ", one.GetRunning(), " ", one.GetOther(), " of ", p.GetJobCount()); got != want {
			t.Errorf("%s: got %s, want %s", p.GetNode(), got, want)
		}
	}
	peers, err = c.ListPeers(ctx, &starlingv1.ListPeersRequest{})
	if err != nil || peers.GetPeers()[0].GetJobCount() != 0 {
		t.Errorf("got %v, %v without being asked", peers, err)
	}
}
