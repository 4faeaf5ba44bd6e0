//go:build smallsnapshots

package host

import "starling/terms"

// ClusterLimits lets snapshots be due so often, and have so many chunks, that a test meets them. It is built so to try
// what happens around snapshots.
func ClusterLimits() terms.Limits {
	l := terms.DefaultLimits()
	l.SnapshotEntries, l.ChunkBytes = 30, 4<<10
	return l
}
