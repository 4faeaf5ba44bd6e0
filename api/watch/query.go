package watch

import (
	"fmt"
	"slices"
	"strings"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/rights"
	"starling/terms"
	"starling/terms/access"
	"starling/trust"
)

// query is what a reader wants to be told, and may be.
type query struct {
	kinds  map[string]bool
	job    terms.JobName
	pool   terms.PoolPath
	node   terms.NodeName
	labels []terms.EnvVar
	// caller is who reads; rights is the value that says in which pools that one is a viewer, nil if in all.
	caller trust.Identity
	rights *cluster.State
}

// newQuery returns what a caller asks for.
func newQuery(request *starlingv1.WatchRequest, caller trust.Identity, rights *cluster.State) (*query, error) {
	q := &query{kinds: map[string]bool{}, job: terms.JobName(request.GetJob()), pool: terms.PoolPath(request.GetPool()),
		node: terms.NodeName(request.GetNode()), caller: caller}
	ofCluster := caller.Role >= access.Viewer
	if !ofCluster {
		q.rights = rights
	}
	for _, kind := range request.GetKinds() {
		if !slices.Contains(kinds(), kind) {
			return nil, &wire.Failure{Code: wire.Invalid, Reason: fmt.Sprintf("kinds must be of %s, is %q",
				strings.Join(kinds(), ", "), kind)}
		}
		if (kind == kindPool || kind == kindNode) && !ofCluster {
			return nil, &wire.Failure{Code: wire.Denied, Reason: fmt.Sprintf(
				"%s may not watch kind %s: it needs the role viewer in the whole cluster; leave it out of kinds", caller, kind)}
		}
		q.kinds[kind] = true
	}
	for _, kind := range kinds() {
		q.kinds[kind] = q.kinds[kind] || len(request.GetKinds()) == 0 && (ofCluster || kind != kindPool && kind != kindNode)
	}
	for _, label := range request.GetLabels() {
		q.labels = append(q.labels, terms.EnvVar{Name: label.GetName(), Value: label.GetValue()})
	}
	return q, nil
}

// takes tells whether a thing is one that the query asks for, and that the caller may see.
func (q *query) takes(t *thing) bool {
	return q.kinds[t.kind] && (q.job == "" || t.job == q.job) && q.takesPool(t.pool) &&
		(q.node == "" || t.node == q.node) && q.takesLabels(t.labels) && (t.job == "" || q.sees(t.pool))
}

func (q *query) takesPool(path terms.PoolPath) bool {
	return q.pool == "" || path == q.pool || strings.HasPrefix(string(path), string(q.pool)+"/")
}

// takesLabels tells whether one of several tasks has all labels.
func (q *query) takesLabels(tasks [][]terms.EnvVar) bool {
	return len(q.labels) == 0 || slices.ContainsFunc(tasks, func(has []terms.EnvVar) bool {
		return !slices.ContainsFunc(q.labels, func(label terms.EnvVar) bool { return !slices.Contains(has, label) })
	})
}

// sees tells whether the caller may see the jobs of a pool.
func (q *query) sees(path terms.PoolPath) bool {
	return q.rights == nil || rights.ByPools(q.rights, q.caller.Subject(), path) >= access.Viewer
}

// mayTake tells whether anything of a job may be taken, before it is looked at.
func (q *query) mayTake(name terms.JobName) bool {
	return (q.job == "" || name == q.job) && q.takesPool(name.Pool()) && q.sees(name.Pool())
}

// typeOf returns what a change is to who asks, "" if it is nothing.
func (q *query) typeOf(c *change) (kind string, t *thing) {
	was, is := c.was != nil && q.takes(c.was), c.is != nil && q.takes(c.is)
	switch {
	case was && is:
		return typeChanged, c.is
	case is:
		return typeAdded, c.is
	case was:
		return typeRemoved, c.was
	}
	return "", nil
}
