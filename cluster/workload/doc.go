// Package workload holds jobs and their tasks as they stand in the value: the facts about each, and what follows from
// them.
//
// It answers "what does this job want, have and lack?": its status, what waits and what runs, its gang, the order of
// its tasks, what an update has yet to move. A task counts its slots as they change; a reader never counts them again.
// Only package cluster changes jobs and tasks, each only in the epoch in which it was made.
package workload
