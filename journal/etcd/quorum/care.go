package quorum

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	// careEvery is how often the files of the members are looked at.
	careEvery = 10 * time.Second
	// freeMin is how much of a member's file must be free, and at least half of it, before the file is written anew: the
	// member answers nobody meanwhile.
	freeMin = 64 << 20
	// defragMax bounds that.
	defragMax = 2 * time.Minute
)

// care gives back what members' files hold and nothing uses, of one member at a time, the leader last, and only while
// all run. When there is room again, it ends the alarm with which a member that had none has stopped all writes.
func (n *Node) care(ctx context.Context) {
	if time.Since(n.cared) < careEvery {
		return
	}
	n.cared = time.Now()
	ctx, cancel := context.WithTimeout(ctx, defragMax)
	defer cancel()
	client, err := n.outside(n.known.Endpoints)
	if err != nil {
		return
	}
	defer client.Close()
	used, quota := int64(0), n.config.QuotaBytes
	var wasteful, leader string
	for _, url := range n.known.Endpoints {
		s, err := client.Status(ctx, url)
		if err != nil {
			return // not all run
		}
		used = max(used, s.DbSizeInUse)
		if free := s.DbSize - s.DbSizeInUse; free < freeMin || free < s.DbSize/2 {
			continue
		}
		if s.Leader == s.Header.MemberId {
			leader = url
		} else {
			wasteful = url
		}
	}
	if wasteful == "" {
		wasteful = leader
	}
	if wasteful != "" {
		_, err := client.Defragment(ctx, wasteful)
		n.config.Log.Info("the file of a member of the quorum was written anew, because half of it was free", "member", wasteful,
			"error", err)
		return
	}
	if used < quota/10*8 {
		n.disarm(ctx, client)
	}
}

// disarm ends the alarms of members that had no room.
func (n *Node) disarm(ctx context.Context, client *clientv3.Client) {
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
func (n *Node) outside(urls []string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: urls, TLS: n.config.TLS, Logger: zap.NewNop()})
}
