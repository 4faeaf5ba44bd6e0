package wishes

import (
	"math/rand/v2"
	"slices"

	"starling/cluster"
	"starling/terms"
	"starling/terms/rules"
)

// Users are those that come and go.
func Users() []string { return []string{"user0", "user1", "user2"} }

// rights says who may do what in pools, and what they let their jobs have. Nothing of it is drawn with the generator.
func (d *Drawer) rights(s *cluster.State, changed []terms.Pool) {
	for i := range changed {
		p, n := &changed[i], d.Seed+uint64(s.Index)+uint64(len(changed[i].Path))
		if s.Rules >= rules.Authorities {
			p.RunAs = [...][]string{nil, {"www"}, {terms.AnyUser}, {"www", "root"}}[n%4]
			p.Submitters = [...][]string{nil, {"user0"}, {"user0", "user1"}}[n/2%3]
			p.Operators = [...][]string{nil, nil, {"user1"}}[n/5%3]
			p.Owners = [...][]string{nil, nil, nil, {"user2"}}[n/7%4]
		}
		if s.Rules >= rules.HostPaths {
			p.HostPaths = [...][]string{nil, {"data"}, {"data", "scratch"}}[n/3%3]
			p.Capabilities = [...][]string{nil, {"NET_ADMIN"}, {"SYS_ADMIN"}}[n/4%3]
			p.DeviceKinds = [...][]string{nil, {"fpga"}, {"gpu", "peers"}}[n/5%3]
		}
	}
}

// Privileged draws for the tasks of a job what only a pool lets them have, under a number of the rules.
func Privileged(rng *rand.Rand, spec *terms.Job, in rules.Number) {
	one := func(names ...string) string { return names[rng.IntN(len(names))] }
	spec.Tasks = slices.Clone(spec.Tasks)
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		switch rng.IntN(6) {
		case 0:
			t.User = one("www", "root", "else")
		case 1:
			if in >= rules.HostPaths {
				t.HostPaths = []terms.HostPath{{Name: one("data", "scratch", "else")}}
			}
		case 2:
			if in >= rules.HostPaths {
				t.Container = terms.Container{Image: "image", Capabilities: []string{one("NET_ADMIN", "SYS_ADMIN", "CHOWN")}}
			}
		case 3:
			t.Devices = []terms.DeviceRequest{{Kind: one("fpga", "gpu", "else"), Amount: 500}}
		}
		t.AskForNodes()
	}
}
