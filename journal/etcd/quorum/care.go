package quorum

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	// careEveryDefault is how often the files of the members are looked at.
	careEveryDefault = 10 * time.Second
	// freeMinDefault is how much of a member's file must be free, and at least half of it, before the file is written
	// anew: the member answers nobody meanwhile.
	freeMinDefault = 64 << 20
	// defragMax bounds that.
	defragMax = 2 * time.Minute
)

// care gives back what members' files hold and nothing uses, of one member at a time, the leader last, and only while
// all run. When there is room again, it ends the alarm with which a member that had none has stopped all writes.
func (n *Node) care(ctx context.Context, v *View) {
	if time.Since(n.cared) < n.careEvery {
		return
	}
	n.cared = time.Now()
	urls, used := map[uint64]string{}, int64(0)
	for _, m := range v.Members {
		urls[m.ID] = m.Client
	}
	statuses := n.statuses(ctx, urls)
	if len(statuses) < len(urls) {
		return // not all run
	}
	wasteful := uint64(0)
	for id, s := range statuses {
		used = max(used, s.DbSizeInUse)
		free := s.DbSize - s.DbSizeInUse
		if free >= n.freeMin && free >= s.DbSize/2 && (wasteful == 0 || wasteful == v.Leader) {
			wasteful = id
		}
	}
	ctx, cancel := context.WithTimeout(ctx, defragMax)
	defer cancel()
	switch {
	case wasteful != 0:
		n.defragment(ctx, urls[wasteful])
	case used < n.config.QuotaBytes/10*8:
		n.disarm(ctx)
	default:
		n.settle(ctx, urls)
	}
}

// settle lets members without room count again what they use. What a compaction frees counts as used until a member
// has committed once more, and one that takes no entries never does. To hash its file, it commits.
func (n *Node) settle(ctx context.Context, urls map[uint64]string) {
	alarms, err := n.journal.Client().AlarmList(ctx)
	if err != nil || len(alarms.Alarms) == 0 {
		return
	}
	for _, url := range urls {
		client, err := outside([]string{url}, n.config.TLS)
		if err != nil {
			continue
		}
		_, err = etcdserverpb.NewMaintenanceClient(client.ActiveConnection()).Hash(ctx, &etcdserverpb.HashRequest{})
		n.config.Log.Debug("a member without room commits", "member", url, "error", errors.Join(err, client.Close()))
	}
}

// defragment lets a member write its file anew.
func (n *Node) defragment(ctx context.Context, url string) {
	client, err := outside([]string{url}, n.config.TLS)
	if err == nil {
		_, err = client.Defragment(ctx, url)
		err = errors.Join(err, client.Close())
	}
	n.config.Log.Info("half of a member's file was free, and it is written anew", "member", url, "error", err)
}

// disarm ends the alarms of members that had no room.
func (n *Node) disarm(ctx context.Context) {
	client := n.journal.Client()
	alarms, err := client.AlarmList(ctx)
	if err != nil {
		return
	}
	for _, a := range alarms.Alarms {
		if a.Alarm == etcdserverpb.AlarmType_NOSPACE {
			_, err := client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: a.MemberID, Alarm: a.Alarm})
			n.config.Log.Info("the quorum has room again and takes entries", "member", idText(a.MemberID), "error", err)
		}
	}
}

// outside returns a client that can ask each member by itself.
func outside(urls []string, secure *tls.Config) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: urls, TLS: secure, Logger: zap.NewNop()})
}
