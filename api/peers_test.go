package api

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	starlingv1 "starling/api/v1"
	"starling/api/view"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
)

func TestListPeers(t *testing.T) {
	a, b := pair()
	b.volunteer("127.0.0.1:9")
	for _, joiner := range []terms.PeerID{"c~1", "d~3"} {
		a.add(joiner, &command.PrepareJoin{Joiner: joiner, Attempt: 1})
	}
	a.add("a~1", &command.Leave{Peer: "d~3"})
	c, ctx := ask(t, a.serve(t)), within(t)
	if _, err := c.SubmitJob(ctx, jobOn("web", 2, "b"), 0); err != nil {
		t.Fatal(err)
	}
	now := a.entries[len(a.entries)-1]
	early := a.entries[3]
	a.pulses = []report.PulseView{
		{Peer: "a~1", Alive: true, Index: now.Index, Digest: now.Digest, Address: "127.0.0.1:8"},
		{Peer: "b~1", Alive: true, Index: early.Index, Digest: early.Digest + 1},
		{Peer: "c~1", Alive: false, Index: now.Index + 5, Digest: 7},
	}
	got, err := c.AllPeers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got.GetSelf() != "a~1" || got.GetIndex() != uint64(now.Index) {
		t.Errorf("got self %s, index %d", got.GetSelf(), got.GetIndex())
	}
	want := []*starlingv1.Peer{
		{
			Node: "a", Peer: "a~1", State: "member", Watches: "b~1", WatchedBy: "b~1", Address: "127.0.0.1:8", Alive: true,
			JournalIndex: uint64(now.Index), Lag: 5, Digest: wire.Digest(now.Digest), DigestAgrees: new(true),
			Capacity: &starlingv1.Resources{CpuMillicores: 4000, MemoryBytes: 8 << 30, DiskBytes: 100 << 30},
			Free:     &starlingv1.Resources{CpuMillicores: 4000, MemoryBytes: 8 << 30, DiskBytes: 100 << 30},
		},
		{
			Node: "b", Peer: "b~1", State: "member", Watches: "a~1", WatchedBy: "a~1", Address: "127.0.0.1:9", Alive: true,
			JournalIndex: uint64(early.Index), Lag: uint64(now.Index-early.Index) + 5, Digest: wire.Digest(early.Digest + 1),
			DigestAgrees: new(false), Allocations: 2,
			Capacity: &starlingv1.Resources{CpuMillicores: 4000, MemoryBytes: 8 << 30, DiskBytes: 100 << 30},
			Free:     &starlingv1.Resources{CpuMillicores: 2000, MemoryBytes: 8<<30 - 2<<20, DiskBytes: 100 << 30},
		},
		{
			Node: "c", Peer: "c~1", State: "joining", Detail: "attempt 1 is prepared by a~1",
			JournalIndex: uint64(now.Index) + 5,
			Digest:       wire.Digest(7),
		},
		{Node: "d", Peer: "d~3", State: "left"},
	}
	for i, peer := range got.GetPeers() {
		if i < 2 {
			want[i].Devices = []*starlingv1.Device{{Kind: "gpu", Model: "T4", Count: 1}}
			want[i].Attributes = []*starlingv1.Variable{{Name: "node", Value: want[i].Node}}
		}
		if i >= len(want) || !proto.Equal(peer, want[i]) {
			t.Errorf("peer %d: got %v\nwant %v", i, peer, want[min(i, len(want)-1)])
		}
	}
	page, err := c.ListPeers(ctx, &starlingv1.ListPeersRequest{PageSize: 3})
	if err != nil || len(page.GetPeers()) != 3 || page.GetNextPageToken() != "3" {
		t.Errorf("got %d peers and %q, %v, want 3 and that another follows", len(page.GetPeers()), page.GetNextPageToken(),
			err)
	}
}

