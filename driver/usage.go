package driver

import "time"

// Use is how much a task or a machine uses.
type Use struct {
	// CPU is the processor time that it has used until now.
	CPU time.Duration
	// MemoryBytes is what it has in memory, without files that the kernel drops when others need the memory.
	MemoryBytes int64
	// ReadBytes and WrittenBytes are what it has read from disks and written to them until now.
	ReadBytes, WrittenBytes int64
}

// Usage is what was used when it was read.
type Usage struct {
	At time.Time
	// Machine is what all of the machine uses, whatever belongs to tasks or not.
	Machine Use
	// Tasks are those that were asked for and run, by ID.
	Tasks map[string]Use
}

// GPUUse is how much is used of one of the machine's GPUs.
type GPUUse struct {
	// Number is its own among the devices of its kind.
	Number uint32
	// MemoryBytes is what is used of its memory, MemoryTotalBytes what it has.
	MemoryBytes, MemoryTotalBytes int64
	// BusyPercent is for how much of the time it was busy a moment ago, 0 to 100.
	BusyPercent uint32
}
