// Package stats tells what machines and instances use, through any peer: each peer reads its own machine when it is
// asked, and another asks all that are concerned. Nothing of it is in the journal.
package stats

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/driver"
	"starling/terms"
)

const (
	// windowDefault and windowMax are how long a reading takes.
	windowDefault = time.Second
	windowMax     = 10 * time.Second
	// answerMax is how long a peer may take besides, so that one that is out of reach delays the others little.
	answerMax = time.Second
	// gpusMax is how long a vendor's program may take to tell about GPUs.
	gpusMax = 500 * time.Millisecond
	// askedMax bounds the peers that are asked at a time.
	askedMax = 100
	// instancesMax bounds the instances of an answer.
	instancesMax = 10000
)

// Backend is what is asked of a peer.
type Backend interface {
	// Self names the peer's present life.
	Self() terms.PeerID
	// Usage reads what the machine uses, and those of these instances that run here.
	Usage(ids []string) (driver.Usage, error)
	// GPUs reads what is used of the machine's GPUs.
	GPUs(ctx context.Context) []driver.GPUUse
	// SecretVersions returns which versions of its secrets an instance has that runs here, by their names.
	SecretVersions(id terms.AllocationID) map[string]uint32
}

// Reader answers for one peer.
type Reader struct {
	Backend Backend
	// State returns the value at the index or later.
	State func(ctx context.Context, least uint64) (*cluster.State, error)
	// Job finds a job by its name.
	Job func(state *cluster.State, name string) (*workload.Job, error)
	// Peers is how other peers are reached.
	Peers *http.Client
}

