package caution

import (
	"strings"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/registry"
	"starling/command"
	"starling/terms"
	"starling/terms/access"
)

func TestUsers(t *testing.T) {
	spec := &terms.Job{Name: "web", Tasks: []terms.Task{
		{Name: "a", User: "nosuchuser"}, {Name: "b", User: "nosuchuser"}, {Name: "c", User: "root"}, {Name: "d"},
		{Name: "e", User: "other", Container: terms.Container{Image: "app"}},
	}}
	got := Of(cluster.NewState(), spec, "n1")
	if len(got) != 1 || !strings.HasPrefix(got[0], "tasks.a.user: node n1, which was asked, has no user nosuchuser: ") {
		t.Errorf("got %q, want one line about task a", got)
	}
}

func TestSecrets(t *testing.T) {
	spec := &terms.Job{Name: "web", Tasks: []terms.Task{{Name: "a", Secrets: []terms.SecretUse{{Name: "db"}}}}}
	s := cluster.NewState()
	got := Of(s, spec, "n1")
	if want := "tasks.a.secrets: pool default has no secret db: instances wait until"; len(got) != 1 ||
		!strings.HasPrefix(got[0], want) {
		t.Errorf("got %q, want one line about secret db", got)
	}
	spec.Tasks[0].Secrets, spec.Tasks[0].Container = nil, terms.Container{Image: "app", PullSecret: "db"}
	got = Of(s, spec, "n1")
	if want := "tasks.a.container.pull_secret: pool default has no secret db: machines that do not have the image"; len(got) != 1 ||
		!strings.HasPrefix(got[0], want) {
		t.Errorf("got %q, want one line about the secret for the registry", got)
	}
	known, _ := s.Registry().PutSecret(access.Secret{Pool: "default", Name: "db", Sealed: "x"},
		registry.Kept{Most: 1}, 1)
	s.SetRegistry(known)
	if got := Of(s, spec, "n1"); len(got) != 0 {
		t.Errorf("got %q of a secret that is there", got)
	}
	spec.Tasks[0].Secrets = []terms.SecretUse{{Name: "db", Version: 1}, {Name: "db", Version: 2}}
	want := "tasks.a.secrets: pool default has no version 2 of secret db: instances wait for a new version of the job that names another"
	if got := Of(s, spec, "n1"); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want one line about version 2", got)
	}
}

// TestObjections holds that no update goes on, or ends, which nobody means.
func TestObjections(t *testing.T) {
	spec := &terms.Job{Name: "web", Type: terms.Stateless, Tasks: []terms.Task{{Name: "main", Instances: 2}}}
	restart, fail := &command.RestartJob{Job: "web"}, &command.SteerUpdate{Job: "web", Version: 3, Steering: command.Fail}
	for _, c := range []struct {
		update facts.Update
		others bool
		asked  command.Command
		want   string
	}{
		{facts.Update{State: facts.RollingForward, To: 3}, true, fail, ""},
		{facts.Update{State: facts.RollingBackward, To: 3}, true, fail, "goes back already"},
		{facts.Update{State: facts.Paused, Before: facts.RollingBackward, To: 3}, true, fail, "goes back already"},
		{facts.Update{State: facts.RollingBackward, To: 4}, true, fail, ""},
		{facts.Update{State: facts.Paused, Before: facts.RollingForward, To: 3}, true, restart, "is paused"},
		{facts.Update{State: facts.UpdateAborted, To: 3}, true, restart, "was aborted, and instances of other versions are left: 1"},
		{facts.Update{State: facts.UpdateAborted, To: 3}, false, restart, ""},
		{facts.Update{State: facts.UpdateFailed, To: 3}, true, restart, ""},
		{facts.Update{State: facts.UpdateSucceeded, To: 3}, true, restart, ""},
		{facts.Update{State: facts.UpdateFailed, To: 3}, true, &command.RestartJob{Job: "web", Against: 7}, ""},
		{facts.Update{}, false, &command.RestartJob{Job: "other"}, ""},
	} {
		s := cluster.NewState()
		j := s.AddJob(spec)
		s.SetUpdate(j.ID, c.update, 0)
		if c.others {
			j = s.Job(j.ID)
			j.Tasks[0].Old[facts.Healthy] = 1
		}
		got := Objection(s, c.asked)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%v, others %v: got %q, want %q", c.update.State, c.others, got, c.want)
		}
	}
}
