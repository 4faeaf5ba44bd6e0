package secret

import (
	"strings"
	"testing"

	"starling/cluster"
	"starling/terms"
)

// TestFingerprint holds what is derived for ever: machines of several versions compare theirs.
func TestFingerprint(t *testing.T) {
	if got, want := fixed().Fingerprint(), "c5d3d3b7"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestOdd has members with the fixed secret (=), with another (x) and with none (-), and some with another that have
// left (o).
func TestOdd(t *testing.T) {
	for _, c := range []struct{ members, node, want string }{
		{"", "new", ""},
		{"=", "n0", ""},
		{"---=", "n3", ""},
		{"x", "n0", ""}, // its own is what it has now, not what it offered before
		{"==x", "new", ""},
		{"xx=", "n2", "of node n2 is not that of node n0 and 1 more,"},
		{"=xx", "n0", "of node n0 is not that of node n1 and 1 more,"},
		{"-x", "new", "of node new is not that of node n1,"},
		{"x=", "n1", "of node n1 is not that of node n0,"},
		{"=x", "n0", ""},
		{"ooo=x", "n3", ""}, // those that have left do not count
	} {
		s := cluster.NewState()
		for i, kind := range c.members {
			name := terms.NodeName("n" + string(rune('0'+i)))
			offer := &terms.Offer{}
			switch kind {
			case '=':
				offer.Attributes = []terms.EnvVar{{Name: Attribute, Value: fixed().Fingerprint()}}
			case 'x', 'o':
				offer.Attributes = []terms.EnvVar{{Name: Attribute, Value: "00000000"}}
			}
			row := s.EnsureNode(name)
			s.SetOffer(row.Index, offer)
			if kind != 'o' {
				s.SetPeer(row.Index, terms.NewPeerID(name, 1))
			}
		}
		got := fixed().Odd(s, terms.NodeName(c.node))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q, %s: got %q, want %q", c.members, c.node, got, c.want)
		}
	}
}
