package api

import (
	"cmp"
	"context"
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

// Limits of asking other peers what is in no journal.
const (
	// askMax is how long they may take, so that who asks for much has little delay because of one that is out of reach.
	askMax = time.Second
	// askedMax bounds how many are asked.
	askedMax = 16
	// startsIn is how long an instance usually takes to start; before that nobody is asked.
	startsIn = time.Second
)

// starts is what allocations that do not run yet wait for, as the peers of their nodes say.
type starts struct {
	reasons map[terms.AllocationID]string
	// silent peers did not answer.
	silent map[terms.NodeName]bool
}

// reason completes "waits for"; it is "" if nobody knows.
func (t *starts) reason(id terms.AllocationID, node terms.NodeName) string {
	if t.silent[node] {
		return "its node's peer, which does not answer"
	}
	return t.reasons[id]
}

// complete tells it of slots instead of what is written on them.
func (t *starts) complete(slots []*starlingv1.Slot) {
	for _, slot := range slots {
		if id, ok := terms.ParseAllocationID(slot.Allocation); ok && slot.Phase == facts.Assigned.String() {
			slot.WaitsFor = cmp.Or(t.reason(id, terms.NodeName(slot.Node)), slot.WaitsFor)
		}
	}
}

// starting asks the peers of the job's instances that have been assigned for a while. Of the past none is asked.
func (s *server) starting(ctx context.Context, state *cluster.State, j *workload.Job) *starts {
	if isPast(ctx) {
		return &starts{}
	}
	var nodes []*cluster.Node
	for task, t := range j.Tasks {
		if t.Counts[facts.Assigned]+t.Secondary[facts.Assigned] == 0 {
			continue
		}
		state.EachSlot(j.ID, task, func(_ facts.SlotRef, slot facts.Slot) bool {
			node := state.Node(slot.Node)
			isSlow := slot.Phase == facts.Assigned && time.Since(time.UnixMilli(int64(slot.Since))) >= startsIn
			if isSlow && node.Offer != nil && node.Offer.Address != "" && node.Peer != "" && !slices.Contains(nodes, node) {
				nodes = append(nodes, node)
			}
			return len(nodes) < askedMax
		})
	}
	return s.ask(ctx, nodes)
}

// ask asks the peers on nodes, all at a time.
func (s *server) ask(ctx context.Context, nodes []*cluster.Node) *starts {
	t := &starts{reasons: map[terms.AllocationID]string{}, silent: map[terms.NodeName]bool{}}
	ctx, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	var lock sync.Mutex
	var asking sync.WaitGroup
	for _, node := range nodes {
		if node.Name == s.backend.Self().Node() {
			continue
		}
		asking.Go(func() {
			answer, err := wire.Peer(s.peers, node.Offer.Address).Info(ctx, &starlingv1.InfoRequest{})
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
	for id, reason := range s.backend.Status().Waits {
		t.reasons[id] = reason
	}
	return t
}
