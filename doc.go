// Package starling is the map of the tree; it holds no code, only the laws of the others as tests.
//
// Starling is a masterless cluster scheduler. Every machine runs the same binary, reads the same journal, folds it
// into the same value and does its own part of what that value asks for. Imports point downwards only:
//
//	cmd/starling                  the binary: a package per group of subcommands, and all wiring
//	sim  conformance              many peers under one seed; what is promised, as data
//	peer  api  dns                the runtime of one machine; gRPC and HTTP; names of instances
//	replica                       the fold: Apply and React                                       (pure)
//	rollout  jobspec              from one version to the next (pure); the job file
//	command  ring                 what may enter the journal; which member watches which          (pure)
//	schedule  reconcile  plugin   where instances go; what a slot needs; what members are told    (pure)
//	driver  secret                running a task on this machine; the keys of jobs
//	cluster                       the value that every peer holds                                 (pure)
//	terms                         what users and machines state: jobs, pools, offers, their names (pure)
//	journal                       the total order, as a port
//
// Start with package terms, then cluster, command, then replica. ARCHITECTURE.md tells the way of an entry from the
// shell to a running task, docs/decisions the reasons, docs/glossary.md the words.
package starling
