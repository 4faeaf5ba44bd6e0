// Package container runs tasks in containers: containerd keeps the images and the file systems, and the supervisor of
// package process runs them with runc.
//
// An image is named by a tag or a digest; Pull finds the digest and the image is kept under the name with it. For each
// task there is one lease in containerd, of which the writable file system of its container is a part: what containerd
// holds for a task is gone with the lease, and a lease without a task is one that was left behind by a crash.
//
// A container that was given a GPU gets what a spec of CDI, the Container Device Interface, says of it: the driver's
// libraries come from the machine.
//
// Containerd is needed to start a task, and to remove what is left of it. A task that runs needs it no more: its
// supervisor is its shim, so that it goes on through restarts of the peer and of containerd alike, and ends, is
// proved, is stopped and is heard as a process is.
package container
