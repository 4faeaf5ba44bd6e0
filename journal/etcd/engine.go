package etcd

import (
	"context"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// engine is the way to etcd that a journal uses at present: the member in this process, or a client. It may change
// under a journal that is in use: what is under way ends with an error then and is tried again, as after any other.
type engine struct{ present atomic.Pointer[way] }

// way is one way to etcd.
type way struct {
	*clientv3.Client
	where string // for messages
}

func newEngine(client *clientv3.Client, where string) *engine {
	e := &engine{}
	e.present.Store(&way{client, where})
	return e
}

// use changes the way, and ends the one before.
func (e *engine) use(client *clientv3.Client, where string) error {
	return e.present.Swap(&way{client, where}).Close()
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
