//go:build !smallsnapshots

package host

import "starling/terms"

// clusterLimits are the limits of every cluster.
func clusterLimits() terms.Limits { return terms.DefaultLimits() }
