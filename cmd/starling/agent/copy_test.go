package agent

import (
	"strings"
	"testing"

	"starling/cmd/starling/settings"
	"starling/terms"
)

// TestPlaceOfOwnMachines wants that the seal tells the machine with which a journal of the cluster's own machines
// begins: with the same text on two machines each would begin one.
func TestPlaceOfOwnMachines(t *testing.T) {
	place := func(node terms.NodeName, etcd settings.Etcd) string {
		return (&copying{to: &settings.Agent{Node: node, Etcd: etcd}}).place()
	}
	a := place("a", settings.Etcd{Listen: "https://10.0.0.1:2379", Peer: "https://10.0.0.1:2380"})
	b := place("b", settings.Etcd{Listen: "https://10.0.0.2:2379", Peer: "https://10.0.0.2:2380"})
	if a == b || !strings.Contains(a, "begun on a at https://10.0.0.1:2380") {
		t.Errorf("the places are %q and %q", a, b)
	}
	theirs := settings.Etcd{Endpoints: []string{"https://10.0.0.9:2379"}, Prefix: "flock/"}
	if a, b := place("a", theirs), place("b", theirs); a != b {
		t.Errorf("the places are %q and %q, want one", a, b)
	}
}
