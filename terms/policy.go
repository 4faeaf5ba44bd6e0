package terms

import "slices"

// Growth is how the delay before an attempt grows with the attempts before it.
type Growth uint8

// The growths.
const (
	// Constant delays are all alike.
	Constant Growth = iota
	// Exponential delays double.
	Exponential
	// Fibonacci delays are each the sum of the two before.
	Fibonacci
)

// Growths lists every growth's name in job files at its number.
func Growths() []string { return []string{"constant", "exponential", "fibonacci"} }

// String returns the growth's name in job files.
func (g Growth) String() string { return Growths()[g] }

// Reschedule says whether and when an instance that is out of restarts on its node is tried on another. The zero
// Reschedule never does.
type Reschedule struct {
	// AttemptsMax bounds the attempts within IntervalMillis; RestartsUnlimited has no bound.
	AttemptsMax    uint32
	IntervalMillis uint32
	// DelayMillis is the delay before the first attempt, DelayMaxMillis the longest.
	DelayMillis, DelayMaxMillis uint32
	Growth                      Growth
}

// Survivor says which of two allocations of a slot stays when a node returns that had been given up.
type Survivor uint8

// The survivors.
const (
	// KeepOriginal keeps what ran on the node that returned.
	KeepOriginal Survivor = iota
	// KeepReplacement keeps what was started in its place.
	KeepReplacement
	// KeepLongest keeps what has run for longer.
	KeepLongest
)

// Survivors lists every survivor's name in job files at its number.
func Survivors() []string { return []string{"original", "replacement", "longest-running"} }

// String returns the survivor's name in job files.
func (s Survivor) String() string { return Survivors()[s] }

// Disconnect says what becomes of an instance whose node left the cluster but may return. The zero Disconnect gives it
// up at once.
type Disconnect struct {
	// LostAfterMillis is how long the node may return and find its instance still wanted.
	LostAfterMillis uint32
	// Wait tells that no replacement is started before that time is over.
	Wait bool
	Keep Survivor
	// StopAfterMillis, unless 0, is after which time without the cluster the node stops the instance by itself; until that
	// is certain to have happened nothing takes its place. It excludes LostAfterMillis.
	StopAfterMillis uint32
}

// CheckKind is how a check asks whether an instance is well.
type CheckKind uint8

// The kinds of check.
const (
	// CheckHTTP wants an answer with a status of 200 to 399.
	CheckHTTP CheckKind = iota + 1
	// CheckTCP wants a connection.
	CheckTCP
	// CheckCommand wants a program that exits with 0.
	CheckCommand
	// CheckGRPC wants that the health service of gRPC says SERVING.
	CheckGRPC
)

// CheckKinds lists every kind's name in job files at its number.
func CheckKinds() []string { return []string{"", "http", "tcp", "command", "grpc"} }

// AsksPort tells whether checks of the kind ask at a port.
func (k CheckKind) AsksPort() bool { return k == CheckHTTP || k == CheckTCP || k == CheckGRPC }

// String returns the kind's name in job files.
func (k CheckKind) String() string { return CheckKinds()[k] }

// addressesKeptMillis is how long a service goes on when it has left the lists of addresses: twice as long as the
// answers of package dns may be kept, so that the slowest peer has a second to fold the entry that says so.
const addressesKeptMillis = 2000

// StopDelay returns how long an instance that is told to stop goes on before it is sent its signal, in a job of this
// type: its clients keep its address for a while after it has left the lists. Whoever says nothing of it gets what
// services with ports need.
func (t *Task) StopDelay(kind JobType) Time {
	if t.StopDelayMillis > 0 {
		return Time(t.StopDelayMillis)
	}
	if (kind == Stateless || kind == Stateful) && len(t.Ports) > 0 {
		return addressesKeptMillis
	}
	return 0
}

// StopsItself tells whether an instance that is cut off from the cluster stops itself, and nothing may take its place
// before.
func (t *Task) StopsItself() bool { return t.Disconnect.StopAfterMillis > 0 }

// OnFailure is what follows when a check fails too often in a row.
type OnFailure uint8

