package metrics

import (
	"math"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/cluster/workload"
	"starling/schedule/entitle/explanation"
	"starling/terms"
)

const poolUnits = " (kind cpu in cores, memory and disk in bytes, gpu in devices, peers in virtual peers)."

func clusterGauges() []metric {
	poolLabels := []string{"pool", "kind"}
	return []metric{
		{"starling_jobs", "Jobs that the cluster knows, finished ones that are kept included, by type and status.",
			[]string{"type", "state"}, jobs},
		{"starling_instances", "Instances of jobs, by pool, type of job and phase; those of daemon jobs have no pool.",
			[]string{"pool", "type", "state"}, instances},
		{"starling_updates", "Jobs by the state of their latest update, without those that were stopped or have succeeded.", []string{"state"}, updates},
		{"starling_nodes", "Nodes that the cluster knows: members, members that are drained (draining) or whose agent is away with notice (away), nodes that are " +
			"joining, and nodes that have left.", []string{"state"}, nodes},
		{"starling_pool_entitlement", "What the jobs of a pool, with all pools below it, may use now" + poolUnits, poolLabels,
			poolUse(func(u *explanation.Use) int64 { return u.Entitled })},
		{"starling_pool_allocated", "What the jobs of a pool, with all pools below it, hold" + poolUnits, poolLabels,
			poolUse(func(u *explanation.Use) int64 { return u.Held })},
		{"starling_pool_waiting", "What the waiting instances of a pool, with all pools below it, ask for" + poolUnits,
			poolLabels, poolUse(func(u *explanation.Use) int64 { return u.Asked })},
		{"starling_rules_version", "Version of the rules in force.", nil,
			one(func(s *Scrape) float64 { return float64(s.State.Rules) })},
		{"starling_index", "Index of the last entry of the journal in the value that this answer tells of. Peers tell the " +
			"same of the cluster at the same index.", nil, one(func(s *Scrape) float64 { return float64(s.State.Index) })},
		{"starling_snapshot_age_entries", "Entries since the last confirmed snapshot.", nil, one(func(s *Scrape) float64 {
			return float64(s.State.Index - s.State.Snapshots.Confirmed.Index)
		})},
	}
}

// one is the value of a metric without labels.
func one(value func(*Scrape) float64) func(*Scrape, func(float64, ...string)) {
	return func(s *Scrape, give func(float64, ...string)) { give(value(s)) }
}

// jobs gives all types and states, so that a count that falls to 0 does not vanish.
func jobs(s *Scrape, give func(float64, ...string)) {
	counts := make([][workload.StatusIdle + 1]float64, len(terms.JobTypes()))
	s.State.EachJob(func(j *workload.Job) bool {
		counts[j.Spec.Type][j.Status()]++
		return true
	})
	for t, name := range terms.JobTypes() {
		for status := workload.StatusPending; status <= workload.StatusIdle; status++ {
			if name != "" { // no job has type 0
				give(counts[t][status], name, status.String())
			}
		}
	}
}

// instances gives all phases of each pool and type that has a job.
func instances(s *Scrape, give func(float64, ...string)) {
	type owner struct {
		pool terms.PoolPath
		kind terms.JobType
	}
	counts := map[owner]*[facts.PhaseCount]float64{}
	s.State.EachJob(func(j *workload.Job) bool {
		of := owner{kind: j.Spec.Type}
		if number := s.State.PoolOf(j); number >= 0 {
			of.pool = s.State.Pools()[number].Path
		}
		if counts[of] == nil {
			counts[of] = new([facts.PhaseCount]float64)
		}
		for _, t := range j.Tasks {
			for phase := range t.Counts {
				counts[of][phase] += float64(t.Counts[phase] + t.Secondary[phase])
			}
		}
		return true
	})
	for of, phases := range counts {
		for phase, count := range phases {
			give(count, string(of.pool), of.kind.String(), facts.Phase(phase).String())
		}
	}
}

func updates(s *Scrape, give func(float64, ...string)) {
	var counts [facts.UpdateStateCount]float64
	s.State.EachJob(func(j *workload.Job) bool {
		if !j.Stop && j.Status() != workload.StatusSucceeded {
			counts[j.Update.State]++
		}
		return true
	})
	for state := facts.NoUpdate + 1; state < facts.UpdateStateCount; state++ {
		give(counts[state], state.String())
	}
}

func nodes(s *Scrape, give func(float64, ...string)) {
	joining := map[terms.NodeName]bool{}
	s.State.EachAttempt(func(p terms.PeerID, _ membership.Attempt) bool {
		joining[p.Node()] = true
		return true
	})
	counts := map[string]float64{"member": 0, "away": 0, "draining": 0, "joining": 0, "left": 0}
	for n := range s.State.Nodes() {
		if node := s.State.Node(facts.NodeIndex(n)); !s.State.Registry().IsGone(node.Name) {
			counts[stateOf(node, joining)]++
		}
	}
	for state, count := range counts {
		give(count, state)
	}
}

func stateOf(n *cluster.Node, joining map[terms.NodeName]bool) string {
	switch {
	case n.Peer != "" && n.Offer != nil && !n.Offer.Open():
		return "away"
	case n.Peer != "" && n.Drain.On:
		return "draining"
	case n.Peer != "":
		return "member"
	case joining[n.Name]:
		return "joining"
	}
	return "left"
}

// poolUse gives an amount of each pool and kind.
func poolUse(amount func(*explanation.Use) int64) func(*Scrape, func(float64, ...string)) {
	return func(s *Scrape, give func(float64, ...string)) {
		if s.pools == nil {
			s.pools = explanation.Of(s.State)
		}
		for number := range s.State.Pools() {
			for k := range terms.AmountCount {
				use := s.pools.Use(number, k)
				give(inBaseUnits(k, amount(&use)), string(s.State.Pools()[number].Path), k.String())
			}
		}
	}
}

// inBaseUnits turns thousandths of cores and devices into whole ones.
func inBaseUnits(k terms.Kind, amount int64) float64 {
	switch {
	case amount == terms.Unlimited:
		return math.Inf(1)
	case k == terms.Memory || k == terms.Disk:
		return float64(amount)
	}
	return float64(amount) / 1000
}
