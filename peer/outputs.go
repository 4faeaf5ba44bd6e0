package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"starling/cluster/facts"
	"starling/driver"
	"starling/driver/manifest"
	"starling/replica"
	"starling/terms"
)

// The volumes of an output's set: what the instance left, what it got, the manifest without which the output is not
// whole, and what is on its way from elsewhere.
const (
	outputVolume   = "output"
	inputVolume    = "input"
	manifestVolume = "manifest"
	incomingVolume = "incoming"
)

// fetchesMax bounds the outputs that are brought here at a time, sealsMax those of which a manifest is made.
const (
	fetchesMax = 4
	sealsMax   = 2
)

// errLater is why an instance is not started yet, and that this may change by itself.
var errLater = errors.New("trying again")

// outputs passes on what the instances of workflows leave for each other.
type outputs struct {
	driver driver.Driver
	node   terms.NodeName
	fetch  func(ctx context.Context, address string, output terms.OutputSet) (io.ReadCloser, error)
	// Only the loop touches the next four. growing are the outputs of instances that run; sealed has true for what has its
	// manifest, or cannot have one, and false while it is made; cancel ends the preparation of an instance; waits says why
	// one is not started.
	growing []terms.OutputSet
	sealed  map[terms.AllocationID]bool
	cancel  map[terms.AllocationID]context.CancelFunc
	waits   map[terms.AllocationID]string
	// fetches has a place for every output on its way here, seals for every manifest that is made.
	fetches, seals chan struct{}
	lock           sync.Mutex
	// lost takes the news that what was made here is not here any more.
	lost func(terms.AllocationID)
	// busy has those that somebody looks for; the channel is closed when that is over.
	busy map[terms.OutputSet]chan struct{}
}

func newOutputs(config *Config) *outputs {
	return &outputs{
		driver: config.Driver, node: config.Node, fetch: config.Fetch, sealed: map[terms.AllocationID]bool{},
		cancel: map[terms.AllocationID]context.CancelFunc{}, waits: map[terms.AllocationID]string{},
		fetches: make(chan struct{}, fetchesMax), seals: make(chan struct{}, sealsMax),
		busy: map[terms.OutputSet]chan struct{}{},
	}
}

func (o *outputs) volume(set terms.OutputSet, name, user string) (path string, err error) {
	return o.driver.MakeVolume(driver.Volume{Set: set.String(), Name: name}, user)
}

// seal makes the manifest of an output that nobody writes to any more.
func (o *outputs) seal(ctx context.Context, set terms.OutputSet) error {
	select {
	case o.seals <- struct{}{}:
		defer func() { <-o.seals }()
	case <-ctx.Done():
		return ctx.Err()
	}
	beside, err := o.volume(set, manifestVolume, "")
	if err != nil {
		return err
	}
	if _, err := manifest.Kept(beside); err == nil {
		return nil
	}
	dir, err := o.volume(set, outputVolume, "")
	if err != nil {
		return err
	}
	m, err := manifest.Of(ctx, dir)
	if err != nil {
		return err
	}
	return m.Keep(beside)
}

// sealing tells whether the success of an allocation is not to be told yet, because its output has no manifest. That is
// made beside the loop; if it cannot be, the allocation has failed.
func (p *Peer) sealing(ctx context.Context, set terms.OutputSet) bool {
	id := set.Allocation
	done, begun := p.outputs.sealed[id]
	if begun {
		return !done
	}
	p.outputs.sealed[id] = false
	p.group.Add(1)
	go func() {
		defer p.group.Done()
		err := p.outputs.seal(ctx, set)
		p.post(ctx, func() {
			if p.outputs.sealed[id] = true; err != nil {
				p.log.Error("an output cannot be passed on", "allocation", id.String(), "error", err)
				p.core.CheckFailed(id, fmt.Sprintf("its output folder: %v", err))
			}
			p.driverChanged(ctx)
		})
	}()
	return true
}

// measureEvery is the pause between two looks at how large outputs have become.
const measureEvery = 10 * time.Second

// measure ends instances whose output has outgrown the limits before it fills the disk, until ctx ends.
func (p *Peer) measure(ctx context.Context) {
	defer p.group.Done()
	for pause(ctx, measureEvery); ctx.Err() == nil; pause(ctx, measureEvery) {
		growing := make(chan []terms.OutputSet, 1)
		p.post(ctx, func() { growing <- slices.Clone(p.outputs.growing) })
		select {
		case all := <-growing:
			for _, set := range all {
				p.measureOne(ctx, set)
			}
		case <-ctx.Done():
		}
	}
}

