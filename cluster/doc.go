// Package cluster holds State: the value that every peer holds after folding the journal.
//
// It answers "what is there?" and keeps the books: who is a member, which node offers what, which slot runs where,
// and how much of each node is taken. It decides nothing. Every change of a node, a job or a slot goes through its
// methods, so that rows, counts, room and digest agree. What is stated is in package facts, jobs and tasks as they
// stand are in workload. Invariants, for everybody who reads a State:
//
//  1. Equal journals give equal States, and equal Digests.
//  2. A State obtained by Copy never changes. The fold changes rows in place only where no copy sees them: every
//     row and page remembers the Epoch it was made in, and a Copy begins a new one.
//  3. A node's free resources are what it offers less what its slots hold.
//  4. A slot holds room on exactly the node it names, from the moment it is assigned until it has ended.
//
// The package is pure: no clock, no randomness, no I/O, integers only.
package cluster
