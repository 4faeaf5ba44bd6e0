package terms

import (
	"slices"

	"starling/terms/constraint"
	"starling/terms/lifecycle"
)

// JobType says what the end of an instance means.
type JobType uint8

// The job types.
const (
	// Batch instances run to their end once.
	Batch JobType = iota + 1
	// Stateless instances run until stopped, and are replaced when they end or are lost.
	Stateless
	// Stateful instances are like stateless ones, but no slot ever has two that live, and each keeps its volumes.
	Stateful
	// Daemon instances run until stopped, one on every machine that can.
	Daemon
)

// JobTypes lists every type's name in job files at its number.
func JobTypes() []string { return []string{"", "batch", "stateless", "stateful", "daemon"} }

// String returns the type's name in job files.
func (t JobType) String() string {
	if t == 0 {
		return "unknown"
	}
	return JobTypes()[t]
}

// Job is a job as its author submitted it. It is a value that is never changed once it is in an entry.
type Job struct {
	// Name is the path of its pool and its own name: see JobName.
	Name JobName
	Type JobType
	// Priority orders the jobs of a pool, 0 to PriorityMax: the highest is admitted first, and takes the place of lower
	// ones that are preemptible.
	Priority uint32
	// Preemption says whether its instances may be told to give way, if it does not follow from the type: see
	// NonPreemptible.
	Preemption Preemption
	// Revocable instances run on what others reserved and leave idle, and give way first.
	Revocable bool
	// Controller instances lead others, such as drivers: their pool bounds them.
	Controller bool
	// KillOnPreempt ends an instance that gave way for good; otherwise it waits for its next turn.
	KillOnPreempt bool
	// TaskScheduler divides the virtual peers that the job gets, if its instances are run by such. Percent is its part of
	// those of the pool, where the pool divides by that.
	TaskScheduler TaskScheduler
	Percent       uint32
	// Coverage says whether the job runs at all with virtual peers for some of its tasks only.
	Coverage Coverage
	// MinAvailable is how many instances must run together, all tasks counted: the gang. It is at least the sum of those
	// of its tasks, or 0 for that sum; what is beyond it may be instances of any task.
	MinAvailable uint32
	// Within is an attribute of which the nodes of all instances have the same value, such as "rack"; "" for none.
	Within string
	// Grow says how members come by which a gang has grown that runs.
	Grow Grow
	// MinSuccess is how many instances must have succeeded, all tasks counted, for the job to have succeeded; the others
	// are ended then. 0 is all.
	MinSuccess uint32
	// Policies say what becomes of the job when something happens to its instances and tasks: the first that is about it,
	// after those of the task.
	Policies []lifecycle.Policy
	// MaxRestarts is how often policies may restart the job; RestartsUnlimited has no bound.
	MaxRestarts uint32
	// KeepMillis is how long the job is kept when it has ended, 0 for as long as there is room. With KeepLeast the next
	// entry forgets it.
	KeepMillis uint32
	// After are batch jobs, each once: nothing of the job runs before all of them have succeeded.
	After  []JobName
	Update UpdatePolicy
	// Plugins tell the members of the job about each other.
	Plugins []PluginRequest
	Tasks   []Task
}

// PriorityMax bounds the priority of a job, PriorityDefault is that of jobs that state none.
const (
	PriorityMax     = 100
	PriorityDefault = 50
)

// GangMax bounds the instances of a gang, which one entry places.
const GangMax = 1 << 16

// RunningMax returns how many instances of a task may run at a time.
func (t *Task) RunningMax() uint32 {
	if t.MaxRunning > 0 {
		return min(t.Instances, t.MaxRunning)
	}
	return t.Instances
}

// GangSize returns the most instances of all tasks that are placed together: the gang, or all if it grows whole.
func (s *Job) GangSize() uint64 {
	minima, all := uint64(0), uint64(0)
	for i := range s.Tasks {
		minima += uint64(s.Tasks[i].MinAvailable)
		all += uint64(s.Tasks[i].RunningMax())
	}
	if gang := max(minima, uint64(s.MinAvailable)); gang == 0 || s.Grow == GrowEach {
		return gang
	}
	return all
}

// Grow says how members come by which a gang has grown that runs.
type Grow uint8

// The ways to grow.
const (
	// GrowEach lets each come by itself, as there is room.
	GrowEach Grow = iota
	// GrowWhole lets all come together or none.
	GrowWhole
)

// Grows lists every way's name in job files at its number.
func Grows() []string { return []string{"each", "whole"} }

// String returns the way's name in job files.
func (g Grow) String() string { return Grows()[g] }

// AsksForPort tells whether a task of the job asks for a port by its number.
func (s *Job) AsksForPort(number uint16) bool {
	for i := range s.Tasks {
		if slices.ContainsFunc(s.Tasks[i].Ports, func(p PortRequest) bool { return p.Number == number }) {
			return true
		}
	}
	return false
}

