package watch

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	starlingv1 "starling/api/v1"
	"starling/cluster"
	"starling/command"
	"starling/replica"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/access"
	"starling/trust"
)

// folder is a peer that folds what the benchmark tells it.
type folder struct {
	mutex   sync.Mutex
	state   *cluster.State
	entries []*report.Folded
	// changed is closed and replaced with every entry.
	changed chan struct{}
}

func (p *folder) add(b *testing.B, writer terms.PeerID, commands ...command.Command) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	index := p.state.Index + 1
	e := &command.Entry{Writer: writer, Seq: uint64(index), Time: 1_700_000_000_000, Cause: p.state.Index,
		Commands: commands}
	outcome := replica.Apply(p.state, index, e, true)
	for _, result := range outcome.Results {
		if result.Refused() {
			b.Fatal(result.Refusal)
		}
	}
	p.entries = append(p.entries, &report.Folded{Index: index, Entry: e, Outcome: outcome, Digest: p.state.Digest()})
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *folder) State(context.Context, terms.Index) (*cluster.State, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.state.Copy(), nil
}

func (p *folder) Follow(ctx context.Context, from terms.Index, visit func(*report.Folded) error) error {
	for next := int(from); ; {
		p.mutex.Lock()
		entries, changed := p.entries[next-1:len(p.entries):len(p.entries)], p.changed
		p.mutex.Unlock()
		for _, folded := range entries {
			if err := visit(folded); err != nil {
				return err
			}
			next++
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// BenchmarkWatched submits jobs of one instance, an entry each, one behind the other, while some watch everything.
// "fold" is what the peer takes for an entry, "told" the same until everybody was sent what all of
// a batch changed, encoded.
func BenchmarkWatched(b *testing.B) {
	const batch = 256
	for _, watchers := range []int{0, 1, 100} {
		b.Run(fmt.Sprintf("watchers=%d", watchers), func(b *testing.B) {
			p := &folder{state: cluster.NewState(), changed: make(chan struct{})}
			offer := terms.Offer{Address: "a:1", Capacity: terms.Resources{1 << 30, 1 << 50, 1 << 50}}
			p.add(b, "a~1", &command.PrepareJoin{Joiner: "a~1", Attempt: 1})
			p.add(b, "a~1", &command.Volunteer{Peer: "a~1", Offer: offer})
			ctx, cancel := context.WithCancel(context.Background())
			var told, ended sync.WaitGroup
			var target atomic.Uint64
			send := func(r *starlingv1.WatchResponse) error {
				if _, err := proto.Marshal(r); err != nil {
					return err
				}
				if r.GetResume() == target.Load() {
					told.Done()
				}
				return nil
			}
			feed, request := New(p), Request{WatchRequest: &starlingv1.WatchRequest{},
				Caller: trust.Identity{Kind: access.OfUser, Name: "ana", Role: access.Viewer}}
			target.Store(uint64(p.state.Index))
			told.Add(watchers)
			for range watchers {
				ended.Go(func() {
					if err := feed.Watch(ctx, &request, send); ctx.Err() == nil {
						b.Error(err)
					}
				})
			}
			told.Wait() // until all are synced
			folding, job := time.Duration(0), 0
			for b.Loop() {
				target.Store(uint64(p.state.Index) + batch)
				told.Add(watchers)
				began := time.Now()
				for range batch {
					job++
					p.add(b, "a~1", &command.SubmitJob{Spec: terms.Job{Name: terms.JobName(fmt.Sprintf("j%d", job)),
						Type: terms.Batch, Tasks: []terms.Task{{Name: "main", Instances: 1, Command: []string{"work"},
							Placement: terms.Pack, Resources: terms.Resources{100, 1 << 20, 0}}}}})
				}
				folding += time.Since(began)
				told.Wait()
			}
			b.ReportMetric(float64(folding.Microseconds())/float64(job), "fold-us/entry")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(job), "told-us/entry")
			cancel()
			ended.Wait()
		})
	}
}
