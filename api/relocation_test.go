package api

import (
	"errors"
	"io"
	"strings"
	"testing"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
	"starling/terms/rules"
)

// relocated moves volumes, and returns what was told last.
func relocated(t *testing.T, c *client.Client, set terms.VolumeSet, to string) (
	last *starlingv1.RelocateVolumesResponse, err error) {
	last = &starlingv1.RelocateVolumesResponse{}
	err = c.RelocateVolumes(within(t), &starlingv1.RelocateVolumesRequest{Volumes: set.String(), Node: to},
		func(told *starlingv1.RelocateVolumesResponse) error {
			if told.GetBytes() < last.GetBytes() {
				t.Errorf("told %d bytes after %d", told.GetBytes(), last.GetBytes())
			}
			last = told
			return nil
		})
	if err == nil && last.GetIndex() == 0 {
		t.Error("the last answer has no index")
	}
	return last, err
}

// wantUse wants node a to tell how much a volume takes.
func wantUse(t *testing.T, c *client.Client, set terms.VolumeSet, bytes int) {
	t.Helper()
	stats, err := c.VolumeStats(within(t), set.String())
	if uses := stats.GetUses(); err != nil || len(uses) != 2 || uses[0].GetName() != "data" ||
		uses[0].GetBytes() != uint64(bytes) || stats.GetVolumes().GetNode() != "a" {
		t.Errorf("got %v, %v", stats, err)
	}
}

// TestRelocateVolumes asks peer a to have b take what a's node holds, and then for a copy of it.
func TestRelocateVolumes(t *testing.T) {
	a, b := pair()
	at := map[*peer]string{a: a.serve(t), b: b.serve(t)}
	a.volunteer(at[a])
	b.volunteer(at[b])
	c := ask(t, at[a])
	a.state.Rules = rules.MovedVolumes - 1
	spec := jobOn("db", 1, "a")
	spec.Type, spec.Tasks[0].Volumes = terms.Stateful, []terms.Volume{{Name: "data"}}
	spec.Tasks[0].Disconnect.StopAfterMillis = 5000
	if result := a.add("a~1", &command.SubmitJob{Spec: *spec}).Outcome.Results[0]; result.Refused() {
		t.Fatal(result.Refusal)
	}
	all, err := c.AllVolumes(within(t), "db")
	if err != nil || len(all.GetVolumes()) != 1 {
		t.Fatalf("got %v, %v", all, err)
	}
	set, _ := terms.ParseVolumeSet(all.GetVolumes()[0].GetId())
	var last *starlingv1.RelocateVolumesResponse
	relocate := func(to string) (err error) {
		last, err = relocated(t, c, set, to)
		return err
	}
	refused := func(err error, code wire.Code, want string) {
		t.Helper()
		var failure *wire.Failure
		if !errors.As(err, &failure) || failure.Code != code || !strings.Contains(failure.Reason, want) {
			t.Errorf("got %v, want %v with %q", err, code, want)
		}
	}
	copied := func() string {
		var all strings.Builder
		if err := c.ReadVolumes(within(t), set.String(), &all); err != nil {
			t.Error(err)
		}
		return all.String()
	}
	refused(relocate("b"), wire.Conflict, "an instance has the volumes db.main[0]@")
	a.add("a~1", &command.KillJob{Job: "db"})
	a.report(set.Slot, facts.ByItself)
	refused(relocate("c"), wire.NotFound, "there is no node c")
	refused(relocate("b"), wire.Conflict, "raise them with `starling rules raise`")
	a.state.Rules = rules.MovedVolumes
	refused(relocate("b"), wire.Conflict, "node a: ")
	a.volumes = map[terms.VolumeSet]string{set: ""}
	refused(relocate("b"), wire.Conflict, "an instance has these volumes")
	text := strings.Repeat("row ", 1_000_000)
	a.volumes[set] = text
	wantUse(t, ask(t, at[b]), set, len(text))
	if got := copied(); got != text {
		t.Errorf("got %d bytes of %d", len(got), len(text))
	}
	if err := relocate("b"); err != nil || b.volumes[set] != text || last.GetFrom() != "a" {
		t.Fatalf("b has %d bytes, %v, %v", len(b.volumes[set]), last, err)
	}
	if err := relocate("b"); err != nil || last.GetFrom() != "b" {
		t.Errorf("again: the last %v, %v", last, err)
	}
	if got := copied(); got != text {
		t.Errorf("from b: got %d bytes of %d", len(got), len(text))
	}
	refused(c.ReadVolumes(within(t), "db", io.Discard), wire.Invalid, "volumes must be as in db.main[2]@17")
	a.add("a~1", &command.DrainNode{Node: "a", Drain: true})
	refused(relocate("a"), wire.Conflict, "node a takes no instances")
}
