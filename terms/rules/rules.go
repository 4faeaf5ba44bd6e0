// Package rules numbers the versions of the fold, and tells what each of them has.
//
// All peers fold under the number that stands in the value, whatever their programs know beyond it. What makes a
// program take what another refuses, or fold it otherwise, is a row of a table here or elsewhere, and counts since its
// number: a command, a plugin, a limit, a step of the fold. Rows are never changed, only added.
package rules

// Number is a version of the fold. A program that knows one knows all below it.
type Number uint32

// First is the number with which a journal begins. A cluster that has had no job yet raises it to what its programs
// know.
const First Number = 1

// StopDelays has delays between the order to stop and the signal: a second order does not begin that time again.
const StopDelays Number = 2

// VolumesGivenUp lets a user give up what the volumes of an instance hold, so that it starts anywhere.
const VolumesGivenUp Number = 3

// Snapshots lets members take snapshots of the value, so that the journal can be trimmed.
const Snapshots Number = 4

// Containers has tasks that run in one.
const Containers Number = 5

// Registry has the value know the keys of nodes and users, join tokens, and who asked for what; and a snapshot may be
// asked for.
const Registry Number = 6

// Authorities has the value know the authorities whose certificates count, pools say as which users their jobs may run,
// and tasks state a start period of their checks and how many processes they may have.
const Authorities Number = 7

// Volumes has volumes that outlive their jobs.
const Volumes Number = 8

// DiskLimits has tasks state how much of the disk they may take, reports tell of what was out of disk, and the value
// keep secrets.
const DiskLimits Number = 9

// Lacks has reports tell that a node lacks what an instance needs to be started, so that it is not tried again there.
const Lacks Number = 10

// PullSecrets has tasks name the secret with which the registry of their image is asked.
const PullSecrets = Lacks

// Readiness has checks whose failure takes an instance off the lists of members, and does not end it. It shares its
// number with Lacks.
const Readiness = Lacks

// HostPaths has tasks use folders of their machines by name, and pools say which, and which kinds of devices, their
// jobs may have.
const HostPaths Number = 11

// MovedVolumes has volumes that are taken from one node to another with what they hold.
const MovedVolumes Number = 12

// SecretVersions keeps older versions of secrets, and has tasks say which they read, and where.
const SecretVersions Number = 13

// FailedElsewhere has an update count what an instance failed on nodes that it had before.
const FailedElsewhere Number = 14

// KeptVolumes has volumes whose tasks say how long they are kept when no instance is to have them, and single versions
// of secrets removed.
const KeptVolumes Number = 15

// VaultSecrets has tasks name secrets that a server of Vault or OpenBao keeps, and bounds those of one pool.
const VaultSecrets Number = 16

// NewMachines has the name of a node given to another machine only when what the node was may run nothing any more that
// must not run twice. It shares its number with VaultSecrets.
const NewMachines = VaultSecrets

// MountsApart has containers whose mounts do not hide each other, or what every container has from its machine. It
// shares its number with VaultSecrets.
const MountsApart = VaultSecrets

// RareDevices has nodes kept for work with devices only where they have some that others lack.
const RareDevices Number = 17

// Slack has jobs ask for what instances leave alone of what they were promised. It shares its number with RareDevices.
const Slack = RareDevices

// WrittenAmounts has refusals write amounts and times as job files do. It shares its number with RareDevices.
const WrittenAmounts = RareDevices

// CanaryAttempts counts what a canary fails, on the nodes that it had before, too, and lets it wait before it is tried
// again; a retry waits for all of its delay. It shares its number with RareDevices.
const CanaryAttempts = RareDevices

// NewestAfterUpdate has what begins after an update has succeeded begin in the newest version, wherever it was
// meanwhile. It shares its number with RareDevices.
const NewestAfterUpdate = RareDevices

// Successors gives the room of an instance that ends for an update or a restart to what takes its place, before any
// else.
const Successors Number = 18

// Unsuited has work that no node could run, even if it were empty, ask its pool for nothing. It shares its number with
// Successors.
const Unsuited = Successors

// PoolsForget has jobs that have ended forgotten first of the pool that has most of them, and there last those that say
// for how long they are kept. It shares its number with Successors.
const PoolsForget = Successors

// OneRole has a user that is added with a lower role lose a higher one, and credentials that have ended give none as
// long as others of the user have not. It shares its number with Successors.
const OneRole = Successors

// FirstGoesOn has what fails of a first version whose deployment failed tried again: nothing else runs that it could
// harm. It shares its number with Successors.
const FirstGoesOn = Successors

// UsersApart refuses a job that would have the same user of its own as another that is known. It shares its number with
// Successors.
const UsersApart = Successors

// LowestLives has the refusal of another machine for a node name the lowest of several instances. It shares its number
// with Successors.
const LowestLives = Successors

// StopSignals has tasks say which signal asks an instance to end, and how much its volumes may hold. It shares its
// number with Successors.
const StopSignals = Successors

// OwnRequests remembers requests of each user apart, and those of each kind about each job. It shares its number with
// Successors.
const OwnRequests = Successors

// WellAgain has what has been ready since its update failed tried again like any other when it fails. It shares its
// number with Successors.
const WellAgain = Successors

// DaemonsByOperators has daemons, which take room on all nodes whatever their pools may have, submitted by those who
// may drain nodes. It shares its number with Successors.
const DaemonsByOperators = Successors

// IdleGangs has jobs that want no instances at all keep what they say of their gang. It shares its number with
// Successors.
const IdleGangs = Successors

// EndNow has jobs and instances end at once that are told so, whatever delay and grace they ask for.
const EndNow Number = 19

// PoolShares leaves room for others where a pool has many jobs or instances, and forgets those requests first that are
// of the user with the most. It shares its number with EndNow.
const PoolShares = EndNow

// SharesFollow gives the node of what has ended of a task that virtual peers run to the next of it, if so all have
// their shares. It shares its number with EndNow.
const SharesFollow = EndNow

// DaemonsFirst lets pools use what daemons leave that were placed with the same entry. It shares its number with
// EndNow.
const DaemonsFirst = EndNow

// OncePerEntry has a main seat that waits beside a canary looked at by itself, so that not both are given nodes by one
// entry, with which their allocations would have one name. It shares its number with EndNow.
const OncePerEntry = EndNow

// Released is the newest number by which a released program folds.
const Released = EndNow

// Next is behind everything that is released. What counts since then is there to try mixed versions with: a program
// that is built with the tag nextrules says that it knows it, and so do some machines of the simulator.
const Next = Released + 1

// Row is something that exists since a number of the rules.
type Row[T any] struct {
	Since Number
	Value T
}

// Known returns what the rules have of a table, in its order.
func Known[T any](in Number, table []Row[T]) []T {
	var all []T
	for _, row := range table {
		if row.Since <= in {
			all = append(all, row.Value)
		}
	}
	return all
}

// Current returns what counts of a table in which each row takes the place of those before it, such as the history of a
// limit. The first row is there since First.
func Current[T any](in Number, history []Row[T]) T {
	value := history[0].Value
	for _, row := range history[1:] {
		if row.Since <= in {
			value = row.Value
		}
	}
	return value
}

// RestartsUndone has a restart that failed, and went back to a version before it, ask for nothing of what never was
// restarted. It shares its number with Successors.
const RestartsUndone = Successors

// ScalesWait has an update that only changes how many instances there are wait for room as a first deployment does. It
// shares its number with Successors.
const ScalesWait = Successors

// StaticKept has work wait for others to give way, rather than take what static reservations keep. It shares its number
// with Successors.
const StaticKept = Successors