// NodeStats tells what the members' machines use.
func (r *Reader) NodeStats(ctx context.Context,
	request *starlingv1.NodeStatsRequest) (*starlingv1.NodeStatsResponse, error) {
	window, err := windowOf(request.GetWindowMillis())
	if err != nil {
		return nil, err
	}
	state, err := r.State(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	answer := &starlingv1.NodeStatsResponse{Index: uint64(state.Index), Time: wire.Timestamp(state.Time)}
	ask := r.asking(ctx, window)
	for n := range state.Nodes() {
		node := state.Node(facts.NodeIndex(n))
		here := node.Name == r.Backend.Self().Node()
		if node.Peer == "" || node.Offer == nil || request.GetDirect() && !here {
			continue
		}
		use := &starlingv1.NodeUse{Node: string(node.Name), Capacity: wire.Resources(node.Offer.Capacity),
			Allocated: wire.Resources(held(state, node)), Instances: uint32(len(node.Held))}
		answer.Nodes = append(answer.Nodes, use)
		ask.node(node, &use.Problem, func(ctx context.Context, peer starlingv1connect.StarlingClient) error {
			if peer == nil {
				var err error
				if use.Use, _, err = r.read(ctx, nil, window); err == nil {
					use.Gpus = r.gpus(ctx)
				}
				return err
			}
			theirs, err := peer.NodeStats(ctx, &starlingv1.NodeStatsRequest{Direct: true,
				WindowMillis: uint32(window.Milliseconds())})
			for _, one := range theirs.GetNodes() {
				use.Use, use.Gpus, use.Problem = one.GetUse(), one.GetGpus(), one.GetProblem()
			}
			return err
		})
	}
	ask.all.Wait()
	return answer, nil
}

// held is what instances hold of a node.
func held(state *cluster.State, node *cluster.Node) terms.Resources {
	all, unheld := node.Offer.Capacity, state.Unheld(node.Index)
	for k := range all {
		all[k] -= unheld[k]
	}
	return all
}

// InstanceStats tells what the instances of a job use.
func (r *Reader) InstanceStats(ctx context.Context,
	request *starlingv1.InstanceStatsRequest) (*starlingv1.InstanceStatsResponse, error) {
	window, err := windowOf(request.GetWindowMillis())
	if err != nil {
		return nil, err
	}
	state, err := r.State(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	job, err := r.Job(state, request.GetJob())
	if err != nil {
		return nil, err
	}
	answer := &starlingv1.InstanceStatsResponse{Index: uint64(state.Index), Time: wire.Timestamp(state.Time)}
	placed, err := r.instances(state, job, request, answer)
	if err != nil {
		return nil, err
	}
	ask, problems := r.asking(ctx, window), map[facts.NodeIndex]*string{}
	theirs := &starlingv1.InstanceStatsRequest{MinIndex: uint64(state.Index), Job: request.GetJob(),
		Task: request.GetTask(), WindowMillis: uint32(window.Milliseconds()), Direct: true}
	for n, all := range placed {
		problems[n] = new(string)
		node := state.Node(n)
		ask.node(node, problems[n], func(ctx context.Context, peer starlingv1connect.StarlingClient) error {
			if peer == nil {
				return r.readInstances(ctx, state, node, all, window)
			}
			told, err := peer.InstanceStats(ctx, theirs)
			for _, one := range told.GetInstances() {
				if own := all[one.GetAllocation()]; own != nil {
					own.Use, own.Gpus, own.Problem = one.GetUse(), one.GetGpus(), one.GetProblem()
					if len(one.GetSecrets()) == len(own.Secrets) { // as programs tell that know of them
						own.Secrets = one.GetSecrets()
					}
				}
			}
			return err
		})
	}
	ask.all.Wait()
	for n, all := range placed {
		for _, one := range all {
			if one.Use == nil && one.Problem == "" {
				one.Problem = cmp.Or(*problems[n], "it does not run any more, or not yet")
			}
		}
	}
	return answer, nil
}

// instances are some of one node, by their allocations.
type instances map[string]*starlingv1.InstanceUse

// instances puts the job's instances that run into the answer, and returns them by node and by allocation. Those of
// other nodes are left out if the request is direct.
func (r *Reader) instances(state *cluster.State, job *workload.Job, request *starlingv1.InstanceStatsRequest,
	answer *starlingv1.InstanceStatsResponse) (placed map[facts.NodeIndex]instances, err error) {
	placed = map[facts.NodeIndex]instances{}
	known := request.GetTask() == ""
	for number, task := range job.Tasks {
		if request.GetTask() != "" && request.GetTask() != string(task.Name) {
			continue
		}
		known = true
		state.EachSlot(job.ID, number, func(ref facts.SlotRef, slot facts.Slot) bool {
			runs := slot.Phase == facts.Running || slot.Phase == facts.Stopping
			switch node := state.Node(slot.Node); {
			case !runs || request.GetDirect() && node.Name != r.Backend.Self().Node():
			case len(answer.Instances) >= instancesMax:
				answer.LeftOut++
			default:
				one := &starlingv1.InstanceUse{Task: string(task.Name), Number: ref.Index, Seat: ref.Seat.String(),
					Allocation: terms.AllocationID{Slot: state.NameOf(ref), Order: slot.Order}.String(), Node: string(node.Name)}
				if spec := job.TaskSpecOf(number, slot.Version); spec != nil {
					one.Limits, one.Secrets = wire.Resources(spec.Resources), secretsOf(spec)
				}
				if placed[slot.Node] == nil {
					placed[slot.Node] = instances{}
				}
				placed[slot.Node][one.Allocation] = one
				answer.Instances = append(answer.Instances, one)
			}
			return true
		})
	}
	if !known {
		return nil, &wire.Failure{Code: wire.NotFound, Index: state.Index,
			Reason: fmt.Sprintf("job %s has no task %s", job.Name(), request.GetTask())}
	}
	return placed, nil
}

// secretsOf are the secrets that an instance of a task reads, in versions that are not known yet.
func secretsOf(spec *terms.Task) (all []*starlingv1.InstanceSecret) {
	for _, s := range spec.PoolSecrets() {
		use := &starlingv1.SecretUse{Name: s.Name, OnChange: s.OnChange.String(), Path: s.Path, Version: s.Version}
		all = append(all, &starlingv1.InstanceSecret{Use: use})
	}
	return all
}

// readInstances reads what instances of this machine use.
func (r *Reader) readInstances(ctx context.Context, state *cluster.State, node *cluster.Node, all instances,
	window time.Duration) error {
	_, uses, err := r.read(ctx, slices.Collect(maps.Keys(all)), window)
	if err != nil {
		return err
	}
	for id, use := range uses {
		all[id].Use = use
	}
	for name, one := range all {
		id, _ := terms.ParseAllocationID(name)
		versions := r.Backend.SecretVersions(id)
		for _, s := range one.Secrets {
			s.Version = versions[s.GetUse().GetName()]
		}
	}
	r.giveGPUs(ctx, state, node, all)
	return nil
}
