package explain

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/schedule"
	"starling/schedule/place"
	"starling/terms"
	"starling/terms/constraint"
)

// TestSurveyAgreesWithPlacement holds random tasks against random nodes: what explain finds no obstacle for, placement
// could take, and the other way round.
func TestSurveyAgreesWithPlacement(t *testing.T) {
	able, unable := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := randomCluster(r)
		for i := range 12 {
			spec := &terms.Job{Name: terms.JobName(fmt.Sprint("j", i)), Type: terms.Batch, Tasks: []terms.Task{randomTask(r)}}
			if i%6 == 5 {
				spec.Within = "zone"
			}
			j := s.AddJob(spec)
			if r.IntN(3) > 0 {
				s.Index++
				schedule.Run(s, nil, nil, nil)
			}
			j = s.Job(j.ID)
			e := &explainer{s: s, job: j, task: j.Tasks[0], spec: &j.Spec.Tasks[0], Reader: &Reader{}}
			c := e.diagnosis()
			missed := map[facts.NodeIndex]bool{}
			for _, m := range c.misses {
				missed[m.node.Index] = true
				if len(m.words) != m.all || m.hard > m.all {
					t.Errorf("seed %d: %s has %d obstacles, %d hard, in words %q", seed, m.node.Name, m.all, m.hard, m.words)
				}
			}
			for n := range s.Nodes() {
				fits, found := place.Fits(s, e.key(), facts.NodeIndex(n)),
					s.Node(facts.NodeIndex(n)).Offer != nil && !missed[facts.NodeIndex(n)]
				if fits != found {
					t.Fatalf("seed %d: job %d on node %d: placement says %v, explain %v: %+v\nmisses %v", seed, i, n, fits, found,
						e.spec, c.misses)
				}
				if fits {
					able++
				} else {
					unable++
				}
			}
			Job(s, s.Job(j.ID), &Reader{})
		}
	}
	if able < 1000 || unable < 1000 {
		t.Errorf("got %d that fit and %d that do not, want many of both", able, unable)
	}
}

func randomCluster(r *rand.Rand) *cluster.State {
	s := cluster.NewState()
	for i := range 6 {
		n := s.EnsureNode(terms.NodeName(fmt.Sprint("n", i))).Index
		if r.IntN(6) == 0 {
			continue
		}
		s.SetPeer(n, terms.NewPeerID(s.Node(n).Name, 1))
		if r.IntN(6) == 0 {
			continue
		}
		o := &terms.Offer{Capacity: terms.Resources{r.Int64N(4) * 1000, r.Int64N(4) << 30, r.Int64N(2) << 30}}
		if r.IntN(6) == 0 {
			o.Attributes = append(o.Attributes, terms.EnvVar{Name: "exclusive", Value: "db"})
		}
		if zone := r.IntN(3); zone > 0 {
			o.Attributes = append(o.Attributes, terms.EnvVar{Name: "zone", Value: fmt.Sprint(zone)})
		}
		if gpus := r.Uint32N(3); gpus > 0 {
			o.Devices = []terms.DeviceOffer{{Kind: "gpu", Model: []string{"", "A", "B"}[r.IntN(3)], Count: gpus}}
		}
		if r.IntN(2) == 0 {
			o.PortFirst, o.PortLast = 10, 10+uint16(r.IntN(4))
		}
		if r.IntN(24) == 0 {
			o.AwayUntil = 1
		}
		s.SetOffer(n, o)
		s.SetDrain(n, facts.Drain{On: r.IntN(24) == 0})
	}
	return s
}

func randomTask(r *rand.Rand) terms.Task {
	t := terms.Task{Name: "t", Instances: r.Uint32N(4), Command: []string{"true"},
		Placement: terms.Pack + terms.Placement(r.IntN(2)),
		Resources: terms.Resources{r.Int64N(3) * 500, r.Int64N(3) << 29, r.Int64N(2) << 29}}
	if r.IntN(3) == 0 {
		t.Constraints = []constraint.Constraint{{Attribute: "zone", Operator: constraint.Operator(r.IntN(2) + 1),
			Values: []string{"1"}}}
	}
	if r.IntN(2) == 0 {
		t.Labels = []terms.EnvVar{{Name: "app", Value: "a"}}
	}
	if r.IntN(3) == 0 {
		t.Constraints = append(t.Constraints,
			constraint.Constraint{Label: "app", Operator: constraint.LessOrEqual, Count: uint32(r.IntN(3)),
				Values: []string{"a"},
				Within: []string{"", "zone"}[r.IntN(2)], Soft: r.IntN(3) == 0, SoftTimeoutMillis: uint32(r.IntN(2))})
	}
	if r.IntN(4) == 0 {
		t.PerNodeMax = 1
	}
	if r.IntN(6) == 0 {
		t.Constraints = append(t.Constraints, constraint.Constraint{Any: []constraint.Constraint{
			{Attribute: "exclusive", Operator: constraint.Exists}, {Attribute: "zone", Operator: constraint.Exists}}})
	}
	if r.IntN(3) == 0 {
		t.Devices = []terms.DeviceRequest{{Kind: "gpu", Amount: []terms.Millidevices{400, 1000, 2000}[r.IntN(3)]}}
		if r.IntN(2) == 0 {
			t.Devices[0].Models = []string{"A"}
		}
	}
	number := uint16(10)
	for i := range r.IntN(4) {
		port := terms.PortRequest{Name: fmt.Sprint("p", i)}
		if r.IntN(2) == 0 {
			port.Number, number = number, number+1+uint16(r.IntN(3))
		}
		t.Ports = append(t.Ports, port)
	}
	return t
}