// What may follow.
const (
	// RestartOnFailure stops the instance, as a failure: what is asked is whether it lives.
	RestartOnFailure OnFailure = iota
	// UnreadyOnFailure has the instance be not ready until the check passes again: it goes on, and nobody is told to find
	// it. Checks have it since rules.Readiness.
	UnreadyOnFailure
)

// OnFailures lists the names of what may follow in job files at their numbers.
func OnFailures() []string { return []string{"restart", "unready"} }

// String returns the name in job files.
func (o OnFailure) String() string { return OnFailures()[o] }

// AsksReadiness tells whether the task has a check that says when an instance is ready, and not only the first time: an
// instance is on the lists of members while it is ready.
func (t *Task) AsksReadiness() bool {
	return slices.ContainsFunc(t.Checks, func(c Check) bool { return c.OnFailure == UnreadyOnFailure })
}

// Check asks an instance again and again whether it is well. An instance is ready when all its checks have passed; what
// follows when one fails too often in a row, the check says.
type Check struct {
	Kind CheckKind
	// Port is the name of one of the task's ports, if the kind asks at one; Path is what HTTP asks for, Service what gRPC
	// does, "" for all that listens there.
	Port, Path, Service string
	Command             []string
	// Method, Headers and Body are how HTTP asks, Status is the only one that is well, 0 for 200 to 399. Checks have them
	// since rules.Volumes.
	Method  Method
	Headers []EnvVar
	Body    string
	Status  uint16
	// StartMillis is how long after the start of an instance no failure counts, unless the check has passed before. Checks
	// have it, and ask by gRPC, since rules.Authorities.
	StartMillis uint32
	// IntervalMillis is between two questions, TimeoutMillis the longest wait for an answer.
	IntervalMillis, TimeoutMillis uint32
	// FailuresMax is how many failures in a row are tolerated.
	FailuresMax uint32
	OnFailure   OnFailure
}

// Method is by which method HTTP asks.
type Method uint8

// Methods lists those that checks may ask by at their numbers; 0 is GET.
func Methods() []string { return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} }

// String returns the method's name.
func (m Method) String() string { return Methods()[m] }

// Volume is a folder of a slot that outlives its allocations; its path stands in STARLING_VOLUME_<NAME>.
type Volume struct{ Name string }

// HostPath is a folder that machines offer by a name; its path stands in STARLING_HOST_PATH_<NAME>.
type HostPath struct {
	Name string
	// ReadOnly leaves nothing to be changed there, where the machine confines tasks, and in containers.
	ReadOnly bool
}

// UpdatePolicy says how a job moves from one version to the next. The zero UpdatePolicy changes all instances at once.
type UpdatePolicy struct {
	// BatchSize is how many instances may be without health at a time because of the update; 0 is all.
	BatchSize uint32
	// Canaries are the instances of the new version that are tried beside the old before anything else happens.
	Canaries uint32
	// AutoPromote goes on by itself when all canaries are healthy.
	AutoPromote bool
	// MinHealthyMillis is how long an instance must have been ready to count as healthy.
	MinHealthyMillis uint32
	// HealthyDeadlineMillis is when an instance that is not healthy counts as failed; 0 is never. ProgressDeadlineMillis
	// is how long no instance may become healthy before the update fails; 0 is for ever.
	HealthyDeadlineMillis, ProgressDeadlineMillis uint32
	// AttemptsMax is how often one instance may fail before it counts as failed; 0 is without end.
	AttemptsMax uint32
	// FailuresMax is how many failed instances an update bears; RestartsUnlimited any number.
	FailuresMax uint32
	// Rollback goes back to the version before when the update fails.
	Rollback bool
	// StartPaused waits for a resume before anything changes.
	StartPaused bool
	// SameNode starts an instance's new version on its node, if that still has room.
	SameNode bool
}

// Limits of policies.
const (
	// ChecksMax, VolumesMax and HostPathsMax bound a task's checks, volumes and host paths.
	ChecksMax    = 8
	VolumesMax   = 8
	HostPathsMax = 8
)
