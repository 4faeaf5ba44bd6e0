package pool

import (
	"fmt"
	"strings"

	"starling/terms"
)

// Busy lists the pools that hold jobs, in any order.
type Busy []terms.PoolPath

// problems collects problems of the pool at path.
type problems struct {
	path  terms.PoolPath
	found []terms.Problem
}

func (p *problems) add(field, format string, args ...any) {
	path := string(p.path)
	if field != "" {
		path += "." + field
	}
	p.found = append(p.found, terms.Problem{Path: path, Reason: fmt.Sprintf(format, args...)})
}

// quota adds a problem of one kind.
func (p *problems) quota(k terms.Kind, field, format string, args ...any) {
	p.add(k.String()+"."+field, format, args...)
}

// Problems returns everything that is wrong with the tree, or with it for the jobs that there are. Each problem's path
// begins with the pool's: "analytics/etl.cpu.limit".
func (t Tree) Problems(busy Busy) []terms.Problem {
	p := &problems{path: "root"}
	if len(t) > SizeMax {
		p.add("", "must have at most %d pools, has %d", SizeMax, len(t))
		return p.found
	}
	parents := t.Parents()
	for i := range t {
		p.path = t[i].Path
		if i > 0 && t[i-1].Path.Compare(p.path) >= 0 {
			p.add("", "must stand once, and the pools in the order of their paths")
			return p.found
		}
		p.spec(&t[i])
		p.place(t, i, parents[i])
	}
	p.sums(t)
	for _, path := range append(Busy{terms.DefaultPool}, busy...) {
		p.path = path
		p.leaf(t)
	}
	return p.found
}

// place compares a pool with its parent.
func (p *problems) place(t Tree, number, parent int) {
	if parent == Root {
		if missing, _ := Split(p.path); missing != "" {
			p.add("", "its parent %s does not exist: create that first", missing)
		}
		return
	}
	for k, q := range t[number].Quotas {
		if most := t[parent].Quotas[k].Limit; q.Limit > most && q.Limit != terms.Unlimited {
			k := terms.Kind(k)
			p.quota(k, "limit", "is %s, but the limit of %s is %s", k.Text(q.Limit), t[parent].Path, k.Text(most))
		}
	}
}

// sums compares what the pools below each pool reserve with what that reserves itself.
func (p *problems) sums(t Tree) {
	sums := t.reserved()
	for i := range t {
		p.path = t[i].Path
		for k, own := range t[i].Quotas {
			if sum := sums[i+1][k]; sum > max(own.Reservation, 0) {
				k := terms.Kind(k)
				p.quota(k, "reservation", "is %s, but the pools below it reserve %s together (%s): raise it, or lower theirs",
					k.Text(own.Reservation), k.Text(sum), t.reservations(p.path, k))
			}
		}
	}
	p.path = "root"
	for k, sum := range sums[0] {
		if sum > terms.BytesMax {
			p.quota(terms.Kind(k), "reservation", "the pools at the top reserve more than 2^60 together")
		}
	}
}

// leaf checks that there is a leaf for jobs.
func (p *problems) leaf(t Tree) {
	at, found := t.Find(p.path)
	switch {
	case found && !t.Leaf(at):
		p.add("", "is for jobs, and jobs live in pools with none below: take %s away", t[at+1].Path)
	case !found && p.path == terms.DefaultPool:
		p.add("", "must be there, for the jobs that name no pool")
	case !found:
		p.add("", "must stay while it has jobs: stop them first")
	}
}

// Overcommitted tells which kinds the pools at the top reserve more of than the cluster has. It refuses no tree, since
// capacity comes and goes with machines; entitlements are scaled down meanwhile.
func (t Tree) Overcommitted(capacity *terms.Amounts) []terms.Problem {
	p := &problems{path: "root"}
	for k, sum := range t.reserved()[0] {
		if k := terms.Kind(k); sum > capacity[k] {
			p.quota(k, "reservation", "the pools at the top reserve %s together (%s), the cluster has %s: each gets its part of that",
				k.Text(sum), t.reservations("", k), k.Text(capacity[k]))
		}
	}
	return p.found
}

// reservations lists the first few reservations directly below the pool at path.
func (t Tree) reservations(path terms.PoolPath, k terms.Kind) string {
	const most = 4
	var all []string
	first, _ := t.Find(path)
	for _, below := range t[first:] {
		if path != "" && below.Path != path && !strings.HasPrefix(string(below.Path), string(path)+"/") {
			break
		}
		parent, _ := Split(below.Path)
		if reservation := below.Quotas[k].Reservation; parent == path && reservation > 0 && below.Path != path {
			all = append(all, fmt.Sprintf("%s %s", below.Path, k.Text(reservation)))
		}
	}
	if len(all) > most {
		all = append(all[:most], fmt.Sprintf("and %d more", len(all)-most))
	}
	return strings.Join(all, ", ")
}

// reserved returns what the pools below each pool reserve together, beginning with those at the top; never more than
// 2^61.
func (t Tree) reserved() []terms.Amounts {
	sums := make([]terms.Amounts, len(t)+1)
	parents := t.Parents()
	for i := range t {
		sum := &sums[parents[i]+1]
		for k, q := range t[i].Quotas {
			sum[k] = min(sum[k]+min(max(q.Reservation, 0), terms.BytesMax), terms.Unlimited)
		}
	}
	return sums
}