// GangBeyond returns how many instances of any tasks belong to the job's gang beyond those that the tasks state.
func (s *Job) GangBeyond() uint32 {
	left := s.MinAvailable
	for i := range s.Tasks {
		left -= min(left, s.Tasks[i].MinAvailable)
	}
	return left
}

// Gang returns for how many instances of a task virtual peers are set aside, so that the gang has enough: what is
// beyond the numbers of the tasks goes to them in their order.
func (s *Job) Gang(task TaskName) uint32 {
	left := s.GangBeyond()
	for i := range s.Tasks {
		t := &s.Tasks[i]
		beyond := min(left, t.RunningMax()-min(t.RunningMax(), t.MinAvailable))
		left -= beyond
		if t.Name == task {
			return t.MinAvailable + beyond
		}
	}
	return 0
}

// Task is one named part of a job: one program with what it needs, run as a number of instances.
type Task struct {
	Name      TaskName
	Instances uint32
	// MinAvailable is how many of the instances belong to the job's gang at least.
	MinAvailable uint32
	// MaxRunning bounds the instances that run at a time, 0 not at all.
	MaxRunning uint32
	// Percent is the task's part of the job's virtual peers, where the job divides by that.
	Percent uint32
	// MaxRunMillis is after which time an instance is ended as a failure for good; 0 is never.
	MaxRunMillis uint32
	// After are tasks of the job, each once: nothing runs before all their instances have succeeded.
	After []TaskName
	// Container is what instances run in; without an image they are processes of their nodes.
	Container Container
	// Command is the program and its arguments. In a container it may be absent: then the image says what runs.
	Command []string
	// Env is ordered by name, each name once.
	Env     []EnvVar
	WorkDir string
	User    string
	// Resources are reserved for each instance; CPU and memory are also its limits.
	Resources   Resources
	Devices     []DeviceRequest
	Ports       []PortRequest
	Constraints []constraint.Constraint
	// Labels are ordered by name, each name once. Constraints of any task count instances by them.
	Labels    []EnvVar
	Placement Placement
	// PerNodeMax bounds the instances on one node, 0 not at all. Those of versions without a bound do not count.
	PerNodeMax uint32
	// SpreadOver is the attribute over whose values the instances are spread as evenly as there is room, "" for none.
	SpreadOver string
	Restart    Restart
	Reschedule Reschedule
	// Policies come before those of the job; MaxRestarts is how often they may restart the task.
	Policies    []lifecycle.Policy
	MaxRestarts uint32
	Disconnect  Disconnect
	Checks      []Check
	Volumes     []Volume
	// StopDelayMillis is the time between the order to stop and SIGTERM, 0 for the usual one: see StopDelay. It is at
	// least StopDelayLeast otherwise. Jobs have it since rules.StopDelays.
	StopDelayMillis uint32
	// StopSignal is what asks an instance to end. Jobs have it since rules.StopSignals.
	StopSignal StopSignal
	// StopGraceMillis is the time between that and SIGKILL.
	StopGraceMillis uint32
	// ProcessesMax bounds the processes and threads of an instance, 0 as its node does. Jobs have it since
	// rules.Authorities.
	ProcessesMax uint32
	// KeepVolumesMillis is how long what the volumes of a slot hold is kept when no instance is to have them any more: the
	// job has ended, or the task has fewer instances. 0 is until somebody removes them. Since rules.KeptVolumes.
	KeepVolumesMillis int64
	// DiskBytesMax bounds what an instance takes of the disk, 0 as its node does. Jobs have it since rules.DiskLimits.
	DiskBytesMax int64
	// VolumesBytesMax bounds what the volumes of an instance hold together, 0 as their disk does. Jobs have it since
	// rules.StopSignals.
	VolumesBytesMax int64
	// OnMembersChange is what instances are sent when the files of the job's plugins have changed.
	OnMembersChange Signal
	// IDTokens are what instances show programs outside of the cluster. Jobs have them since rules.Volumes.
	IDTokens []IDToken
	// Secrets are those of the job's pool that instances may read. Jobs have them since rules.DiskLimits.
	Secrets []SecretUse
	// HostPaths are folders of its machine that an instance uses. Jobs have them since rules.HostPaths.
	HostPaths []HostPath
}

// SecretUse lets instances read a secret, in a file that is replaced when the secret is put again. It is one of their
// job's pool, or what a server of Vault or OpenBao keeps.
type SecretUse struct {
	// Name is that of the secret in the pool; one of Vault has any.
	Name string
	// OnChange is what an instance is sent then.
	OnChange Signal
	// Path is where the file is: an absolute one in the task's container, another below the folder of the instance's
	// secrets; "" for a name that the node makes. Jobs have it since rules.SecretVersions.
	Path string
	// Version is the one that instances get, 0 for the newest. Jobs have it since rules.SecretVersions.
	Version uint32
	// Vault says where Vault has it; the zero value for a secret of the pool. Jobs have it since rules.VaultSecrets.
	Vault VaultSecret
}

