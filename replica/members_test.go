package replica

import (
	"slices"
	"testing"

	"starling/cluster/facts"
	"starling/command"
	"starling/replica/reaction"
	"starling/terms"
)

// training returns a job whose members must all know each other before one starts, of a size of which two have room.
func training(workers, against uint32) *command.SubmitJob {
	task := terms.Task{Command: []string{"true"}, Resources: terms.Resources{32_000, 0, 0}, Placement: terms.Pack,
		OnMembersChange: terms.SignalHangUp}
	ps, worker := task, task
	ps.Name, ps.Instances, worker.Name, worker.Instances = "ps", 1, "worker", workers
	return &command.SubmitJob{Against: against, Spec: terms.Job{
		Name: "train", Type: terms.Stateless, Plugins: []terms.PluginRequest{{Name: "tensorflow"}},
		Tasks: []terms.Task{ps, worker},
	}}
}

// TestMembersAreTold has instances wait until all whom they must know have nodes, start with one version of the list,
// and get the files of each later one.
func TestMembersAreTold(t *testing.T) {
	s := clusterOf(1)
	offer := *s.Node(0).Offer
	offer.Address = "10.0.0.1:7460"
	s.SetOffer(0, &offer)
	o := &reaction.Observed{Starts: 9, Folder: func(id terms.AllocationID) string { return "/files/" + id.String() }}
	list := func() terms.Index { return s.JobOf("train").Roster.Version }

	apply(s, 2, training(2, 0))
	if got := reaction.React("m00000~1", s, o); held(s) != 2 || len(got.Start) != 0 {
		t.Fatalf("%d of 3 have a node and %d start, want 2 that wait for the third", held(s), len(got.Start))
	}
	apply(s, 3, training(1, 1))
	got := reaction.React("m00000~1", s, o)
	if len(got.Start) != 2 || list() != s.Index {
		t.Fatalf("%d start of the list of entry %d, want 2 of entry %d", len(got.Start), list(), s.Index)
	}
	for _, order := range got.Start {
		checkEnvironment(t, &order, list())
		o.Local = append(o.Local, reaction.LocalTask{ID: order.ID, Files: order.Members})
	}
	if again := reaction.React("m00000~1", s, o); len(again.Start)+len(again.Renew) != 0 {
		t.Errorf("%d are started and %d renewed although nothing has changed", len(again.Start), len(again.Renew))
	}
	before := list()
	apply(s, 4, &command.TellTime{})
	if list() != before {
		t.Errorf("the list is of entry %d, which did not change it, want %d", list(), before)
	}
	apply(s, 5, training(3, 2))
	got = reaction.React("m00000~1", s, o)
	if len(got.Renew) != 2 || got.Renew[0].Version != s.Index || got.Renew[0].Signal != terms.SignalHangUp ||
		len(got.Start) != 0 {
		t.Fatalf("%+v are renewed and %d start, want 2 of version %d with SIGHUP and none", got.Renew, len(got.Start),
			s.Index)
	}
	o.Local[0].Files = got.Renew[0].Version
	o.Local[1].Ended = facts.ByItself
	if got := reaction.React("m00000~1", s, o); len(got.Renew) != 0 {
		t.Errorf("%+v are renewed, want none: one has the files, one has ended", got.Renew)
	}
}

func checkEnvironment(t *testing.T, order *reaction.Order, version terms.Index) {
	t.Helper()
	at := slices.IndexFunc(order.Environment.Env, func(e terms.EnvVar) bool { return e.Name == "TF_CONFIG" })
	want := `{"cluster": {"ps": ["10.0.0.1:2222"], "worker": ["10.0.0.1:2222"]}, "task": {"type": "` +
		string(order.ID.Slot.Task) + `", "index": 0}}`
	if at < 0 || order.Environment.Env[at].Value != want || order.Members != version || order.Refusal != "" ||
		len(order.Environment.Files) == 0 {
		t.Errorf("%s starts with %+v of version %d, want %s of version %d", order.ID, order.Environment, order.Members, want,
			version)
	}
}
