// Package process runs tasks as processes of this machine.
//
// Each task is owned by a supervisor, a small process of its own that outlives the peer's:
//
//	peer ──fork──▶ supervisor ──fork──▶ the task's first process ──▶ ...
//	  │ orders  (FIFO) ──▶ │ ◀── stdout, stderr (pipes)
//	  │ alive   (FIFO) ◀── │ ──▶ segments of output, started.json, ended.json
//
// All they share is the task's folder; the volumes of slots lie beside those of tasks. Whether a supervisor owns a task
// is never guessed: it holds the writing end of the FIFO "alive" from before it has the task until it ends, however
// that happens, or is done with it; whoever reads the other end sees the end of file. Of each record there is the
// whole, or nothing that can be read, and the last two are durable:
//
//	origin.json   by the driver, before the fork     which run of the machine, which control group
//	started.json  by the supervisor, after the fork  the processes, by number and start time
//	ended.json    by the supervisor, at the end      how the task ended; by a driver, if nobody else was left to
//
// The order of a start is: origin.json, supervisor, program, started.json, the line "started" on alive, Start returns.
// A folder without the last two records and without a supervisor is one that no Start has confirmed; Open deletes it.
// The environment of a task, which may hold secrets, is handed over through a socket and is in no file. When nothing of
// a task of a user is left, its supervisor says "idle" on alive and waits a moment for another (package assign).
//
// A task gets a session and process group of its own, a control group (see package cgroup), what package confine
// leaves it and, where the peer may, namespaces for processes, mounts, IPC and host names, and a /dev/shm of its
// own. The supervisor is the first process of that process namespace, so that it can end the task completely in one
// call, and when it is killed the kernel ends the task. Without namespaces it adopts orphaned descendants instead, and
// the task's first process dies with it; Warnings tells.
//
// A task is its first process: when that has ended, what it left behind is killed. Stop's SIGTERM goes to its process
// group, and the SIGKILL after the grace to everything. A task that wants proofs (driver.Proofs) is stopped by its
// supervisor in the same way when they fail to come, because the peer may be dead or frozen.
package process