// VaultSecret says where a server of Vault or OpenBao has a secret, in an engine of the kind KV, version 2.
type VaultSecret struct {
	// Mount is where the engine is, as in "secret".
	Mount string
	// Path is that of the secret in the engine, as "vault kv get -mount" takes it.
	Path string
	// Field is the one of it that is read, "" for all, as an object in JSON.
	Field string
	// Role is the one of Vault that the instance has, "" for the one that its machine names.
	Role string
}

// InPool tells whether the secret is one of the job's pool.
func (s *SecretUse) InPool() bool { return s.Vault == VaultSecret{} }

// AsksVault tells whether Vault has one of the secrets.
func (t *Task) AsksVault() bool {
	return slices.ContainsFunc(t.Secrets, func(s SecretUse) bool { return !s.InPool() })
}

// PoolSecrets are those secrets that are of the job's pool.
func (t *Task) PoolSecrets() (all []SecretUse) {
	for _, s := range t.Secrets {
		if s.InPool() {
			all = append(all, s)
		}
	}
	return all
}

// IDToken asks for a signed token (JWT) that says which instance shows it, in a file; it is replaced before it expires.
type IDToken struct {
	Name string
	// Audience is for whom it is, LifeMillis how long one is good for.
	Audience   string
	LifeMillis uint32
}

// TaskNames lists the names of the job's tasks.
func (s *Job) TaskNames() []string {
	all := make([]string, len(s.Tasks))
	for i := range s.Tasks {
		all[i] = string(s.Tasks[i].Name)
	}
	return all
}

// EnvVar is one variable of a task's environment.
type EnvVar struct{ Name, Value string }

// PortRequest asks for a TCP port on the instance's node; Number 0 leaves the choice to the scheduler.
type PortRequest struct {
	Name   string
	Number uint16
}

// Placement is the rule by which nodes are chosen among those that can.
type Placement uint8

// The placement policies.
const (
	// Pack fills nodes that are in use before it opens others.
	Pack Placement = iota + 1
	// Spread puts the instances of a task on as many nodes as it can.
	Spread
	// Defragment puts instances where the least of the devices that are left becomes useless for typical work.
	Defragment
)

// Placements lists every policy's name in job files at its number.
func Placements() []string { return []string{"", "pack", "spread", "defragment"} }

// String returns the policy's name in job files.
func (p Placement) String() string {
	if p == 0 {
		return "unknown"
	}
	return Placements()[p]
}

// RestartsUnlimited as Restart.AttemptsMax restarts for ever.
const RestartsUnlimited = 1<<32 - 1

// Restart says what happens to an instance that failed: it is started again on its node after a delay that doubles
// with every failure in a row.
type Restart struct {
	// AttemptsMax is the number of restarts after failures in a row; then a batch instance has failed.
	AttemptsMax uint32
	// DelayMillis is the delay before the first restart, DelayMaxMillis the longest.
	DelayMillis, DelayMaxMillis uint32
	// ResetMillis is the time an instance must have run for its failures to be forgotten.
	ResetMillis uint32
}

// Delay returns the milliseconds to wait before the restart that follows the given number of failures in a row (at
// least 1).
func (r Restart) Delay(failures uint32) int64 {
	delay := int64(r.DelayMillis)
	for range min(failures-1, 32) {
		delay = min(delay*2, int64(r.DelayMaxMillis))
	}
	return min(delay, int64(r.DelayMaxMillis))
}

// PluginRequest asks for a plugin, which tells the members of a job about each other. Package plugin knows them all.
type PluginRequest struct {
	Name string
	// Arguments are ordered by name, each name once.
	Arguments []EnvVar
}

// PluginsMax bounds the plugins that a job asks for, and the arguments of each.
const PluginsMax = 16

// Signal is what a running instance is sent when the files about its job's members have changed.
type Signal uint8

// The signals.
const (
	// NoSignal sends nothing: the instance looks at its files when it likes.
	NoSignal Signal = iota
	SignalHangUp
	SignalUser1
	SignalUser2
)

// Signals lists every signal's name in job files at its number.
func Signals() []string { return []string{"none", "SIGHUP", "SIGUSR1", "SIGUSR2"} }

// String returns the signal's name in job files.
func (s Signal) String() string { return Signals()[s] }

// StopSignal is what asks an instance to end.
type StopSignal uint8

// The signals that ask for an end.
const (
	// StopDefault is what the image of its container names, or SIGTERM.
	StopDefault StopSignal = iota
	StopTerminate
	StopInterrupt
	StopQuit
	StopHangUp
	StopUser1
	StopUser2
	StopWindowChange
)

// StopSignals lists every signal's name in job files at its number.
func StopSignals() []string {
	return []string{"default", "SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH"}
}

// String returns the signal's name in job files.
func (s StopSignal) String() string { return StopSignals()[s] }
