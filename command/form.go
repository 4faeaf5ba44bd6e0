package command

import (
	"slices"

	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/codec"
	"starling/terms/rules"
)

// form is a way to write a command: its kind, and which version of that. A new version adds fields. A command is
// written in the lowest version that has all of its fields that are not zero, so that each has one encoding.
type form struct {
	kind    Kind
	version uint16
}

// withRoles is the version of ChangePools whose pools may give roles to users, withUsers that in which they may say as
// which users their jobs run, withSpecBytes that in which they may say how much the specs of their jobs may take,
// withHostPaths that in which they may say which host paths and kinds of devices those may have.
const (
	withRoles     = terms.PoolVersionRoles
	withUsers     = terms.PoolVersionUsers
	withSpecBytes = terms.PoolVersionSpecBytes
	withHostPaths = terms.PoolVersion
)

// withoutVolumes is the version of EndAllocation that may give up volumes, endsNow that which may end it at once.
const (
	withoutVolumes = 2
	endsNow        = 3
)

// killsNow is the version of KillJob that may end instances at once.
const killsNow = 2

// withIsOff is the version of RemoveNode that may say that nothing runs there any more.
const withIsOff = 2

// withAbsence is the version of Volunteer that may say how long its peer is away.
const withAbsence = terms.OfferVersion

// withOutOfDisk and withNotThere are the versions of ReportTasks that tell of instances which were out of disk, and of
// such as could not be started there.
const (
	withOutOfDisk = 2
	withNotThere  = 3
)

// ofVersion is the version of RemoveSecret that may name one of the secret.
const ofVersion = 2

// later says since when there are the forms of which there was another first.
var later = map[form]rules.Number{
	{KindEndAllocation, withoutVolumes}: rules.VolumesGivenUp,
	{KindEndAllocation, endsNow}:        rules.EndNow,
	{KindKillJob, killsNow}:             rules.EndNow,
	{KindRemoveNode, withIsOff}:         rules.EndNow,
	{KindChangePools, withRoles}:        rules.Registry,
	{KindChangePools, withUsers}:        rules.Authorities,
	{KindChangePools, withSpecBytes}:    rules.Volumes,
	{KindChangePools, withHostPaths}:    rules.HostPaths,
	{KindVolunteer, withAbsence}:        rules.Volumes,
	{KindReportTasks, withOutOfDisk}:    rules.DiskLimits,
	{KindReportTasks, withNotThere}:     rules.Lacks,
	{KindRemoveSecret, ofVersion}:       rules.KeptVolumes,
}

func formOf(c Command) form {
	f := form{c.Kind(), 1}
	if later, ok := c.(interface{ version() uint16 }); ok {
		f.version = later.version()
	}
	return f
}

// version returns that of the job: the newest field which is not zero.
func (m *SubmitJob) version() uint16 { return m.Spec.Version() }

// version returns that of the pool with the newest field which is not zero.
func (m *ChangePools) version() uint16 {
	version := uint16(terms.PoolVersionFirst)
	for i := range m.Pools {
		version = max(version, m.Pools[i].Version())
	}
	return version
}

// version returns that of the offer.
func (m *Volunteer) version() uint16 { return m.Offer.Version() }

// version returns that of the newest field which is not zero.
func (m *KillJob) version() uint16 {
	if m.Now {
		return killsNow
	}
	return 1
}

// version returns that of the newest field which is not zero.
func (m *EndAllocation) version() uint16 {
	switch {
	case m.Now:
		return endsNow
	case m.WithoutVolumes:
		return withoutVolumes
	}
	return 1
}

// version returns that of the newest field which is not zero.
func (m *RemoveNode) version() uint16 {
	if m.IsOff {
		return withIsOff
	}
	return 1
}

// version returns that of the newest field which is not zero.
func (m *RemoveSecret) version() uint16 {
	if m.Version != 0 {
		return ofVersion
	}
	return 1
}

// version returns that of the newest ending.
func (m *ReportTasks) version() uint16 {
	version := uint16(1)
	for i := range m.Reports {
		switch m.Reports[i].Ended {
		case facts.OutOfDisk:
			version = max(version, withOutOfDisk)
		case facts.NotThere:
			version = withNotThere
		}
	}
	return version
}

// code writes or reads the body of a command of the form.
func (f form) code(c *codec.Coder, one Command) {
	c.Version = f.version
	one.code(c)
}

