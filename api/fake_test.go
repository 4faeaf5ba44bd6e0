package api

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"starling/api/client"
	"starling/api/door"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/registry"
	"starling/command"
	"starling/driver"
	"starling/replica"
	"starling/replica/report"
	"starling/replica/storage"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/constraint"
	"starling/terms/rules"
)

// herd is a cluster without journal and network: a value that all its fake peers share.
type herd struct {
	lock    sync.Mutex
	state   *cluster.State
	entries []*report.Folded
	// oldest is the first entry that is remembered.
	oldest terms.Index
	seq    map[terms.PeerID]uint64
	// changed is closed and replaced with every entry.
	changed chan struct{}
}

func newHerd() *herd {
	return &herd{state: cluster.NewState(), oldest: 1, seq: map[terms.PeerID]uint64{}, changed: make(chan struct{})}
}

// add folds an entry of the writer.
func (h *herd) add(writer terms.PeerID, commands ...command.Command) *report.Folded {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.seq[writer]++
	e := &command.Entry{
		Writer: writer, Seq: h.seq[writer], Time: 1_700_000_000_000 + terms.Time(h.state.Index),
		Cause: h.state.Index, Commands: commands,
	}
	outcome := replica.Apply(h.state, h.state.Index+1, e, true)
	folded := &report.Folded{
		Index: h.state.Index, Entry: e, Outcome: outcome, Digest: h.state.Digest(), Bytes: len(command.Encode(e)),
	}
	h.entries = append(h.entries, folded)
	close(h.changed)
	h.changed = make(chan struct{})
	return folded
}

// garble folds an entry that nobody can read.
func (h *herd) garble() {
	h.lock.Lock()
	defer h.lock.Unlock()
	outcome := replica.Skip(h.state, h.state.Index+1, 0, "entry has encoding version 9")
	h.entries = append(h.entries, &report.Folded{Index: h.state.Index, Outcome: outcome, Digest: h.state.Digest(),
		Bytes: 3})
	close(h.changed)
	h.changed = make(chan struct{})
}

// peer is a fake peer; tests change its fields.
type peer struct {
	*herd
	self   terms.PeerID
	status report.PeerStatus
	pulses []report.PulseView
	// failure is what every call returns, if not nil.
	failure error
	// silence is why the journal does not answer, since silentSince.
	silence     error
	silentSince time.Time
	// stuck peers fold nothing that is submitted.
	stuck bool
	// unread ones have not read the journal yet.
	unread  bool
	outputs map[terms.OutputSet]string
	// volumes are what sets hold here, "" for one that something writes to.
	volumes map[terms.VolumeSet]string
	// folder is where all its allocations work, "" for nowhere.
	folder  string
	archive Archive
	logs    map[string]func(ctx context.Context, o driver.LogOptions) (io.ReadCloser, error)
}

func (h *herd) peer(self terms.PeerID) *peer {
	return &peer{
		herd: h, self: self, status: report.PeerStatus{Self: self, Phase: "member"},
		logs: map[string]func(context.Context, driver.LogOptions) (io.ReadCloser, error){},
	}
}

func (p *peer) Archive() Archive {
	if p.archive == nil {
		return nil
	}
	return p.archive
}

func (p *peer) Self() terms.PeerID { return p.self }

func (p *peer) Status() report.PeerStatus {
	p.lock.Lock()
	defer p.lock.Unlock()
	status := p.status
	status.Index = p.state.Index
	return status
}

func (p *peer) Head(context.Context) (terms.Index, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.state.Index, p.failure
}

func (p *peer) Silence() (time.Time, error) { return p.silentSince, p.silence }