// TestListPeersWaitsForNoEntry asks a peer that took a snapshot and remembers no entry of before.
// A node that was removed is not listed any more, nor is its number given to another.
func TestListPeersLeavesOutWhatWasRemoved(t *testing.T) {
	a, b := pair()
	b.volunteer("127.0.0.1:9")
	a.add("a~1", &command.Leave{Peer: "b~1"})
	c, ctx := ask(t, a.serve(t)), within(t)
	nodes := func() (all []string) {
		answer, err := c.AllPeers(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range answer.GetPeers() {
			all = append(all, p.GetNode()+" "+p.GetState())
		}
		return all
	}
	if got := nodes(); !slices.Equal(got, []string{"a member", "b left"}) {
		t.Errorf("got %q, want b as one that left", got)
	}
	a.add("a~1", &command.RemoveNode{Node: "b"})
	if got := nodes(); !slices.Equal(got, []string{"a member"}) {
		t.Errorf("got %q, want a alone", got)
	}
}

func TestListPeersWaitsForNoEntry(t *testing.T) {
	a, _ := pair()
	now := a.entries[len(a.entries)-1]
	a.oldest = now.Index + 1
	a.pulses = []report.PulseView{
		{Peer: "a~1", Alive: true, Index: now.Index, Digest: now.Digest},
		{Peer: "b~1", Alive: true, Index: now.Index - 1, Digest: now.Digest},
	}
	got, err := ask(t, a.serve(t)).AllPeers(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if peers := got.GetPeers(); !peers[0].GetDigestAgrees() || peers[1].DigestAgrees != nil {
		t.Errorf("got %v, want that a agrees, and that of b it is not known", peers)
	}
}

func TestRefusedOfferIsTold(t *testing.T) {
	a, _ := pair()
	a.pulses = []report.PulseView{{Peer: "a~1", Alive: true},
		{Peer: "b~1", Alive: true, OfferRefusal: "too many devices"}}
	got, err := ask(t, a.serve(t)).AllPeers(within(t))
	if err != nil {
		t.Fatal(err)
	}
	const want = "it gives nothing, because its offer is refused: too many devices"
	if detail := got.GetPeers()[1].GetDetail(); detail != want || got.GetPeers()[0].GetDetail() != "" {
		t.Errorf("got %q, want %q", detail, want)
	}
}

func TestWhy(t *testing.T) {
	a, _ := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	if _, err := c.SubmitJob(ctx, jobOn("web", 6, "b"), 0); err != nil {
		t.Fatal(err)
	}
	why, err := c.Why(ctx, &starlingv1.WhyRequest{Job: "web"})
	if err != nil {
		t.Fatal(err)
	}
	waits := slices.IndexFunc(why.GetFindings(), func(f *starlingv1.Finding) bool { return f.GetInstances() == 2 })
	if waits < 0 || why.GetFindings()[waits].GetTask() != "main" || why.GetFindings()[waits].GetReason() == "" ||
		why.GetJob().GetName() != "web" {
		t.Errorf("got %v, want a finding on the 2 instances that wait", why)
	}
}

func TestInfo(t *testing.T) {
	a, _ := pair()
	a.status.Warnings = []string{"no cgroups here"}
	info, err := ask(t, a.serve(t)).Info(within(t))
	if err != nil {
		t.Fatal(err)
	}
	want := &starlingv1.InfoResponse{
		Index: 6, Time: timestamp(1_700_000_000_005), Peer: "a~1", Phase: "member", Warnings: a.status.Warnings,
		Version: "v0", Rules: 1,
	}
	if !proto.Equal(info, want) {
		t.Errorf("got %v, want %v", info, want)
	}
}

// tail returns the entries as lines, and an oldest index that is told as "from N".
func tail(t *testing.T, a *peer, request *starlingv1.TailJournalRequest, most int) []string {
	t.Helper()
	var lines []string
	enough := errors.New("enough")
	err := ask(t, a.serve(t)).TailJournal(within(t), request, func(answer *starlingv1.TailJournalResponse) error {
		if answer.GetEntry() == nil {
			lines = append(lines, "from "+wire.Digest(answer.GetOldestIndex())[15:])
			return nil
		}
		line := wire.Digest(answer.GetEntry().GetIndex())[15:] + " " + answer.GetEntry().GetWriter() +
			answer.GetEntry().GetDropped()
		for _, command := range answer.GetEntry().GetCommands() {
			line += ", " + command.GetText() + command.GetRefusal()
		}
		for _, effect := range answer.GetEntry().GetEffects() {
			line += " -> " + effect.GetText()
		}
		if lines = append(lines, line); len(lines) == most {
			return enough
		}
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		t.Fatal(err)
	}
	return lines
}

func TestTailJournal(t *testing.T) {
	a, _ := pair()
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("web", 2, "b")}, &command.KillJob{Job: "nope"})
	a.garble()
	last := []string{
		"7 a~1, submit job web: 1 task, 2 instances, kill job nope" + `there is no job "nope"` +
			" -> placed web.main[0] on node b -> placed web.main[1] on node b",
		"8 entry has encoding version 9",
	}
	last[0] = strings.Replace(last[0], `there is no job "nope"`, a.entries[6].Outcome.Results[1].Refusal.Reason, 1)
	cases := []struct {
		name    string
		request *starlingv1.TailJournalRequest
		oldest  terms.Index
		most    int
		want    []string
	}{
		{"the newest", &starlingv1.TailJournalRequest{Last: 2}, 1, 0, last},
		{"from an index", &starlingv1.TailJournalRequest{From: 7}, 1, 0, last},
		{"older than is remembered", &starlingv1.TailJournalRequest{From: 2}, 7, 0, append([]string{"from 7"}, last...)},
		{"more than is remembered", &starlingv1.TailJournalRequest{Last: 100}, 7, 0, append([]string{"from 7"}, last...)},
		{"all that is remembered", &starlingv1.TailJournalRequest{}, 8, 0, []string{"from 8", last[1]}},
		{"beyond the newest", &starlingv1.TailJournalRequest{From: 9}, 1, 0, nil},
		{"following", &starlingv1.TailJournalRequest{From: 7, Follow: true}, 1, 2, last},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a.oldest = c.oldest
			if got := tail(t, a, c.request, c.most); !slices.Equal(got, c.want) {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestTailJournalTellsRefusalsAndAllocations(t *testing.T) {
	a, _ := pair()
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("web", 1, "b")}, &command.KillJob{Job: "nope"})
	err := ask(t, a.serve(t)).TailJournal(within(t), &starlingv1.TailJournalRequest{Last: 1},
		func(answer *starlingv1.TailJournalResponse) error {
			entry := answer.GetEntry()
			kill, placed := entry.GetCommands()[1], entry.GetEffects()[0]
			if kill.GetRefusalCode() != "not_found" || kill.GetKind() != "kill-job" || entry.GetCommands()[0].GetJob() != "web" {
				t.Errorf("got commands %v", entry.GetCommands())
			}
			if placed.GetAllocation() != "web.main[0]#7" || placed.GetNode() != "b" || placed.GetKind() != "placed" {
				t.Errorf("got effect %v", placed)
			}
			if entry.GetDigest() != wire.Digest(a.entries[6].Digest) || entry.GetBytes() == 0 || entry.GetCause() != 6 {
				t.Errorf("got entry %v", entry)
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTailJournalFollowsWhatComes(t *testing.T) {
	a, _ := pair()
	heard := 0
	done := errors.New("done")
	err := ask(t, a.serve(t)).TailJournal(within(t), &starlingv1.TailJournalRequest{From: 6, Follow: true},
		func(answer *starlingv1.TailJournalResponse) error {
			if heard++; heard == 3 {
				return done
			}
			a.add("a~1", &command.TellTime{})
			return nil
		})
	if !errors.Is(err, done) || heard != 3 {
		t.Errorf("got %v after %d entries", err, heard)
	}
}

// TestRoomIsFreeOrKept holds that room which is kept for work that waits is shown as that, and nothing below zero.
func TestRoomIsFreeOrKept(t *testing.T) {
	s := cluster.NewState()
	n := s.EnsureNode("x").Index
	s.SetPeer(n, "x~1")
	s.SetOffer(n, &terms.Offer{Capacity: terms.Resources{4000, 8 << 30, 0}, Rules: 1})
	for _, c := range []struct {
		name              string
		claim, free, kept int64
	}{{"nothing is kept", 0, 4000, 0}, {"some is kept", 3000, 1000, 3000},
		{"more is kept than has come free", 6100, 0, 4000}} {
		s.SetNomination(7, facts.Nomination{})
		if c.claim > 0 {
			s.SetNomination(7, facts.Nomination{Seats: []facts.NominatedSeat{{Node: n, Count: 1, Need: terms.Amounts{c.claim}}}})
		}
		free, kept := view.Room(s, n)
		if free.GetCpuMillicores() != c.free || kept.GetCpuMillicores() != c.kept || (kept == nil) != (c.kept == 0) ||
			free.GetMemoryBytes() != 8<<30 {
			t.Errorf("%s: got %v free and %v kept, want %d and %d", c.name, free, kept, c.free, c.kept)
		}
	}
}
