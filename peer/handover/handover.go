// Package handover passes on what the instances of a workflow leave for those that come after them: it seals an output
// with a manifest, brings outputs from other machines and checks them, and lays them out as the input of a task.
package handover

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

	"starling/driver"
	"starling/driver/disk"
	"starling/driver/manifest"
	"starling/replica/reaction"
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

// ErrLater is why an instance is not started yet, and that this may change by itself.
var ErrLater = errors.New("trying again")

// Config is what outputs are passed on with.
type Config struct {
	Driver driver.Driver
	Node   terms.NodeName
	// Fetch reads an output from the peer at the address, as Send writes it there; the error is os.ErrNotExist if that has
	// none.
	Fetch func(ctx context.Context, address string, output terms.OutputSet) (io.ReadCloser, error)
	// Lost takes the news that what was made here is not here any more.
	Lost func(terms.AllocationID)
}

// Outputs are those of one machine. They are safe for concurrent use.
type Outputs struct {
	Config
	// fetches has a place for every output on its way here, seals for every manifest that is made.
	fetches, seals chan struct{}
	lock           sync.Mutex
	// busy has those that somebody looks for; the channel is closed when that is over.
	busy map[terms.OutputSet]chan struct{}
}

// New returns the outputs of a machine.
func New(config Config) *Outputs {
	return &Outputs{Config: config, fetches: make(chan struct{}, fetchesMax), seals: make(chan struct{}, sealsMax),
		busy: map[terms.OutputSet]chan struct{}{}}
}

// volume makes a volume if it is missing. It leaves it to the driver to give it to the account that uses it, which only
// that knows where an image names it.
func (o *Outputs) volume(set terms.OutputSet, name string) (path string, err error) {
	return o.Driver.MakeVolume(driver.Volume{Set: set.String(), Name: name})
}

// Seal makes the manifest of an output that nobody writes to any more.
func (o *Outputs) Seal(ctx context.Context, set terms.OutputSet) error {
	select {
	case o.seals <- struct{}{}:
		defer func() { <-o.seals }()
	case <-ctx.Done():
		return ctx.Err()
	}
	beside, err := o.volume(set, manifestVolume)
	if err != nil {
		return err
	}
	if _, err := manifest.Kept(beside); err == nil {
		return nil
	}
	dir, err := o.volume(set, outputVolume)
	if err != nil {
		return err
	}
	m, err := manifest.Of(ctx, dir)
	if err != nil {
		return err
	}
	return m.Keep(beside)
}

// Grown returns manifest.ErrUnfit if an output has outgrown the limits while somebody writes to it.
func (o *Outputs) Grown(ctx context.Context, set terms.OutputSet) error {
	dir, err := o.volume(set, outputVolume)
	if err != nil {
		return err
	}
	return manifest.Grown(ctx, dir)
}

// Prepare gives a task its folders, with the outputs of what it comes after, and tells which it brings from elsewhere.
// An error that is ErrLater may go by itself.
func (o *Outputs) Prepare(ctx context.Context, task *driver.Task, h *reaction.Handover,
	tell func(bringing string)) error {
	if h.Problem != "" {
		return fmt.Errorf("%w: %s", ErrLater, h.Problem)
	}
	if err := o.empty(h.Output, outputVolume); err != nil {
		return err
	}
	set := h.Output.String()
	task.Volumes = append(task.Volumes, driver.Volume{Set: set, Name: outputVolume, Variable: "STARLING_OUTPUT"})
	if len(h.Inputs) == 0 {
		return nil
	}
	if err := o.empty(h.Output, inputVolume); err != nil {
		return err
	}
	dir, err := o.volume(h.Output, inputVolume)
	if err != nil {
		return err
	}
	for i := range h.Inputs {
		in := &h.Inputs[i]
		what := fmt.Sprintf("the output of %s on node %s", in.Output.Allocation, in.Node)
		if in.User != h.User {
			return fmt.Errorf("%s belongs to %s, and this instance runs as %s: run both as the same user", what,
				nameOf(in.User, in.Image), nameOf(h.User, task.Container != nil))
		}
		path, err := o.obtain(ctx, in, func() { tell(what + ": it is brought from there") })
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		slot := in.Output.Allocation.Slot
		link := filepath.Join(dir, string(slot.Task), strconv.FormatUint(uint64(slot.Index), 10))
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(path, link)); err != nil {
			return err
		}
		task.Reads = append(task.Reads, path)
	}
	task.Volumes = append(task.Volumes,
		driver.Volume{Set: set, Name: inputVolume, Variable: "STARLING_INPUT", ReadOnly: true})
	return nil
}