func (p *peer) State(ctx context.Context, least terms.Index) (*cluster.State, error) {
	for p.failure == nil {
		p.lock.Lock()
		changed := p.changed
		if p.state.Index >= least {
			defer p.lock.Unlock()
			return p.state.Copy(), nil
		}
		p.lock.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, p.failure
}

func (p *peer) HasRead() bool { return !p.unread }

func (p *peer) Registry() (all *registry.Registry, inForce bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.state.Registry(), p.state.Rules >= rules.Registry
}

func (p *peer) Submit(ctx context.Context, c command.Command) (report.Receipt, error) {
	if p.failure != nil {
		return report.Receipt{}, p.failure
	}
	if p.stuck {
		<-ctx.Done()
		return report.Receipt{}, ctx.Err()
	}
	folded := p.add(p.self, c)
	result := folded.Outcome.Results[0]
	return report.Receipt{Index: folded.Index, Refusal: result.Refusal, Job: result.Job}, nil
}

func (p *peer) Follow(ctx context.Context, from terms.Index, visit func(*report.Folded) error) error {
	if p.failure != nil {
		return p.failure
	}
	for next := max(from, p.oldest); ; next++ {
		if _, err := p.State(ctx, next); err != nil {
			return err
		}
		p.lock.Lock()
		entry := p.entries[next-1]
		p.lock.Unlock()
		if err := visit(entry); err != nil {
			return err
		}
	}
}

func (p *peer) Remembered(_ context.Context, from terms.Index, visit func(*report.Folded) error) error {
	p.lock.Lock()
	entries := p.entries
	p.lock.Unlock()
	for next := max(from, p.oldest); int(next) <= len(entries); next++ {
		if err := visit(entries[next-1]); err != nil {
			return err
		}
	}
	return p.failure
}

func (p *peer) Folder(string) (*os.Root, error) {
	if p.folder == "" {
		return nil, errors.New("it is forgotten")
	}
	return os.OpenRoot(p.folder)
}

func (p *peer) Logs(ctx context.Context, allocation string, o driver.LogOptions) (io.ReadCloser, error) {
	p.lock.Lock()
	open := p.logs[allocation]
	p.lock.Unlock()
	if open == nil {
		return nil, fmt.Errorf("fake: %s: %w", allocation, os.ErrNotExist)
	}
	return open(ctx, o)
}

func (p *peer) Pulses(context.Context) ([]report.PulseView, error) { return p.pulses, p.failure }

// writes gives the allocation an output.
func (p *peer) writes(allocation, output string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.logs[allocation] = func(_ context.Context, o driver.LogOptions) (io.ReadCloser, error) {
		text := output
		if o.Stream == driver.Stderr {
			text = "errors of " + allocation
		}
		if o.TailBytes >= 0 {
			text = text[max(0, len(text)-int(o.TailBytes)):]
		}
		return io.NopCloser(strings.NewReader(text)), nil
	}
}

// serve answers for the peer at a socket of its own, to this user as an admin, until the test ends.
func (p *peer) serve(t *testing.T, change ...func(*server)) (address string) {
	t.Helper()
	s := newServer(p, Options{Version: "v0", Log: slog.New(slog.DiscardHandler)})
	for _, one := range change {
		one(s)
	}
	address = serveHandler(t, s.handler())
	t.Cleanup(s.peers.CloseIdleConnections)
	return address
}

func serveHandler(t *testing.T, handler http.Handler) string {
	t.Helper()
	socket := filepath.Join(socketFolder(t), "api")
	opened, err := door.Open(door.Config{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	opened.Answer(handler, nil)
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return wire.UnixPrefix + socket
}

// socketFolder is a folder whose path is short enough for a socket.
func socketFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "api-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

// plain is a client that speaks HTTP/1.1, as curl does.
func plain() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			path, err := hex.DecodeString(strings.TrimSuffix(address, ".unix:80"))
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, "unix", string(path))
		},
	}}
}

// ask returns a client of the peers at the addresses.
func ask(t *testing.T, addresses ...string) *client.Client {
	t.Helper()
	c := client.New(addresses)
	t.Cleanup(c.Close)
	return c
}

// within bounds what a test waits for.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// pair is a herd of two members, a~1 and b~1, which both give four cores.
func pair() (a, b *peer) {
	h := newHerd()
	h.add("a~1", &command.PrepareJoin{Joiner: "a~1", Attempt: 1})
	h.add("b~1", &command.PrepareJoin{Joiner: "b~1", Attempt: 1})
	h.add("a~1", &command.NotifyJoin{Joiner: "b~1", Attempt: 1})
	h.add("b~1", &command.AcceptJoin{Joiner: "b~1", Observer: "a~1", Attempt: 1})
	a, b = h.peer("a~1"), h.peer("b~1")
	a.volunteer("")
	b.volunteer("")
	return a, b
}

