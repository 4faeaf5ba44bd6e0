// Package facts holds what a snapshot of the value carries: all that does not follow from the rest of it.
//
// It answers "what was stated, reported and decided?", row by row: nodes, jobs, tasks and slots, what is kept for those
// that wait, requests, and what an entry left to do for the next. What can be computed from facts is the index; package
// cluster keeps it, and makes it anew from All. Invariants:
//
//  1. Two values with equal facts behave alike from then on, whatever is folded into both.
//  2. The digest covers every fact: each has its part in the hash of its row, which stands beside it in digest.go.
package facts