func (p *Peer) measureOne(ctx context.Context, set terms.OutputSet) {
	dir, err := p.outputs.volume(set, outputVolume, "")
	if err == nil {
		err = manifest.Grown(ctx, dir)
	}
	switch {
	case errors.Is(err, manifest.ErrUnfit):
		p.log.Error("an output has become too large", "allocation", set.Allocation.String(), "error", err)
		p.post(ctx, func() { p.core.CheckFailed(set.Allocation, fmt.Sprintf("its output folder: %v", err)) })
	case err != nil && ctx.Err() == nil:
		p.log.Warn("an output cannot be measured", "allocation", set.Allocation.String(), "error", err)
	}
}

// prepare gives a task its folders, with the outputs of what it comes after, and tells which it brings from elsewhere.
// An error that is errLater may go by itself.
func (o *outputs) prepare(ctx context.Context, task *driver.Task, h *replica.Handover,
	tell func(bringing string)) error {
	if h.Problem != "" {
		return fmt.Errorf("%w: %s", errLater, h.Problem)
	}
	if err := o.empty(h.Output, outputVolume, h.User); err != nil {
		return err
	}
	set := h.Output.String()
	task.Volumes = append(task.Volumes, driver.Volume{Set: set, Name: outputVolume, Variable: "STARLING_OUTPUT"})
	if len(h.Inputs) == 0 {
		return nil
	}
	if err := o.empty(h.Output, inputVolume, h.User); err != nil {
		return err
	}
	dir, err := o.volume(h.Output, inputVolume, h.User)
	if err != nil {
		return err
	}
	for i := range h.Inputs {
		in := &h.Inputs[i]
		what := fmt.Sprintf("the output of %s on node %s", in.Output.Allocation, in.Node)
		path, err := o.obtain(ctx, in, h.User, func() { tell(what + ": it is brought from there") })
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		slot := in.Output.Allocation.Slot
		link := filepath.Join(dir, string(slot.Task), strconv.FormatUint(uint64(slot.Index), 10))
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(path, link)); err != nil {
			return err
		}
	}
	task.Volumes = append(task.Volumes, driver.Volume{Set: set, Name: inputVolume, Variable: "STARLING_INPUT"})
	return nil
}

// empty makes a volume without anything in it.
func (o *outputs) empty(set terms.OutputSet, name, user string) error {
	path, err := o.volume(set, name, user)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(path, entry.Name())))
	}
	return err
}

// obtain returns the folder of an output on this machine: where it was made, or a copy that is brought first.
func (o *outputs) obtain(ctx context.Context, in *replica.Input, user string, tell func()) (path string, err error) {
	if in.User != user {
		return "", fmt.Errorf("it belongs to the user %q, and this instance runs as %q: run both as the same", in.User, user)
	}
	release, err := o.reserve(ctx, in.Output)
	if err != nil {
		return "", err
	}
	defer release()
	beside, err := o.volume(in.Output, manifestVolume, "")
	if err != nil {
		return "", err
	}
	if path, err = o.volume(in.Output, outputVolume, in.User); err != nil {
		return "", err
	}
	m, err := manifest.Kept(beside)
	if err == nil {
		err = m.Check(path)
	}
	switch {
	case err == nil:
		return path, nil
	case in.Node == o.node && isGone(err):
		o.lost(in.Output.Allocation)
		return "", fmt.Errorf("%w: it is not there any more, and is made again", errLater)
	case in.Node == o.node:
		return "", err
	case in.Address == "":
		return "", fmt.Errorf("%w: the node is not in the cluster now", errLater)
	}
	tell()
	return path, o.bring(ctx, in, path, beside)
}

// reserve waits until nobody else looks for the output here.
func (o *outputs) reserve(ctx context.Context, set terms.OutputSet) (release func(), err error) {
	mine := make(chan struct{})
	for {
		o.lock.Lock()
		other := o.busy[set]
		if other == nil {
			o.busy[set] = mine
		}
		o.lock.Unlock()
		if other == nil {
			return func() {
				o.lock.Lock()
				delete(o.busy, set)
				o.lock.Unlock()
				close(mine)
			}, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", errLater, ctx.Err())
		}
	}
}

