// Package starling is the map of the tree; it holds no code, only the laws of the others as tests.
//
// Starling is a masterless cluster scheduler. Every machine runs the same binary, reads the same journal, folds it
// into the same value and does its own part of what that value asks for. Imports point downwards only:
//
//	cmd/starling                  the binary: a package per group of subcommands, and all wiring
//	sim  web  conformance         many peers under one seed; the web UI; what is promised, as data
//	peer  api                     the runtime of one machine; gRPC and HTTP, and the Go client
//	replica                       the fold: Apply and React                                       (pure)
//	rollout  jobspec              from one version to the next (pure); the job file
//	command  ring                 what may enter the journal; who watches whom                    (pure)
//	schedule  reconcile           where instances go; what a slot needs                           (pure)
//	driver  secret                running a task on this machine; sealing and opening
//	cluster                       the value that every peer holds                                 (pure)
//	terms                         what users and machines state: jobs, pools, offers, their names (pure)
//	journal                       the total order, as a port
//
// Some of these folders come with later work. Start with package terms, then cluster, command, then replica.
// ARCHITECTURE.md tells the way of a command from the shell to a running task, docs/glossary.md the words.
package starling
