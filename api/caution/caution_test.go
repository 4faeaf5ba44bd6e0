package caution

import (
	"strings"
	"testing"

	"starling/cluster"
	"starling/terms"
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