// bring copies an output from the peer that has it. The copy takes its place when all of it was checked, and counts
// when its manifest stands beside it.
func (o *outputs) bring(ctx context.Context, in *replica.Input, path, beside string) error {
	select {
	case o.fetches <- struct{}{}:
		defer func() { <-o.fetches }()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errLater, ctx.Err())
	}
	if err := o.empty(in.Output, incomingVolume, ""); err != nil {
		return err
	}
	incoming, err := o.volume(in.Output, incomingVolume, "")
	if err != nil {
		return err
	}
	stream, err := o.fetch(ctx, in.Address, in.Output)
	if err != nil {
		return fmt.Errorf("%w: %w", errLater, err)
	}
	defer stream.Close()
	m, err := manifest.Receive(stream, incoming, nil)
	if err != nil {
		return later(err)
	}
	if err := give(incoming, path); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(path), os.Rename(incoming, path)); err != nil {
		return err
	}
	return m.Keep(beside)
}

// isGone tells whether an output is not what it was when it was whole.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, manifest.ErrChanged)
}

// later marks an error of what comes from another machine: all but what cannot be passed on, and what is wrong with the
// files here. What the other does not have any more is made again.
func later(err error) error {
	if here := (*fs.PathError)(nil); errors.As(err, &here) || errors.Is(err, manifest.ErrUnfit) {
		return err
	}
	return fmt.Errorf("%w: %w", errLater, err)
}

// give makes all in a folder, and the folder, belong to whom another belongs to.
func give(dir, like string) error {
	info, err := os.Stat(like)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) == os.Getuid() {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(owner.Uid), int(owner.Gid)))
	})
}

// SendOutput writes an output that is whole here; the error is os.ErrNotExist if there is none. That it should be here
// and is not the peer tells the others.
func (p *Peer) SendOutput(_ context.Context, set terms.OutputSet, to io.Writer) error {
	err := p.outputs.send(set, to)
	if isGone(err) {
		p.outputs.lost(set.Allocation)
		err = fmt.Errorf("%w: %w", os.ErrNotExist, err)
	}
	if err != nil {
		return fmt.Errorf("the output of %s: %w", set.Allocation, err)
	}
	return nil
}

func (o *outputs) send(set terms.OutputSet, to io.Writer) error {
	if !slices.Contains(o.driver.VolumeSets(), set.String()) {
		return os.ErrNotExist
	}
	beside, err := o.volume(set, manifestVolume, "")
	if err != nil {
		return err
	}
	m, err := manifest.Kept(beside)
	if err != nil {
		return err
	}
	dir := filepath.Join(filepath.Dir(beside), outputVolume)
	if err := m.Check(dir); err != nil {
		return err
	}
	return m.Send(dir, to)
}

// handOver prepares a task of a workflow, beside the loop. It returns why it cannot be started, if so, and false if
// that is to be tried again.
func (p *Peer) handOver(ctx context.Context, task *driver.Task, h *replica.Handover) (refusal string, ok bool) {
	id := h.Output.Allocation
	err := p.outputs.prepare(ctx, task, h, func(bringing string) {
		p.post(ctx, func() {
			if p.outputs.waits[id] == "" { // what went wrong the last time says more
				p.outputs.waits[id] = bringing
			}
		})
	})
	if err == nil {
		p.post(ctx, func() { delete(p.outputs.waits, id) })
		return "", true
	}
	p.post(ctx, func() {
		if reason := err.Error(); p.outputs.waits[id] != reason && ctx.Err() == nil {
			p.outputs.waits[id] = reason
			p.log.Warn("an instance is not started yet: its input is not there", "allocation", id.String(), "reason", reason)
		}
	})
	if errors.Is(err, errLater) || ctx.Err() != nil {
		return "", false
	}
	return clipped("its input: " + err.Error()), true
}

func clipped(reason string) string { return reason[:min(len(reason), facts.FailureDetailBytesMax)] }

// abandon ends the preparation of what is not wanted any more, and forgets what is over.
func (p *Peer) abandon() {
	for id, cancel := range p.outputs.cancel {
		if !replica.IsDue(p.core.state, id) {
			cancel()
		}
	}
	for id := range p.outputs.waits {
		if !replica.IsDue(p.core.state, id) {
			delete(p.outputs.waits, id)
		}
	}
}
