// Package runc runs a container whose root file system and description are ready, with the program runc.
//
// It is used by the supervisor of a task, which is the first process of namespaces of its own and the parent of the
// container's first process, as a shim is elsewhere. All that runc needs lies in memory that is mounted in these
// namespaces alone: the description, which holds the environment, the state of runc, and the root file system. So no
// secret is in a file of the machine, and when the supervisor ends, however that happens, the kernel ends the container
// and takes back the mounts; what is left is its control groups.
//
// The container shares the process namespace of its supervisor, which reaps orphans and to which a signal that has no
// handler means what it means elsewhere: its program is not process 1. It has the network of the machine.
package runc
