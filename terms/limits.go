package terms

import (
	"math/bits"
	"strings"
)

// Limits bound what one cluster keeps and what one entry does. They are part of the value, so that all peers share them
// and simulations can run with tiny ones. What a single field may hold is bounded apart from them, where it is decoded.
type Limits struct {
	// Jobs bounds the jobs that have not finished. FinishedJobs and FinishedSlots bound the finished jobs that are kept
	// and the slots of all of them, but for those of the newest one; the oldest are forgotten first.
	Jobs, FinishedJobs, FinishedSlots uint32
	// Tasks bounds the tasks that a job has had in all its versions.
	Tasks uint32
	// JobInstances bounds the instances of a job, Instances those of all jobs that have not finished, each with the most
	// that it ever wanted. A daemon job counts as one instance per task.
	JobInstances, Instances uint32
	// Gang bounds the instances that are placed together, and must not be above Placements.
	Gang uint32
	// Versions is how many of a job's versions are kept, at least 2: an update may go back to the one before. Those that
	// instances still have and the last good one are kept besides.
	Versions uint32
	// Attempts bounds what is kept of a slot's attempts on other nodes.
	Attempts uint32
	// Requests bounds the remembered requests; the oldest are forgotten first.
	Requests uint32
	// Nodes bounds the nodes that have ever been seen, Lives the incarnations of one that try to join at the same time.
	Nodes, Lives uint32
	// Pools bounds the tree of resource pools.
	Pools uint32
	// Placements bounds the placements of one entry, and the deadlines that it meets; the next entry goes on.
	Placements uint32
	// Preemptions bounds how often one entry looks for instances to preempt.
	Preemptions uint32
	// Trials bounds for how many instances that are to be replaced or moved room is looked for in vain, at a time.
	Trials uint32
	// SnapshotEntries and SnapshotBytes are after how many entries or bytes of the journal a snapshot is due, ChunkBytes
	// is the size of its chunks.
	SnapshotEntries, ChunkBytes uint32
	SnapshotBytes               uint64
	// JobAmount bounds what all instances of a job take together of each resource, PoolAmount what all jobs of a pool do
	// and ClusterAmount what all jobs do, each with the most that it ever wanted; and what all nodes offer. Three times
	// ClusterAmount must be below Unlimited: a slot may hold room in three seats.
	JobAmount, PoolAmount, ClusterAmount int64
}

// DefaultLimits returns the limits under which every cluster runs.
func DefaultLimits() Limits {
	return Limits{
		Jobs: 1 << 18, FinishedJobs: 1000, FinishedSlots: 1 << 18, Tasks: 1024,
		JobInstances: InstancesMax, Instances: 1 << 24, Gang: GangMax, Versions: 10, Attempts: 16, Requests: 4096,
		Nodes: 1 << 16, Lives: 8, Pools: 1 << 14, Placements: 1 << 16, Preemptions: 16, Trials: 16,
		SnapshotEntries: 10_000, SnapshotBytes: 64 << 20, ChunkBytes: 512 << 10,
		JobAmount: 1 << 56, PoolAmount: 1 << 58, ClusterAmount: 1 << 59,
	}
}

// Times returns so many times an amount, Unlimited if that is more: no field at its maximum makes it negative.
func Times(amount int64, count uint64) int64 {
	high, low := bits.Mul64(uint64(max(amount, 0)), count)
	if high > 0 || low > uint64(Unlimited) {
		return Unlimited
	}
	return int64(low)
}

// Sum returns the sum of two amounts, at most Unlimited.
func Sum(a, b int64) int64 { return min(min(a, Unlimited)+min(b, Unlimited), Unlimited) }

// Limits of a job. They keep one entry's work and one job's rows bounded.
const (
	// TasksMax bounds the tasks of a job.
	TasksMax = 64
	// InstancesMax bounds the instances of a task.
	InstancesMax = 1_000_000
	// ArgumentsMax bounds the arguments of a command and the variables of an environment.
	ArgumentsMax = 1024
	// TextBytesMax bounds every text in a job, SpecBytesMax all of them together.
	TextBytesMax = 1 << 16
	SpecBytesMax = 1 << 19
	// CPUMillicoresMax, BytesMax bound resources: 1,000,000 cores, 1 EiB.
	CPUMillicoresMax = 1_000_000_000
	BytesMax         = 1 << 60
	// RequestsPerTaskMax bounds the ports, the device kinds and the constraints of a task, a constraint's values and the
	// models of a device.
	RequestsPerTaskMax = 64
	// DelayMillisMax and GraceMillisMax bound delays and graces: 24 hours and 1 hour.
	DelayMillisMax = 24 * 60 * 60 * 1000
	GraceMillisMax = 60 * 60 * 1000
	// KeepVolumesMillisMax bounds how long volumes may be kept that are not kept until they are removed: ten years.
	KeepVolumesMillisMax = 10 * 365 * DelayMillisMax
	// KeepLeast is the shortest time for which a job is kept that has ended.
	KeepLeast = 1
	// TaskProcessesMax bounds the processes and threads of an instance: Linux has no larger numbers.
	TaskProcessesMax = 1 << 22
	// HeadersMax bounds the headers of a check, HeaderBytesMax the name of each.
	HeadersMax     = 32
	HeaderBytesMax = 4 * NameBytesMax
	// SecretsMax bounds the secrets that an instance reads.
	SecretsMax = 32

	// VaultTextMax bounds each part of what says where Vault has a secret.
	VaultTextMax = 512
	// IDTokensMax bounds the tokens of an instance, IDTokenLifeLeast and IDTokenLifeMax how long one is good for: 10 s to
	// 24 hours.
	IDTokensMax      = 8
	IDTokenLifeLeast = 10 * 1000
	IDTokenLifeMax   = 24 * 60 * 60 * 1000
	// StopDelayLeast is the shortest delay before a signal that a job can ask for.
	StopDelayLeast = 1
)

// Problem is one thing wrong with a job. Path leads to the field as job files name it: "tasks[0].resources.cpu".
type Problem struct{ Path, Reason string }

// VariableName returns a name in the form in which it is part of an environment variable's: "http-2" gives "HTTP_2".
func VariableName(name string) string {
	return strings.ReplaceAll(strings.ToUpper(name), "-", "_")
}
