// Package share tells how many virtual peers each task of each job of one pool gets: counts first, machines later.
//
// Counts is a function of the peers that exist, the jobs in order of submission, and the schedulers; what runs now is
// no part of it, so that the same value always divides alike. The one exception says so itself: a frozen task keeps
// what it has.
//
// All schedulers are one loop. A job is admitted with the least it can do with, or not at all: all its tasks covered,
// or a single peer if its coverage is optional. Then the next peer goes to the job that its pool's scheduler names, and
// there to the task that the job's scheduler names, until none can use more:
//
//	priority     the highest priority, then the oldest; a job takes what it can before the next is looked at
//	greedy       the oldest; likewise
//	round-robin  all are admitted, oldest first, before anything is shared; then the job with the fewest peers
//	percentage   likewise, by the largest part of all peers; then the job that lacks most of its part
//
// What a job cannot use goes to the others, in the same order. Ties go to the oldest job and the first task.
//
// A task that requires tags takes only peers that have them. Peers with equal tags are counted together, and a peer is
// counted for one task only if all others find theirs as well, by exchange if need be. So none is refused that could
// be served. Colocated tasks are the exception: their machines are chosen as they come, the smallest first, and never
// again.
//
// Moves is the second function: from what runs to the counts, with no more peers moved than the counts force. Settle
// tells what runs then; of NodeGroups, the peers as they lie on the nodes of the value, what is to come and to leave.
package share