// since returns the number of the rules since which there is a form that this program knows. A command counts where the
// rules have its form; what they do not have is refused, even by a program that knows it.
func (f form) since() rules.Number {
	since, ok := later[f]
	switch {
	case ok:
		return since
	case f.kind == KindPassTime:
		return rules.Next
	case f.kind == KindSubmitJob:
		since, _ := terms.VersionSince(f.version)
		return since
	case f.kind == KindVouchSnapshot:
		return rules.Snapshots
	case f.kind == KindAddAuthority, f.kind == KindRemoveAuthority:
		return rules.Authorities
	case f.kind >= KindPutSecret && f.kind <= KindRemoveSecret:
		return rules.DiskLimits
	case f.kind == KindMoveVolumes:
		return rules.MovedVolumes
	case f.kind == KindRemoveVolumes:
		return rules.Volumes
	case f.kind >= KindAs && f.kind < kindEnd:
		return rules.Registry
	}
	return rules.First
}

// known tells whether this program has the form.
func (f form) known() bool {
	_, ofJobs := terms.VersionSince(f.version)
	_, hasRow := later[f]
	return f.version == 1 || f.kind == KindSubmitJob && ofJobs || hasRow
}

// Unreadable is a command that is refused because of how it is written: the rules in force do not have its form, or do
// not allow what its body holds. It keeps what was written.
type Unreadable struct {
	form form
	body []byte
	// Problem says why, in the words of all peers that have these rules.
	Problem string
}

func (f form) unreadable(body []byte, problem string) *Unreadable {
	return &Unreadable{f, slices.Clone(body), problem}
}

// Kind returns the kind as it was written; there may be none with that number.
func (u *Unreadable) Kind() Kind { return u.form.kind }

func (u *Unreadable) version() uint16 { return u.form.version }

func (u *Unreadable) code(c *codec.Coder) { c.Data = append(c.Data, u.body...) }

// blank returns an empty command of the form to decode into, nil for a form that this program does not know.
func blank(f form) Command {
	if !f.known() {
		return nil
	}
	switch f.kind {
	case KindPrepareJoin:
		return &PrepareJoin{}
	case KindNotifyJoin:
		return &NotifyJoin{}
	case KindAcceptJoin:
		return &AcceptJoin{}
	case KindAbortJoin:
		return &AbortJoin{}
	case KindLeave:
		return &Leave{}
	case KindVolunteer:
		return &Volunteer{}
	case KindSubmitJob:
		return &SubmitJob{}
	case KindKillJob:
		return &KillJob{}
	case KindReportTasks:
		return &ReportTasks{}
	case KindTellTime:
		return &TellTime{}
	case KindRaiseRules:
		return &RaiseRules{}
	case KindSteerUpdate:
		return &SteerUpdate{}
	case KindRevertJob:
		return &RevertJob{}
	case KindRestartJob:
		return &RestartJob{}
	case KindSuspendJob:
		return &SuspendJob{}
	case KindSealTask:
		return &SealTask{}
	case KindEndAllocation:
		return &EndAllocation{}
	case KindDrainNode:
		return &DrainNode{}
	case KindChangePools:
		return &ChangePools{}
	case KindVouchSnapshot:
		return &VouchSnapshot{}
	case KindRemoveVolumes:
		return &RemoveVolumes{}
	case KindMoveVolumes:
		return &MoveVolumes{}
	case KindPassTime:
		return &PassTime{}
	}
	return blankAccess(f.kind)
}

// blankAccess returns an empty command about who is known or wrote another, nil for a kind that is none.
func blankAccess(k Kind) Command {
	switch k {
	case KindAs:
		return &As{}
	case KindAddUser:
		return &AddUser{}
	case KindRemoveUser:
		return &RemoveUser{}
	case KindAddToken:
		return &AddToken{}
	case KindRemoveToken:
		return &RemoveToken{}
	case KindAdmitNode:
		return &AdmitNode{}
	case KindRemoveNode:
		return &RemoveNode{}
	case KindTakeSnapshot:
		return &TakeSnapshot{}
	case KindAddAuthority:
		return &AddAuthority{}
	case KindRemoveAuthority:
		return &RemoveAuthority{}
	case KindPutSecret:
		return &PutSecret{}
	case KindSealSecret:
		return &SealSecret{}
	case KindRemoveSecret:
		return &RemoveSecret{}
	}
	return nil
}
