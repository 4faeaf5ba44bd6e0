package explain

import (
	"cmp"
	"fmt"
	"slices"

	"starling/cluster/facts"
	"starling/schedule/entitle/explanation"
	"starling/schedule/explain/shares"
	"starling/schedule/explain/wording"
	"starling/terms"
)

// aim finds out which virtual peers the task has, and on which nodes are those that it does not use.
func (c *diagnosis) aim() {
	a, ok := shares.Of(c.e.s.Copy(), c.e.job, c.e.number)
	if !ok {
		return
	}
	c.shares = a
	meant := map[facts.NodeIndex]bool{}
	for _, spot := range a.Spots() {
		for _, n := range spot.Nodes {
			meant[n] = true
		}
	}
	one := terms.DeviceRequest{Kind: terms.VirtualPeers.String(), Amount: terms.WholeDevice}
	for n := range facts.NodeIndex(c.e.s.Nodes()) {
		if !a.Tagged() && !c.e.served() && c.e.s.Eligible(n) && c.e.s.Node(n).DeviceTimes(&one, 1) > 0 {
			meant[n] = true // it may use any that is free
		}
	}
	if c.meant = len(meant); c.meant == 0 {
		return
	}
	rank := func(m *miss) int {
		if meant[m.node.Index] {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(c.misses, func(a, b miss) int { return cmp.Compare(rank(&a), rank(&b)) })
	c.able = c.meant
	for i := range c.misses {
		c.able -= 1 - rank(&c.misses[i])
	}
}

// leaving returns how many instances of the pool's jobs have been told to end, if only virtual peers are lacking that
// are the task's by the counts.
func (c *diagnosis) leaving(p *queueForecast) (count int) {
	if p == nil || c.shares == nil || c.e.served() || len(p.bounds) == 0 ||
		slices.ContainsFunc(p.bounds, func(b bound) bool { return b.kind != terms.VirtualPeers }) {
		return 0
	}
	for _, id := range c.e.s.Sharers() {
		if j := c.e.s.Job(id); c.e.s.PoolOf(j) == p.Number {
			for _, t := range j.Tasks {
				count += int(t.Counts[facts.Stopping])
			}
		}
	}
	return count
}

// allotted says how it came that the task has no more virtual peers, and what would get it more.
func (c *diagnosis) allotted(p *queueForecast) (all []string) {
	if p == nil {
		return c.shares.Details()
	}
	pools := explanation.Of(c.e.s)
	more, here := c.shares.More()
	b := &bound{by: byEntitlement, kind: terms.VirtualPeers, held: pools.Use(p.Number, terms.VirtualPeers).Held}
	b.most = p.Pool.Entitlement.NonSlack[b.kind]
	b.need = b.most - b.held + int64(more)*int64(terms.WholeDevice)
	if p.bounds = nil; more > 0 && !c.shares.Tagged() && b.most-b.held < int64(terms.WholeDevice) {
		p.bounds = []bound{*b}
	}
	all = c.shares.Details()
	if len(c.e.s.Pools()) > 1 {
		all = append(all, p.use(pools, terms.VirtualPeers, ""),
			fmt.Sprintf("how the entitlement came about: starling pool explain %s", p.path))
	}
	all = append(all, fmt.Sprintf("needs %s per instance", c.needs()))
	group := []hint{}
	for _, h := range c.shares.Help() {
		if h.Job == nil {
			group = append(group, endOf(h.Ends))
		} else {
			group = append(group, ofJob(h.Text, func(j *terms.Job, _ *terms.Task) { h.Job(j) }))
		}
	}
	brought := terms.Amounts{}
	brought[b.kind] = max(b.missing(), 0)
	switch {
	case more == 0:
	case c.shares.Tagged():
		what := "a node that can run its tasks"
		if c.e.job.Spec.TaskScheduler == terms.TaskColocated {
			what = "a node with room for a copy"
		}
		node := hint{text: fmt.Sprintf("%s, with %s", what, wording.Amount(b.kind, b.missing()))}
		node.trial.Nodes = []terms.Offer{c.offer(int64(more), brought)}
		group = append(group, node)
		if here {
			group = append(group, slices.Concat(p.entitle(pools, b)...)...)
		}
	case c.e.s.Capacity()[b.kind]-b.most < b.missing():
		node := hint{text: fmt.Sprintf("nodes with %s more", wording.Amount(b.kind, b.missing()))}
		node.trial.Nodes = []terms.Offer{c.offer(int64(more), brought)}
		group = append(group, node)
	default:
		return append(all, c.e.verified(append(hints{group}, p.entitle(pools, b)...), nil)...)
	}
	return append(all, c.e.verified(hints{group}, nil)...)
}
