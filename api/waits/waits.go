// Package waits asks other peers what is in no journal: what instances wait for that do not run yet, or are not ready.
package waits

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/terms"
)

// Limits of asking.
const (
	// longMax is how long they may take, so that who asks for much has little delay because of one that is out of reach.
	longMax = time.Second
	// askedMax bounds how many are asked.
	askedMax = 16
	// startsIn is how long an instance usually takes to start; before that nobody is asked.
	startsIn = time.Second
)

// Starts is what allocations that do not run yet, or are not ready, wait for, as the peers of their nodes say; its zero
// value knows of none.
type Starts struct {
	reasons map[terms.AllocationID]string
	// silent peers did not answer.
	silent map[terms.NodeName]bool
}

// Reason completes "waits for"; it is "" if nobody knows.
func (t *Starts) Reason(id terms.AllocationID, node terms.NodeName) string {
	if t.silent[node] {
		return "its node's peer, which does not answer"
	}
	return t.reasons[id]
}

// Complete tells it of slots instead of what is written on them.
func (t *Starts) Complete(slots []*starlingv1.Slot) {
	for _, slot := range slots {
		id, ok := terms.ParseAllocationID(slot.Allocation)
		isReady := slot.Health == facts.Ready.String() || slot.Health == facts.Healthy.String()
		if ok && (slot.Phase == facts.Assigned.String() || slot.Phase == facts.Running.String() && !isReady) {
			slot.WaitsFor = cmp.Or(t.Reason(id, terms.NodeName(slot.Node)), slot.WaitsFor)
		}
	}
}

// Peer is the peer that asks.
type Peer struct {
	// Node is its own, which is not asked; of the instances there Own says it.
	Node terms.NodeName
	Own  map[terms.AllocationID]string
	// Others is how other peers are reached.
	Others *http.Client
}

// Of asks the peers of the job's instances that have been assigned, or not ready, for a while.
func (p Peer) Of(ctx context.Context, state *cluster.State, j *workload.Job) *Starts {
	var nodes []*cluster.Node
	for task, t := range j.Tasks {
		if spec := j.TaskSpecOf(task, j.Version); t.Counts[facts.Assigned]+t.Secondary[facts.Assigned] == 0 &&
			(spec == nil || len(spec.Checks) == 0) {
			continue
		}
		state.EachSlot(j.ID, task, func(r facts.SlotRef, slot facts.Slot) bool {
			node := state.Node(slot.Node)
			waits := slot.Phase == facts.Assigned || slot.Phase == facts.Running && !slot.Health.Ready()
			isSlow := waits && time.Since(time.UnixMilli(int64(slot.Since))) >= startsIn
			if isSlow && node.Offer != nil && node.Offer.Address != "" && node.Peer != "" && !slices.Contains(nodes, node) {
				nodes = append(nodes, node)
			}
			return len(nodes) < askedMax
		})
	}
	return p.ask(ctx, nodes)
}

// ask asks the peers on nodes, all at the same time.
func (p Peer) ask(ctx context.Context, nodes []*cluster.Node) *Starts {
	t := &Starts{reasons: map[terms.AllocationID]string{}, silent: map[terms.NodeName]bool{}}
	ctx, cancel := context.WithTimeout(ctx, longMax)
	defer cancel()
	var lock sync.Mutex
	var asking sync.WaitGroup
	for _, node := range nodes {
		if node.Name == p.Node {
			continue
		}
		asking.Go(func() {
			answer, err := wire.Peer(p.Others, node.Offer.Address).Info(ctx, &starlingv1.InfoRequest{})
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				t.silent[node.Name] = true
			}
			for _, wait := range answer.GetWaits() {
				if id, ok := terms.ParseAllocationID(wait.GetAllocation()); ok {
					t.reasons[id] = wait.GetReason()
				}
			}
		})
	}
	asking.Wait()
	maps.Copy(t.reasons, p.Own)
	return t
}
