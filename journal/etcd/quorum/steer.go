package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Where the engine keeps what belongs to the quorum.
const (
	keys       = "quorum/"
	keyAway    = keys + "away/"
	keyBarred  = keys + "barred/"
	keyChanged = keys + "changed"
)

// steer applies the rule, on the machine of the leader: steps follow each other until one has to be waited for.
func (n *Node) steer(ctx context.Context) {
	if n.steering.IsZero() {
		n.steering = time.Now()
	}
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, changeMax)
		v, step, err := n.step(short)
		cancel()
		if err != nil {
			n.say(ctx, step, err)
			return
		}
		n.say(ctx, step, nil)
		if step.Action == Wait {
			n.care(ctx, &v)
			return
		}
	}
}

// say logs a step once, however often it is tried.
func (n *Node) say(ctx context.Context, step Step, err error) {
	text := fmt.Sprintf("%s %s %v", step.Action, step.Node, err)
	if text == n.said || ctx.Err() != nil {
		return
	}
	n.said = text
	switch {
	case errors.Is(err, rpctypes.ErrMemberLearnerNotReady): // it is tried again, and catches up
	case err != nil:
		n.config.Log.Warn("the quorum is not changed", "step", step.Action, "node", step.Node, "error", err)
	case step.Action != Wait:
		n.config.Log.Info("the quorum changes", "step", step.Action, "node", step.Node, "why", step.Why)
	}
}

// step does what is due.
func (n *Node) step(ctx context.Context) (View, Step, error) {
	v, err := n.view(ctx)
	if err != nil {
		return v, Step{}, err
	}
	v.Leader = n.member.ID()
	for i := range v.Members {
		m := &v.Members[i]
		if err := n.noteAway(ctx, m); err != nil {
			return v, Step{}, err
		}
		if m.Machine == nil && m.Away.Before(n.steering) {
			m.Away = n.steering // since when this machine can tell
		}
	}
	step := Next(v)
	client := n.journal.Client()
	switch step.Action {
	case Add:
		_, err = client.MemberAddAsLearner(ctx, []string{step.Peer})
	case Promote:
		_, err = client.MemberPromote(ctx, step.Member)
	case Remove:
		err = n.remove(ctx, step.Member)
	case Wait:
		return v, step, nil
	}
	if err == nil {
		_, err = client.Put(ctx, keyChanged, step.Node)
	}
	return v, step, err
}

// remove removes a member, and what is kept about it.
func (n *Node) remove(ctx context.Context, id uint64) error {
	short, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	if _, err := n.journal.Client().MemberRemove(short, id); err != nil {
		return err
	}
	_, err := n.journal.Client().Delete(short, keyAway+idText(id))
	return err
}

// noteAway writes down since when a member's machine does not run, and forgets it when it does.
func (n *Node) noteAway(ctx context.Context, m *Member) error {
	key := keyAway + idText(m.ID)
	var err error
	switch {
	case m.Machine == nil && m.Away.IsZero():
		m.Away = time.Now()
		_, err = n.journal.Client().Put(ctx, key, m.Away.UTC().Format(time.RFC3339))
	case m.Machine != nil && !m.Away.IsZero():
		m.Away = time.Time{}
		_, err = n.journal.Client().Delete(ctx, key)
	}
	return err
}

// view reads all that the rule looks at but who leads.
func (n *Node) view(ctx context.Context) (View, error) {
	v := View{AwayMax: n.config.AwayMax, Now: time.Now()}
	client := n.journal.Client()
	list, err := client.MemberList(ctx)
	if err != nil {
		return v, fmt.Errorf("list the members: %w", err)
	}
	noted, err := client.Get(ctx, keys, clientv3.WithPrefix())
	if err != nil {
		return v, fmt.Errorf("read what is known of the members: %w", err)
	}
	if v.Machines, err = machinesOf(ctx, n.claim.journal); err != nil {
		return v, err
	}
	if n.config.Known != nil {
		v.Gone = n.config.Known.Gone()
	}
	away := map[string]time.Time{}
	for _, kv := range noted.Kvs {
		key := string(kv.Key)
		if node, ok := strings.CutPrefix(key, keyBarred); ok {
			v.Barred = append(v.Barred, node)
		}
		if id, ok := strings.CutPrefix(key, keyAway); ok {
			away[id], _ = time.Parse(time.RFC3339, string(kv.Value)) // zero is unknown
		}
	}
	for _, m := range list.Members {
		v.Members = append(v.Members, v.memberOf(m, away[idText(m.ID)]))
	}
	return v, nil
}

// memberOf joins what the engine lists with the machine that runs there.
func (v *View) memberOf(m *etcdserverpb.Member, away time.Time) Member {
	one := Member{ID: m.ID, Node: m.Name, Learner: m.IsLearner, Away: away}
	if len(m.PeerURLs) > 0 {
		one.Peer = m.PeerURLs[0]
	}
	if len(m.ClientURLs) > 0 {
		one.Client = m.ClientURLs[0]
	}
	at := slices.IndexFunc(v.Machines, func(o Machine) bool {
		return o.Node == m.Name || m.Name == "" && o.Peer == one.Peer
	})
	if at >= 0 {
		one.Machine = &v.Machines[at]
	}
	return one
}
