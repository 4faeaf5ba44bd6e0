package explain

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/schedule"
	"starling/schedule/preempt"
	"starling/terms"
	"starling/terms/constraint"
)

// TestWhatHelpsSharing does what would help instances that wait for virtual peers, in random pools, and wants their
// task to have more then.
func TestWhatHelpsSharing(t *testing.T) {
	helped := map[string]int{}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := sharedCluster(r)
		for i := range 2 + r.IntN(4) {
			s.Index++
			s.AddJob(sharedJob(r, i))
		}
		placeShares(s)
		s.EachJob(func(j *workload.Job) bool {
			for task := range j.Tasks {
				e := &explainer{s: s, job: j, task: j.Tasks[task], spec: &j.Spec.Tasks[task], number: task,
					Reader: &Reader{Try: Tries(s, j.Name())}}
				if e.task.Waits() == 0 || !e.served() {
					continue
				}
				f := e.waiting(e.key(), nil)
				if strings.HasPrefix(f.Reason, "placement") || strings.HasPrefix(f.Reason, "waits for room:") {
					t.Errorf("seed %d: %s/%s: %s %q", seed, j.Name(), e.task.Name, f.Reason, f.Details)
				}
				for _, line := range f.Details {
					if help, found := strings.CutPrefix(line, "would help: "); found {
						help, _, _ = strings.Cut(help, " (")
						kind := tryHelp(t, s.Copy(), j.ID, task, help)
						if helped[kind]++; strings.HasPrefix(kind, "no ") {
							t.Errorf("seed %d: %s/%s: %s: %q does not help: %s: %q", seed, j.Name(), e.task.Name, f.Reason, help, kind,
								f.Details)
						}
					}
				}
			}
			return true
		})
	}
	for _, want := range []string{"nodes", "node", "end", "priority", "percent", "scheduler"} {
		if helped[want] < 5 {
			t.Errorf("got %v, want some of %s", helped, want)
		}
	}
}

// tryHelp does what would help and returns what that was; it begins with "no" if the task has no more then.
func tryHelp(t *testing.T, s *cluster.State, id terms.JobID, task int, help string) string {
	before, _ := s.Job(id).Tasks[task].Share()
	number, spec, kind := 0, *s.Job(id).Spec, ""
	s.Index++
	switch text := help[strings.LastIndex(help, ", with ")+1:]; {
	case scan(help, "a priority above %d", &number):
		spec.Priority, kind = uint32(number)+1, "priority"
	case scan(help, "a percent of %d in", &number):
		spec.Percent, kind = uint32(number), "percent"
	case strings.HasPrefix(help, "another task_scheduler"):
		spec.TaskScheduler, kind = terms.TaskRoundRobin, "scheduler"
	case strings.HasPrefix(help, "the end of "):
		kind = "end"
		s.StopJob(s.JobOf(terms.JobName(strings.TrimPrefix(help, "the end of "))).ID)
	case scan(help, "nodes with %d virtual", &number):
		kind = "nodes"
		addShared(s, "more", uint32(number), true)
	case scan(text, " with %d virtual", &number):
		kind = "node"
		addShared(s, "more", uint32(number), true)
	default:
		return "" // what concerns the tree of pools is tried by its own tests
	}
	if kind == "priority" || kind == "percent" || kind == "scheduler" {
		s.AddVersion(id, facts.JobVersion{Kind: facts.Submitted, Spec: &spec}, nil)
	}
	placeShares(s)
	if after, _ := s.Job(id).Tasks[task].Share(); after <= before {
		return fmt.Sprintf("no %s: %d, then %d", kind, before, after)
	}
	return kind
}

// Tries is forecast.Tries, which tests in this package cannot import.
var Tries func(*cluster.State, terms.JobName) Try

func scan(text, format string, number *int) bool {
	n, _ := fmt.Sscanf(text, format, number)
	return n == 1
}

func placeShares(s *cluster.State) {
	for range 3 {
		s.Index++
		schedule.Run(s, nil, nil, func(r facts.SlotRef, _ terms.JobID, _ preempt.Rule) { s.StopSlot(r, facts.ByPreemption) })
	}
}

func sharedCluster(r *rand.Rand) *cluster.State {
	s := cluster.NewState()
	for i := range 2 + r.IntN(3) {
		addShared(s, fmt.Sprint("n", i), 1+r.Uint32N(4), r.IntN(2) == 0)
	}
	p := terms.NewPool("lab")
	p.JobScheduler = terms.JobScheduler(r.IntN(4))
	s.SetPools([]terms.Pool{terms.NewPool(terms.DefaultPool), p})
	return s
}

func addShared(s *cluster.State, name string, peers uint32, disk bool) {
	n := s.EnsureNode(terms.NodeName(name)).Index
	s.Wrote(n, 1, 1)
	s.SetPeer(n, terms.NewPeerID(s.Node(n).Name, 1))
	o := &terms.Offer{Capacity: terms.Resources{64_000, 64 << 30},
		Devices: []terms.DeviceOffer{{Kind: terms.VirtualPeers.String(), Count: peers}}}
	if disk {
		o.Attributes = []terms.EnvVar{{Name: "disk", Value: "ssd"}}
	}
	s.SetOffer(n, o)
}

func sharedJob(r *rand.Rand, number int) *terms.Job {
	schedulers := []terms.TaskScheduler{terms.TaskGreedy, terms.TaskRoundRobin, terms.TaskPercentage, terms.TaskFixed,
		terms.TaskColocated}
	j := &terms.Job{Name: terms.JobName(fmt.Sprint("lab/j", number)), Type: terms.Batch, Priority: uint32(r.IntN(3)) * 10,
		TaskScheduler: schedulers[r.IntN(len(schedulers))], Percent: uint32(r.IntN(4)) * 20}
	for i := range 1 + r.IntN(3) {
		task := terms.Task{Name: terms.TaskName(fmt.Sprint("t", i)), Instances: 1 + r.Uint32N(6), Command: []string{"true"},
			Placement: terms.Pack, Resources: terms.Resources{100}}
		if r.IntN(4) == 0 && j.TaskScheduler != terms.TaskColocated {
			task.MinAvailable = 1 + r.Uint32N(task.Instances)
		}
		if r.IntN(4) == 0 {
			task.Constraints = []constraint.Constraint{{Attribute: "disk", Operator: constraint.Exists}}
		}
		j.Tasks = append(j.Tasks, task)
	}
	j.OnVirtualPeers()
	return j
}
