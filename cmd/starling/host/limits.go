//go:build !smallsnapshots

package host

import "starling/terms"

// ClusterLimits are the limits of every cluster.
func ClusterLimits() terms.Limits { return terms.DefaultLimits() }
