package etcd

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// engine is the way to etcd that a journal uses at present: the member in this process, or a client. It may change
// under a journal that is in use: what is under way ends with an error then and is tried again, as after any other.
type engine struct{ present atomic.Pointer[way] }

// way is one way to etcd.
type way struct {
	*clientv3.Client
	where  string // for messages
	member bool   // whether it leads to a member in this process
}

func newEngine(w *way) *engine {
	e := &engine{}
	e.present.Store(w)
	return e
}

// UseMember makes a member in this process the journal's way to the engine.
func (j *Journal) UseMember(m *Member) {
	_ = j.client.present.Swap(m.way()).Close() // what it could not end is ended with it
}

// UseClient makes the journal reach the engine from outside: at first, or after its member was removed.
func (j *Journal) UseClient(config ClientConfig) error {
	client, err := dial(config)
	if err != nil {
		return fmt.Errorf("reach the journal in %s: %w", whereabouts(config.Endpoints), err)
	}
	_ = j.client.present.Swap(&way{client, whereabouts(config.Endpoints), false}).Close()
	return nil
}

// UsesMember tells whether the journal's way to the engine is a member in this process.
func (j *Journal) UsesMember() bool { return j.client.present.Load().member }

// SetEndpoints changes where a journal that reaches the engine from outside finds it.
func (j *Journal) SetEndpoints(urls []string) {
	if w := j.client.present.Load(); !w.member {
		w.SetEndpoints(urls...)
	}
}

// Client returns the journal's present client of the engine, to ask for what is not the journal. It may be closed at
// any time, when the journal takes another way.
func (j *Journal) Client() *clientv3.Client { return j.client.present.Load().Client }

// Below returns another journal on the same engine, whose keys begin with this one's prefix and that. It is to be
// closed before this one.
func (j *Journal) Below(prefix string) *Journal {
	return newJournal(j.client, newKeyspace(j.keys.prefix+prefix), true)
}

func (e *engine) where() string { return e.present.Load().where }

func (e *engine) Get(ctx context.Context, key string, o ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return e.present.Load().Get(ctx, key, o...)
}

func (e *engine) Put(ctx context.Context, key, value string, o ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	return e.present.Load().Put(ctx, key, value, o...)
}

func (e *engine) Delete(ctx context.Context, key string, o ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	return e.present.Load().Delete(ctx, key, o...)
}

func (e *engine) Txn(ctx context.Context) clientv3.Txn { return e.present.Load().Txn(ctx) }

func (e *engine) Watch(ctx context.Context, key string, o ...clientv3.OpOption) clientv3.WatchChan {
	return e.present.Load().Watch(ctx, key, o...)
}

func (e *engine) Grant(ctx context.Context, seconds int64) (*clientv3.LeaseGrantResponse, error) {
	return e.present.Load().Grant(ctx, seconds)
}

func (e *engine) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return e.present.Load().Revoke(ctx, id)
}

func (e *engine) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	return e.present.Load().KeepAliveOnce(ctx, id)
}

func (e *engine) Close() error { return e.present.Load().Close() }

// whereabouts names an engine that is reached from outside.
func whereabouts(endpoints []string) string { return "etcd at " + strings.Join(endpoints, ", ") }