// volunteer offers four cores and some more.
func (p *peer) volunteer(address string) {
	p.add(p.self, &command.Volunteer{Peer: p.self, Offer: terms.Offer{
		Capacity:   terms.Resources{4000, 8 << 30, 100 << 30},
		Attributes: []terms.EnvVar{{Name: "node", Value: string(p.self.Node())}},
		Devices:    []terms.DeviceOffer{{Kind: "gpu", Model: "T4", Count: 1}},
		PortFirst:  20000, PortLast: 20010, Address: address,
	}})
}

// jobOn is a job of one task with so many instances of one core each, all on the node.
func jobOn(name terms.JobName, instances uint32, node string) *terms.Job {
	return &terms.Job{Name: name, Type: terms.Batch, Tasks: []terms.Task{{
		Name: "main", Instances: instances, Command: []string{"work"}, Placement: terms.Pack,
		Resources:   terms.Resources{1000, 1 << 20, 0},
		Ports:       []terms.PortRequest{{Name: "http"}},
		Constraints: []constraint.Constraint{{Attribute: "node", Operator: constraint.Equal, Values: []string{node}}},
	}}}
}

// report tells what became of the slot's present allocation.
func (p *peer) report(slot terms.SlotName, ended facts.Ending) {
	p.lock.Lock()
	r, _ := p.state.RefOf(slot)
	row, _ := p.state.SlotAt(r)
	p.lock.Unlock()
	p.add(p.self, &command.ReportTasks{Peer: p.self, Reports: []command.Report{{Slot: r, Order: row.Order, Ended: ended}}})
}

// ready tells that the slot's present allocation runs and has passed its checks.
func (p *peer) ready(r facts.SlotRef) {
	p.lock.Lock()
	row, _ := p.state.SlotAt(r)
	p.lock.Unlock()
	p.add(p.self, &command.ReportTasks{Peer: p.self, Reports: []command.Report{{Slot: r, Order: row.Order, Ready: true}}})
}

func (p *peer) SealSecret(_ context.Context, pool terms.PoolPath, name string, value []byte) (access.Secret, error) {
	return access.Secret{Pool: pool, Name: name, Sealed: fmt.Sprintf("%x", value)}, nil
}

func (p *peer) VolumeBytes(_ context.Context, set terms.VolumeSet) (map[string]int64, error) {
	held, ok := p.volumes[set]
	if !ok {
		return nil, os.ErrNotExist
	}
	return map[string]int64{"logs": 1, "data": int64(len(held))}, nil
}

func (p *peer) SendVolumes(_ context.Context, set terms.VolumeSet, to io.Writer) error {
	held, ok := p.volumes[set]
	if ok && held == "" {
		return storage.ErrInUse
	}
	if !ok {
		return os.ErrNotExist
	}
	_, err := io.WriteString(to, held)
	return err
}

func (p *peer) TakeVolumes(move *command.MoveVolumes, from io.Reader) (report.Receipt, error) {
	all, err := io.ReadAll(from)
	if err != nil {
		return report.Receipt{}, err
	}
	p.volumes = map[terms.VolumeSet]string{move.Volumes: string(all)}
	return p.Submit(context.Background(), move)
}

func (p *peer) SendOutput(_ context.Context, output terms.OutputSet, to io.Writer) error {
	text, ok := p.outputs[output]
	if !ok {
		return os.ErrNotExist
	}
	_, err := io.WriteString(to, text)
	return err
}

// Attach says where it is and that it goes on, and ends with 8.
func (p *peer) Attach(_ context.Context, id terms.AllocationID, s driver.Session) (int, error) {
	fmt.Fprintln(s.Output, p.self, id, "goes on with", s.Name)
	return 8, nil
}

// Sessions are one.
func (p *peer) Sessions(id terms.AllocationID) []driver.SessionStatus {
	return []driver.SessionStatus{{Task: id.String(), Name: "abc", Command: []string{"sh"}, By: "alice"}}
}

// Exec says where it is and what it was told, and ends with 7.
func (p *peer) Exec(_ context.Context, id terms.AllocationID, command []string, s driver.Session) (int, error) {
	if command[0] == "missing" {
		return driver.NoExitCode, errors.New("program missing not found")
	}
	fmt.Fprintln(s.Errors, p.self, id, command)
	if s.Terminal != nil {
		for size := range s.Terminal.Resized {
			fmt.Fprintln(s.Output, s.Terminal.Size, size, s.Env)
			break
		}
	}
	if s.Input != nil {
		_, _ = io.Copy(s.Output, s.Input)
	}
	return 7, nil
}
