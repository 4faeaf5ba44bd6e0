// Package metrics tells Prometheus how the cluster and one peer are.
//
// Metrics of the cluster are a function of the value, computed when they are asked for: at the same index all peers
// tell the same. Their labels are pools, types, states, kinds and reasons, never instances, so that their number stays
// small however much runs. Metrics of the peer, its journal and its program are its own: their names begin with
// starling_peer_. A Meter counts what the peer does, among it what it folds, which all peers count alike.
package metrics
