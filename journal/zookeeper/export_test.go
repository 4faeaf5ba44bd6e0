package zookeeper

import "time"

// ErrDamaged is what a reader returns that finds its journal damaged.
var ErrDamaged = errDamaged

// ShardRecords sets from how many records on a shard is sealed.
func (j *Journal) ShardRecords(n int) { j.shardRecords = n }

// CheckEvery sets how often a reader compares what it has read with what there is.
func (j *Journal) CheckEvery(d time.Duration) { j.checkEvery = d }
