package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
)

// Report is how the quorum stands.
type Report struct {
	// Endpoints are the client URLs of the members that have a vote.
	Endpoints []string
	View      View
	// Files are what the members that answer tell of theirs, by id.
	Files map[uint64]File
	// Next is what the rule does next.
	Next Step
	// Err tells why this is only what was known last, nil if it is not.
	Err error
}

// File is how large a member's file is, how much of that is in use, and how large it may be.
type File struct{ Bytes, Used, Quota int64 }

// Report tells how the quorum stands: without a majority, how it stood when there was one last, or at least where its
// members are, and which of them answer.
func (n *Node) Report(ctx context.Context) Report {
	short, cancel := context.WithTimeout(ctx, askMax)
	view, err := n.view(short)
	cancel()
	n.mu.Lock()
	if err == nil {
		n.seen = view
	}
	r := Report{Endpoints: slices.Clone(n.known.Endpoints), View: n.seen, Files: map[uint64]File{}, Err: err}
	n.mu.Unlock()
	if len(r.View.Members) == 0 {
		for i, url := range r.Endpoints {
			r.View.Members = append(r.View.Members, Member{ID: uint64(i + 1), Node: url, Client: url})
		}
	}
	urls := map[uint64]string{}
	for _, m := range r.View.Members {
		urls[m.ID] = m.Client
	}
	for id, s := range n.statuses(ctx, urls) {
		r.View.Leader = s.Leader
		r.Files[id] = File{s.DbSize, s.DbSizeInUse, s.DbSizeQuota}
	}
	r.Next = Next(r.View)
	return r
}

// statuses asks members at their client URLs, all at once. Those that do not answer are left out.
func (n *Node) statuses(ctx context.Context, urls map[uint64]string) map[uint64]*clientv3.StatusResponse {
	ctx, cancel := context.WithTimeout(ctx, askMax/2)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	answers := map[uint64]*clientv3.StatusResponse{}
	for id, url := range urls {
		asking.Go(func() {
			client, err := outside([]string{url}, n.config.TLS)
			if err != nil {
				return
			}
			defer client.Close()
			s, err := client.Status(ctx, url)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				answers[id] = s
			}
		})
	}
	asking.Wait()
	return answers
}

// Refusal is a change that is not made, with what can be done about it.
type Refusal string

// Error implements error.
func (r Refusal) Error() string { return string(r) }

// Change adds, promotes or removes a node, whatever the rule would do; but a majority stays.
func (n *Node) Change(ctx context.Context, action Action, node string) error {
	short, cancel := context.WithTimeout(ctx, changeMax)
	v, err := n.view(short)
	cancel()
	if err != nil {
		return fmt.Errorf("read the quorum, which needs a majority of its members: %w", err)
	}
	at := slices.IndexFunc(v.Members, func(m Member) bool {
		return m.Node == node || m.Machine != nil && m.Machine.Node == node
	})
	switch {
	case at < 0 && action == Remove && slices.Contains(v.Barred, node):
		return nil // it is done, as when a client that heard no answer asks again
	case at < 0 && action != Add:
		return Refusal(fmt.Sprintf("node %s is not a member of the quorum: starling quorum ls shows who is", node))
	}
	switch action {
	case Add:
		err = n.addByHand(ctx, &v, node)
	case Promote:
		if !v.Members[at].Learner {
			return Refusal(fmt.Sprintf("node %s has its vote already", node))
		}
		_, err = n.journal.Client().MemberPromote(ctx, v.Members[at].ID)
	case Remove:
		if why := v.needed(&v.Members[at]); why != "" {
			return Refusal(why)
		}
		err = n.removeByHand(ctx, &v.Members[at], node)
	default:
		return Refusal(fmt.Sprintf("nothing is known of %q: add, promote and remove can be done", action))
	}
	if err == nil {
		_, err = n.journal.Client().Put(ctx, keyChanged, node)
	}
	return err
}

// addByHand adds a machine as a learner; the rule gives it its vote when it has caught up.
func (n *Node) addByHand(ctx context.Context, v *View, node string) error {
	if slices.ContainsFunc(v.Members, func(m Member) bool { return m.Node == node }) {
		return Refusal(fmt.Sprintf("node %s is a member of the quorum already", node))
	}
	at := slices.IndexFunc(v.Machines, func(m Machine) bool { return m.Node == node })
	switch {
	case at < 0:
		return Refusal(fmt.Sprintf("no agent of node %s runs: start it first, it joins the cluster as a client", node))
	case v.Machines[at].Peer == "":
		return Refusal(fmt.Sprintf("node %s has nowhere to answer the other members: set etcd.listen there", node))
	}
	client := n.journal.Client()
	if _, err := client.Delete(ctx, keyBarred+node); err != nil {
		return err
	}
	_, err := client.MemberAddAsLearner(ctx, []string{v.Machines[at].Peer})
	if errors.Is(err, rpctypes.ErrTooManyLearners) {
		return Refusal("another machine is catching up, and one does so at a time: try again when starling quorum ls shows no learner")
	}
	return err
}

// removeByHand removes a member, and keeps the rule from adding it again. It is tried for a while: the engine wants its
// members to have seen each other for some seconds, and one that removes itself does not hear how that ended.
func (n *Node) removeByHand(ctx context.Context, m *Member, node string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*etcdserver.HealthInterval)
	defer cancel()
	if _, err := n.journal.Client().Put(ctx, keyBarred+node, ""); err != nil {
		return err
	}
	for {
		err := n.remove(ctx, m.ID)
		if err == nil || errors.Is(err, rpctypes.ErrMemberNotFound) {
			return nil
		}
		if errors.Is(err, rpctypes.ErrMemberNotEnoughStarted) || pause(ctx, lookEvery) != nil {
			_, undo := n.journal.Client().Delete(context.WithoutCancel(ctx), keyBarred+node)
			return errors.Join(err, undo)
		}
	}
}

// needed says why a member must stay, "" if it need not: without it those that run would be no majority.
func (v *View) needed(gone *Member) string {
	live, voters := 0, 0
	for _, m := range v.Members {
		if m.Learner || m.ID == gone.ID {
			continue
		}
		voters++
		if m.Machine != nil {
			live++
		}
	}
	switch {
	case gone.Learner:
		return ""
	case voters == 0:
		return fmt.Sprintf("node %s is the only member that has a vote: another one must be added first", gone.Node)
	case live <= voters/2:
		return fmt.Sprintf("without node %s only %d of %d members would run, which is not a majority: bring back the others first",
			gone.Node, live, voters)
	}
	return ""
}