// nameOf is what people call an account.
func nameOf(user string, ofImage bool) string {
	_, own := driver.OwnNumber(user)
	switch {
	case own:
		return "the job's own user"
	case user == "" && ofImage:
		return "the user of its image"
	case user == "":
		return "the agent's own user"
	}
	return fmt.Sprintf("the user %q", user)
}

// empty makes a volume without anything in it.
func (o *Outputs) empty(set terms.OutputSet, name string) error {
	path, err := o.volume(set, name)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	for _, entry := range entries {
		err = errors.Join(err, disk.RemoveAll(filepath.Join(path, entry.Name())))
	}
	return err
}

// obtain returns the folder of an output on this machine: where it was made, or a copy that is brought first.
func (o *Outputs) obtain(ctx context.Context, in *reaction.Input, tell func()) (path string, err error) {
	release, err := o.reserve(ctx, in.Output)
	if err != nil {
		return "", err
	}
	defer release()
	beside, err := o.volume(in.Output, manifestVolume)
	if err != nil {
		return "", err
	}
	if path, err = o.volume(in.Output, outputVolume); err != nil {
		return "", err
	}
	m, err := manifest.Kept(beside)
	if err == nil {
		err = m.Check(path)
	}
	switch {
	case err == nil:
		return path, nil
	case in.Node == o.Node && isGone(err):
		o.Lost(in.Output.Allocation)
		return "", fmt.Errorf("%w: it is not there any more, and is made again", ErrLater)
	case in.Node == o.Node:
		return "", err
	case in.Address == "":
		return "", fmt.Errorf("%w: the node is not in the cluster now", ErrLater)
	}
	tell()
	return path, o.bring(ctx, in, path, beside)
}

// reserve waits until nobody else looks for the output here.
func (o *Outputs) reserve(ctx context.Context, set terms.OutputSet) (release func(), err error) {
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
			return nil, fmt.Errorf("%w: %w", ErrLater, ctx.Err())
		}
	}
}

// bring copies an output from the peer that has it. The copy takes its place when all of it was checked, and counts
// when its manifest stands beside it.
func (o *Outputs) bring(ctx context.Context, in *reaction.Input, path, beside string) error {
	select {
	case o.fetches <- struct{}{}:
		defer func() { <-o.fetches }()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrLater, ctx.Err())
	}
	if err := o.empty(in.Output, incomingVolume); err != nil {
		return err
	}
	incoming, err := o.volume(in.Output, incomingVolume)
	if err != nil {
		return err
	}
	stream, err := o.Fetch(ctx, in.Address, in.Output)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLater, err)
	}
	defer stream.Close()
	m, err := manifest.Receive(stream, incoming, func(total int64) error { return disk.SpareFor(incoming, total) }, nil)
	if err != nil {
		return later(err)
	}
	if err := errors.Join(disk.RemoveAll(path), os.Rename(incoming, path)); err != nil {
		return err
	}
	return m.Keep(beside)
}

// isGone tells whether an output is not what it was when it was whole.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, manifest.ErrChanged)
}

// later marks an error of what comes from another machine: all but what cannot be passed on, what has no room here, and
// what is wrong with the files here. What the other does not have any more is made again.
func later(err error) error {
	here := (*fs.PathError)(nil)
	if errors.As(err, &here) || errors.Is(err, manifest.ErrUnfit) || errors.Is(err, disk.ErrNoRoom) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrLater, err)
}

// Send writes an output that is whole here; the error is os.ErrNotExist if there is none. That it should be here and is
// not the peer tells the others.
func (o *Outputs) Send(set terms.OutputSet, to io.Writer) error {
	err := o.send(set, to)
	if isGone(err) {
		o.Lost(set.Allocation)
		err = fmt.Errorf("%w: %w", os.ErrNotExist, err)
	}
	if err != nil {
		return fmt.Errorf("the output of %s: %w", set.Allocation, err)
	}
	return nil
}

func (o *Outputs) send(set terms.OutputSet, to io.Writer) error {
	if !slices.Contains(o.Driver.VolumeSets(), set.String()) {
		return os.ErrNotExist
	}
	beside, err := o.volume(set, manifestVolume)
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
