package stats

import (
	"context"
	"fmt"
	"sync"
	"time"

	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/cluster"
	"starling/driver"
	"starling/driver/device"
	"starling/terms"
)

func windowOf(millis uint32) (time.Duration, error) {
	window := time.Duration(millis) * time.Millisecond
	if window > windowMax {
		return 0, &wire.Failure{Code: wire.Invalid, Reason: fmt.Sprintf(
			"the request: window_millis must be at most %d, is %d", windowMax.Milliseconds(), millis)}
	}
	if window == 0 {
		window = windowDefault
	}
	return window, nil
}

// asking asks peers, some at a time.
type asking struct {
	ctx    context.Context
	reader *Reader
	// within bounds how long another peer may take.
	within time.Duration
	places chan struct{}
	all    sync.WaitGroup
}

func (r *Reader) asking(ctx context.Context, window time.Duration) *asking {
	return &asking{ctx: ctx, reader: r, within: window + answerMax, places: make(chan struct{}, askedMax)}
}

// node asks the peer of a node, which is nil for the one that answers, beside the caller, who waits for all. It tells
// why the node could not be asked.
func (a *asking) node(node *cluster.Node, problem *string,
	ask func(context.Context, starlingv1connect.StarlingClient) error) {
	var peer starlingv1connect.StarlingClient
	if node.Name != a.reader.Backend.Self().Node() {
		if node.Peer == "" || node.Offer == nil {
			*problem = fmt.Sprintf("node %s is not in the cluster now", node.Name)
			return
		}
		peer = wire.Peer(a.reader.Peers, node.Offer.Address)
	}
	a.all.Go(func() {
		a.places <- struct{}{}
		defer func() { <-a.places }()
		ctx, cancel := context.WithTimeout(a.ctx, a.within)
		defer cancel()
		if err := ask(ctx, peer); err != nil {
			*problem = fmt.Sprintf("the peer of node %s does not tell: %s", node.Name, wire.FailureOf(err).Reason)
		}
	})
}

// read reads twice what this machine and some of its instances use, and returns what that is per second.
func (r *Reader) read(ctx context.Context, ids []string,
	window time.Duration) (machine *starlingv1.Use, instances map[string]*starlingv1.Use, err error) {
	first, err := r.Backend.Usage(ids)
	if err != nil {
		return nil, nil, err
	}
	select {
	case <-time.After(window):
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	last, err := r.Backend.Usage(ids)
	if err != nil {
		return nil, nil, err
	}
	took := last.At.Sub(first.At)
	instances = map[string]*starlingv1.Use{}
	for id, use := range last.Tasks {
		before, ran := first.Tasks[id]
		if !ran {
			before = use
		}
		instances[id] = useOf(before, use, took)
	}
	return useOf(first.Machine, last.Machine, took), instances, nil
}

// useOf is what was used from one reading to another. A process that has ended may take what it used with it.
func useOf(before, after driver.Use, took time.Duration) *starlingv1.Use {
	perSecond := func(amount int64) int64 {
		return int64(float64(max(amount, 0)) / max(took, time.Millisecond).Seconds())
	}
	return &starlingv1.Use{
		CpuMillicores: perSecond((after.CPU - before.CPU).Microseconds()) / 1000,
		MemoryBytes:   after.MemoryBytes,
		ReadBytes:     perSecond(after.ReadBytes - before.ReadBytes),
		WrittenBytes:  perSecond(after.WrittenBytes - before.WrittenBytes),
	}
}

// gpus reads what is used of this machine's GPUs.
func (r *Reader) gpus(ctx context.Context) (all []*starlingv1.GPUUse) {
	ctx, cancel := context.WithTimeout(ctx, gpusMax)
	defer cancel()
	for _, use := range r.Backend.GPUs(ctx) {
		all = append(all, &starlingv1.GPUUse{Number: use.Number, MemoryBytes: use.MemoryBytes,
			MemoryTotalBytes: use.MemoryTotalBytes, BusyPercent: use.BusyPercent})
	}
	return all
}

// giveGPUs tells of instances what is used of the GPUs that they have for themselves.
func (r *Reader) giveGPUs(ctx context.Context, state *cluster.State, node *cluster.Node, all instances) {
	numbers := map[uint32]*starlingv1.InstanceUse{}
	for _, held := range node.Devices {
		slot, _ := state.SlotAt(held.Slot)
		id := terms.AllocationID{Slot: state.NameOf(held.Slot), Order: slot.Order}.String()
		if held.Kind == device.Kind && held.Amount >= terms.WholeDevice && all[id] != nil {
			numbers[held.Number] = all[id]
		}
	}
	if len(numbers) == 0 {
		return
	}
	for _, use := range r.gpus(ctx) {
		if one := numbers[use.GetNumber()]; one != nil {
			one.Gpus = append(one.Gpus, use)
		}
	}
}
