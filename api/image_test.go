package api

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/terms"
)

// contained is a job whose tasks run in containers of these images.
func contained(images ...string) *starlingv1.JobSpec {
	spec := jobOn("team/contained", 1, "a")
	first := spec.Tasks[0]
	spec.Tasks = nil
	for i, name := range images {
		task := first
		task.Name, task.Container = terms.TaskName(fmt.Sprintf("t%d", i)), terms.Container{Image: name}
		task.AskForNodes()
		spec.Tasks = append(spec.Tasks, task)
	}
	return wire.Spec(spec)
}

// library is a peer behind a door, which pins tags to a digest of the test's.
type library struct {
	*gate
	digest string
	asked  []string
}

func newLibrary(t *testing.T) *library {
	l := &library{gate: newGate(t), digest: "1"}
	l.door.Answer(NewServer(l.peer, Options{Log: slog.New(slog.DiscardHandler), Shows: l.keys.Shows, Pin: l.pin}), l.peer)
	return l
}

func (l *library) pin(_ context.Context, _ terms.PoolPath, c *terms.Container) (string, error) {
	name := c.Image
	l.asked = append(l.asked, name)
	switch name {
	case "gone":
		return "", &wire.Failure{Code: wire.NotFound}
	case "silent":
		return "", &wire.Failure{Code: wire.Unavailable}
	}
	return name + "@" + l.digest, nil
}

func (l *library) by(who string) starlingv1connect.StarlingClient {
	return wire.Peer(l.clients[who], l.address)
}

func (l *library) submit(t *testing.T, against uint32, images ...string) *starlingv1.SubmitJobResponse {
	t.Helper()
	answer, err := l.by("member").SubmitJob(within(t),
		&starlingv1.SubmitJobRequest{Spec: contained(images...), Against: against})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// changes are those in the plan of somebody.
func (l *library) changes(t *testing.T, who string, images ...string) []*starlingv1.Change {
	t.Helper()
	answer, err := l.by(who).PlanJob(within(t), &starlingv1.PlanJobRequest{Spec: contained(images...)})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetChanges()
}

// version names the images of the job, and its version.
func (l *library) version() string {
	j := l.peer.state.JobOf("team/contained")
	text := fmt.Sprint(j.Version)
	for i := range j.Spec.Tasks {
		text += " " + j.Spec.Tasks[i].Container.Image
	}
	return text
}

// TestTagsArePinned asks what tags mean once for each image, and for those alone who may submit the job.
func TestTagsArePinned(t *testing.T) {
	l, images := newLibrary(t), []string{"app:1", "db:1", "app:1"}
	if l.submit(t, 0, images...); l.version() != "1 app:1@1 db:1@1 app:1@1" || len(l.asked) != 2 {
		t.Errorf("got the images %s, asked for %q", l.version(), l.asked)
	}
	entries := len(l.peer.entries)
	if !l.submit(t, 1, images...).GetUnchanged() || len(l.peer.entries) != entries {
		t.Error("the same job was submitted anew")
	}
	if changes := l.changes(t, "member", images...); len(changes) > 0 {
		t.Errorf("although no tag moved, the plan has %v", changes)
	}
	l.digest, l.asked = "2", nil
	if l.changes(t, "viewer", images...); len(l.asked) > 0 {
		t.Errorf("registries were asked for %q for one who may not submit the job", l.asked)
	}
	if changes := l.changes(t, "member", images...); len(changes) != 3 {
		t.Errorf("two tags moved, and the plan has %v", changes)
	}
	if l.submit(t, 1, images...).GetUnchanged() || l.version() != "2 app:1@2 db:1@2 app:1@2" {
		t.Errorf("after tags moved the images are %s", l.version())
	}
}

// TestNothingIsSubmittedWithoutDigest has images of which nobody says what they are.
func TestNothingIsSubmittedWithoutDigest(t *testing.T) {
	l := newLibrary(t)
	for name, want := range map[string]wire.Code{"gone": wire.NotFound, "silent": wire.Unavailable} {
		_, submitted := l.by("member").SubmitJob(within(t), &starlingv1.SubmitJobRequest{Spec: contained(name)})
		_, planned := l.by("member").PlanJob(within(t), &starlingv1.PlanJobRequest{Spec: contained(name)})
		for _, err := range []error{submitted, planned} {
			if got := wire.FailureOf(err); got == nil || got.Code != want {
				t.Errorf("%s: got %+v, want %s", name, got, want)
			}
		}
	}
	if l.peer.state.JobOf("team/contained") != nil {
		t.Error("the job is there")
	}
}
