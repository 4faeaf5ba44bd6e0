// Package confine keeps a task from what belongs to its machine: other processes, devices, the kernel's settings, the
// system's own files, and what the peer keeps.
//
// A thread is confined, and with it what it starts from then on; nothing takes that back, so the thread must end with
// its work. Where the peer may make namespaces, that is as root, the thread gets mounts of its own in which
//
//	/usr /boot /etc /sys       cannot be changed, control groups included, nor the kernel's settings in /proc
//	/dev                       has the harmless devices, and those that the task was given
//	sockets of the system      that take orders from root, such as D-Bus and containerd, are not there
//	folders that it uses       are where they lie, and cannot be changed where that was said
//	the peer's folder          has what is the task's own and nothing else
//	devices in those folders   cannot be opened, whoever made them
//	/etc/passwd /etc/group     know the user that is the task's own, if it has one
//
// and loses all capabilities but those that concern files and accounts. Everybody's thread loses the system calls that
// change namespaces, mounts or the kernel, and may neither send signals to processes outside the task nor trace them.
// What the machine cannot do is told by Missing.
package confine

// Rules say what a task finds of its machine.
type Rules struct {
	// Hidden is a folder of which the task finds only Shown, which lie in it; empty for none.
	Hidden string
	Shown  []Folder
	// Folders are those of the machine that the task uses where they lie, also where the rest may not be changed.
	Folders []Folder
	// Accounts are what the task finds in files instead of what they have, by their paths; none if one is not there.
	Accounts map[string][]byte
	// Covered are files and folders that are not there, besides the usual sockets of the system.
	Covered []string
	// Devices are the paths of devices that it was given.
	Devices []string
	// Base is what was prepared for them; nil if nothing was.
	Base *Base
	// Clone3 leaves the task the system call of this name, by which it can make namespaces of users. Who starts it in a
	// control group of version 2 needs it.
	Clone3 bool
	// Quotas has the task not change attributes of files, by which it could take them out of a quota (chattr).
	Quotas bool
}

// Folder is one of the machine.
type Folder struct {
	// Path is where it lies, absolute. A symbolic link in it is an error, unless the folder lies in a hidden one.
	Path string
	// ReadOnly leaves nothing to be changed there.
	ReadOnly bool
}
