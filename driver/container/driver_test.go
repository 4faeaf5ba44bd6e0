package container

import (
	"slices"
	"testing"
)

func TestOrders(t *testing.T) {
	for socket, want := range map[string][]string{
		"/run/no-engine/c.sock":       {"/run/no-engine"},
		"/run/c.sock":                 {"/run/c.sock", "/run/c.sock.ttrpc"},
		"/srv/no-engine/c.sock":       {"/srv/no-engine/c.sock", "/srv/no-engine/c.sock.ttrpc"},
		"/run/no-engine/below/c.sock": {"/run/no-engine/below"},
		"/run/no-tasks/c.sock":        {"/run/no-tasks/c.sock", "/run/no-tasks/c.sock.ttrpc"},
	} {
		if got := orders(socket, "/run/no-tasks/driver"); !slices.Equal(got, want) {
			t.Errorf("of %s are covered %q, want %q", socket, got, want)
		}
	}
}
