// Package agents runs a cluster of real `starling agent` processes on this machine, to be killed and restarted.
//
// A Flock is one cluster whose first agents keep an etcd quorum. An Agent is one machine of it: a data folder, ports
// that stay its own, and at most one process. Killing the agent leaves its tasks alone, crashing the machine does not.
// Whatever happened to them, Stop leaves no process and no control group behind; agents die with whoever started them.
//
// Processes are found through /proc: supervisors by the folder that they are given, tasks by their environment, in
// which the address of the API tells one cluster's from another's.
package agents
