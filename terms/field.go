package terms

import (
	"math"

	"starling/terms/codec"
	"starling/terms/constraint"
	"starling/terms/lifecycle"
	"starling/terms/rules"
)

// coder is short for what codes.
type coder = codec.Coder

// field is a field of a job or a task, or a part of one: the key under which it stands in job files, the version of the
// encoding that it came with, what another value means for an instance, and how it is coded. Its row is all that is
// said of it here: encoding, equality, fingerprint and Differences follow.
type field[T any] struct {
	key    string
	since  uint16
	change func(a, b *T) Change
	code   func(*coder, *T)
}

// versions lists since which number of the rules there is each version of the encoding, from version 1. One has all
// fields of those before it.
var versions = [...]rules.Number{rules.First, rules.StopDelays, rules.Containers, rules.Authorities,
	rules.Volumes, rules.DiskLimits, rules.Lacks, rules.HostPaths, rules.SecretVersions, rules.KeptVolumes,
	rules.VaultSecrets, rules.StopSignals}

// VersionSince returns since which number of the rules jobs have a version of their encoding; ok is false for one that
// this program does not know.
func VersionSince(version uint16) (since rules.Number, ok bool) {
	if version < 1 || int(version) > len(versions) {
		return 0, false
	}
	return versions[version-1], true
}

// jobFields has the fields of Job in the order of their encoding. A new one stands at the end, with a new version.
var jobFields = [...]field[Job]{
	{"job", 1, nothing[Job], func(c *coder, j *Job) { codec.Text(c, &j.Name, JobNameBytesMax) }},
	{"type", 1, nothing[Job], func(c *coder, j *Job) { codec.Integer(c, &j.Type, uint64(Daemon)) }},
	{"priority", 1, nothing[Job], func(c *coder, j *Job) { codec.Uint32s(c, &j.Priority) }},
	{"preemptible", 1, nothing[Job], func(c *coder, j *Job) { codec.Integer(c, &j.Preemption, uint64(Preemptible)) }},
	{"revocable", 1, nothing[Job], func(c *coder, j *Job) { codec.Flags(c, &j.Revocable) }},
	{"controller", 1, nothing[Job], func(c *coder, j *Job) { codec.Flags(c, &j.Controller) }},
	{"kill_on_preempt", 1, nothing[Job], func(c *coder, j *Job) { codec.Flags(c, &j.KillOnPreempt) }},
	{"task_scheduler", 1, nothing[Job], func(c *coder, j *Job) {
		codec.Integer(c, &j.TaskScheduler, uint64(TaskColocated))
	}},
	{"percent", 1, nothing[Job], func(c *coder, j *Job) { codec.Uint32s(c, &j.Percent) }},
	{"coverage", 1, nothing[Job], func(c *coder, j *Job) { codec.Integer(c, &j.Coverage, uint64(CoverageOptional)) }},
	{"min_available", 1, nothing[Job], func(c *coder, j *Job) { codec.Uint32s(c, &j.MinAvailable) }},
	{"within", 1, nothing[Job], func(c *coder, j *Job) { codec.Text(c, &j.Within, constraint.NameBytesMax) }},
	{"grow", 1, nothing[Job], func(c *coder, j *Job) { codec.Integer(c, &j.Grow, uint64(GrowWhole)) }},
	{"min_success", 1, nothing[Job], func(c *coder, j *Job) { codec.Uint32s(c, &j.MinSuccess) }},
	{"policies", 1, nothing[Job], func(c *coder, j *Job) { lifecycle.Code(c, &j.Policies) }},
	{"max_restarts", 1, nothing[Job], func(c *coder, j *Job) { codec.Uint32s(c, &j.MaxRestarts) }},
	{"keep", 1, nothing[Job], func(c *coder, j *Job) { codec.Uint32s(c, &j.KeepMillis) }},
	{"after", 1, nothing[Job], func(c *coder, j *Job) { codec.Texts(c, &j.After, JobsAfterMax, JobNameBytesMax) }},
	{"update", 1, nothing[Job], func(c *coder, j *Job) { codeUpdate(c, &j.Update) }},
	{"plugins", 1, replace[Job], func(c *coder, j *Job) { codec.List(c, &j.Plugins, PluginsMax, codePlugin) }},
	{"tasks", 1, nothing[Job], func(c *coder, j *Job) { codec.List(c, &j.Tasks, TasksMax, codeTask) }},
}

// taskFields has those of Task. What concerns only what comes after an end replaces nothing.
var taskFields = [...]field[Task]{
	{"name", 1, replace[Task], func(c *coder, t *Task) { codec.Text(c, &t.Name, NameBytesMax) }},
	{"instances", 1, nothing[Task], func(c *coder, t *Task) { codec.Uint32s(c, &t.Instances) }},
	{"min_available", 1, nothing[Task], func(c *coder, t *Task) { codec.Uint32s(c, &t.MinAvailable) }},
	{"max_running", 1, nothing[Task], func(c *coder, t *Task) { codec.Uint32s(c, &t.MaxRunning) }},
	{"percent", 1, nothing[Task], func(c *coder, t *Task) { codec.Uint32s(c, &t.Percent) }},
	{"max_run_time", 1, inPlace, func(c *coder, t *Task) { codec.Uint32s(c, &t.MaxRunMillis) }},
	{"after", 1, nothing[Task], func(c *coder, t *Task) { codec.Texts(c, &t.After, TasksMax, NameBytesMax) }},
	{"command", 1, replace[Task], func(c *coder, t *Task) { codec.Texts(c, &t.Command, ArgumentsMax, TextBytesMax) }},
	{"env", 1, replace[Task], func(c *coder, t *Task) { codec.List(c, &t.Env, ArgumentsMax, CodeVariable) }},
	{"work_dir", 1, replace[Task], func(c *coder, t *Task) { codec.Text(c, &t.WorkDir, TextBytesMax) }},
	{"user", 1, replace[Task], func(c *coder, t *Task) { codec.Text(c, &t.User, TextBytesMax) }},
	{"resources", 1, replace[Task], func(c *coder, t *Task) { CodeResources(c, &t.Resources) }},
	{"devices", 1, replace[Task], func(c *coder, t *Task) { codec.List(c, &t.Devices, RequestsPerTaskMax, codeDevice) }},
	{"ports", 1, replace[Task], func(c *coder, t *Task) { codec.List(c, &t.Ports, RequestsPerTaskMax, codePort) }},
	{"constraints", 1, byRules, func(c *coder, t *Task) {
		codec.List(c, &t.Constraints, RequestsPerTaskMax, constraint.Code)
	}},
	{"labels", 1, replace[Task], func(c *coder, t *Task) { codec.List(c, &t.Labels, RequestsPerTaskMax, CodeVariable) }},
	{"per_machine_max", 1, byBound, func(c *coder, t *Task) { codec.Uint32s(c, &t.PerNodeMax) }},
	{"spread_over", 1, inPlace, func(c *coder, t *Task) { codec.Text(c, &t.SpreadOver, constraint.NameBytesMax) }},
	{"placement", 1, inPlace, func(c *coder, t *Task) { codec.Integer(c, &t.Placement, uint64(Defragment)) }},
	{"restart", 1, inPlace, func(c *coder, t *Task) {
		codec.Uint32s(c, &t.Restart.AttemptsMax, &t.Restart.DelayMillis, &t.Restart.DelayMaxMillis, &t.Restart.ResetMillis)
	}},
	{"stop_grace", 1, asTold, func(c *coder, t *Task) { codec.Uint32s(c, &t.StopGraceMillis) }},
	{"reschedule", 1, inPlace, func(c *coder, t *Task) {
		r := &t.Reschedule
		codec.Uint32s(c, &r.AttemptsMax, &r.IntervalMillis, &r.DelayMillis, &r.DelayMaxMillis)
	}},
	{"disconnect", 1, asTold, func(c *coder, t *Task) {
		codec.Uint32s(c, &t.Disconnect.LostAfterMillis, &t.Disconnect.StopAfterMillis)
	}},
	{"reschedule", 1, inPlace, func(c *coder, t *Task) {
		codec.Integer(c, &t.Reschedule.Growth, uint64(Fibonacci))
	}},
	{"disconnect", 1, asTold, func(c *coder, t *Task) {
		codec.Flags(c, &t.Disconnect.Wait)
		codec.Integer(c, &t.Disconnect.Keep, uint64(KeepLongest))
	}},
	{"policies", 1, inPlace, func(c *coder, t *Task) { lifecycle.Code(c, &t.Policies) }},
	{"max_restarts", 1, inPlace, func(c *coder, t *Task) { codec.Uint32s(c, &t.MaxRestarts) }},
	{"checks", 1, replace[Task], func(c *coder, t *Task) { codec.List(c, &t.Checks, ChecksMax, codeCheck) }},
	{"volumes", 1, replace[Task], func(c *coder, t *Task) { codec.List(c, &t.Volumes, VolumesMax, codeVolume) }},
	{"on_members_change", 1, inPlace, func(c *coder, t *Task) {
		codec.Integer(c, &t.OnMembersChange, uint64(SignalUser2))
	}},
	{"stop_delay", 2, inPlace, func(c *coder, t *Task) { codec.Uint32s(c, &t.StopDelayMillis) }},
	{"container", 3, replace[Task], func(c *coder, t *Task) { codeContainer(c, &t.Container) }},
	{"checks", 4, replace[Task], codeMoreOfChecks},
	{"pids_limit", 4, replace[Task], func(c *coder, t *Task) { codec.Uint32s(c, &t.ProcessesMax) }},
	{"checks", 5, replace[Task], codeQuestions},
	{"id_tokens", 5, replace[Task], func(c *coder, t *Task) { codec.List(c, &t.IDTokens, IDTokensMax, codeIDToken) }},
	{"disk_limit", 6, replace[Task], func(c *coder, t *Task) { codec.Integer(c, &t.DiskBytesMax, math.MaxInt64) }},
	{"secrets", 6, replace[Task], func(c *coder, t *Task) { codec.List(c, &t.Secrets, SecretsMax, codeSecret) }},
	{"container", 7, replace[Task], func(c *coder, t *Task) { codec.Text(c, &t.Container.PullSecret, NameBytesMax) }},
	{"checks", 7, replace[Task], codeOnFailure},
	{"host_paths", 8, replace[Task], func(c *coder, t *Task) { codec.List(c, &t.HostPaths, HostPathsMax, codeHostPath) }},
	{"secrets", 9, replace[Task], codeMoreOfSecrets},
	{"keep_volumes", 10, nothing[Task], func(c *coder, t *Task) { codec.Integer(c, &t.KeepVolumesMillis, math.MaxInt64) }},
	{"secrets", 11, replace[Task], codeVault},
	{"stop_signal", 12, replace[Task], func(c *coder, t *Task) {
		codec.Integer(c, &t.StopSignal, uint64(StopWindowChange))
	}},
	{"volumes_limit", 12, replace[Task], func(c *coder, t *Task) { codec.Integer(c, &t.VolumesBytesMax, math.MaxInt64) }},
}

// Code writes or reads the job, in the version of the coder.
func (s *Job) Code(c *codec.Coder) { codeJob(c, s) }

// Bytes returns how many bytes the job takes in the journal and in snapshots.
func (s *Job) Bytes() int64 {
	bytes, _ := s.Measure()
	return bytes
}

// Measure returns how many bytes the job takes in the journal and in snapshots, and the version of the encoding that is
// written there.
func (s *Job) Measure() (bytes int64, version uint16) {
	c := codec.Measure()
	version = s.versionBy(c)
	before := c.Size()
	c.Version = version
	codeJob(c, s)
	return int64(c.Size() - before), version
}

func codeJob(c *coder, s *Job) { codeFields(c, jobFields[:], s) }

func codeTask(c *coder, t *Task) { codeFields(c, taskFields[:], t) }

func codeFields[T any](c *coder, fields []field[T], v *T) {
	for i := range fields {
		if fields[i].since <= c.Version {
			fields[i].code(c, v)
		}
	}
}

// Version returns the lowest version of the encoding that has all fields of the job which are not zero.
func (s *Job) Version() uint16 { return s.versionBy(codec.Measure()) }

func (s *Job) versionBy(c *coder) uint16 {
	version := versionOf(c, jobFields[:], s)
	for i := range s.Tasks {
		version = max(version, versionOf(c, taskFields[:], &s.Tasks[i]))
	}
	return version
}

// versionOf returns the lowest version that has all fields of v which are not zero.
func versionOf[T any](c *coder, fields []field[T], v *T) uint16 {
	version := uint16(1)
	for i := range fields {
		if f := &fields[i]; f.since > version && !codec.Zero(c, v, f.code) {
			version = f.since
		}
	}
	return version
}

// Added returns the bytes of all fields that came after a version of the encoding.
func (s *Job) Added(after uint16) []byte {
	c := codec.Writer()
	added(c, jobFields[:], s, after)
	for i := range s.Tasks {
		added(c, taskFields[:], &s.Tasks[i], after)
	}
	return c.Data
}

func added[T any](c *coder, fields []field[T], v *T, after uint16) {
	for i := range fields {
		if fields[i].since > after {
			fields[i].code(c, v)
		}
	}
}

func codeUpdate(c *coder, u *UpdatePolicy) {
	codec.Uint32s(c, &u.BatchSize, &u.Canaries, &u.MinHealthyMillis, &u.HealthyDeadlineMillis, &u.ProgressDeadlineMillis,
		&u.AttemptsMax, &u.FailuresMax)
	codec.Flags(c, &u.AutoPromote, &u.Rollback, &u.StartPaused, &u.SameNode)
}

func codePlugin(c *coder, q *PluginRequest) {
	codec.Text(c, &q.Name, NameBytesMax)
	codec.List(c, &q.Arguments, PluginsMax, CodeVariable)
}

func codeDevice(c *coder, d *DeviceRequest) {
	codec.Text(c, &d.Kind, NameBytesMax)
	codec.Integer(c, &d.Amount, math.MaxUint32)
	codec.Texts(c, &d.Models, RequestsPerTaskMax, NameBytesMax)
}

func codePort(c *coder, p *PortRequest) {
	codec.Text(c, &p.Name, NameBytesMax)
	codec.Integer(c, &p.Number, math.MaxUint16)
}

func codeCheck(c *coder, k *Check) {
	kind := k.Kind
	if kind == CheckGRPC { // in their first form they have that port
		kind = CheckTCP
	}
	codec.Integer(c, &kind, uint64(CheckCommand))
	if !c.Writing {
		k.Kind = kind
	}
	codec.Text(c, &k.Port, NameBytesMax)
	codec.Text(c, &k.Path, TextBytesMax)
	codec.Texts(c, &k.Command, ArgumentsMax, TextBytesMax)
	codec.Uint32s(c, &k.IntervalMillis, &k.TimeoutMillis, &k.FailuresMax)
}

// codeMoreOfChecks codes what checks have since version 4 of the encoding.
func codeMoreOfChecks(c *coder, t *Task) {
	codeSomeChecks(c, t, (*Check).hasMore, func(c *coder, k *Check) {
		asksGRPC := k.Kind == CheckGRPC
		codec.Flags(c, &asksGRPC)
		codec.Uint32s(c, &k.StartMillis)
		codec.Text(c, &k.Service, NameBytesMax)
		switch {
		case c.Writing:
		case asksGRPC && k.Kind != CheckTCP:
			c.Fail("has a check by gRPC that begins as one by %s", k.Kind)
		case asksGRPC:
			k.Kind = CheckGRPC
		}
	})
}

// codeQuestions codes what checks have since version 5 of the encoding.
func codeQuestions(c *coder, t *Task) {
	codeSomeChecks(c, t, (*Check).saysMore, func(c *coder, k *Check) {
		codec.Integer(c, &k.Method, uint64(len(Methods())-1))
		codec.List(c, &k.Headers, HeadersMax, CodeVariable)
		codec.Text(c, &k.Body, TextBytesMax)
		codec.Integer(c, &k.Status, math.MaxUint16)
	})
}

// codeOnFailure codes what checks have since version 7 of the encoding.
func codeOnFailure(c *coder, t *Task) {
	has := func(k *Check) bool { return k.OnFailure != RestartOnFailure }
	codeSomeChecks(c, t, has, func(c *coder, k *Check) { codec.Integer(c, &k.OnFailure, uint64(len(OnFailures())-1)) })
}

// codeSomeChecks codes a part of those checks that have any of it.
func codeSomeChecks(c *coder, t *Task, has func(*Check) bool, code func(*coder, *Check)) {
	codeSome(c, t.Checks, extra[Check]{"check", has, code})
}

// extra is what only some elements of a list have, with what one of them is called. Its functions have no variables of
// others: they would be made for each job.
type extra[E any] struct {
	of   string
	has  func(*E) bool
	code func(*coder, *E)
}

// codeSome codes a part of those elements that have any of it. How many there are is known by then, at most 63.
func codeSome[E any](c *coder, all []E, x extra[E]) {
	having := uint64(0) // a bit for each
	for i := range all {
		if x.has(&all[i]) {
			having |= 1 << i
		}
	}
	codec.Integer(c, &having, 1<<len(all)-1)
	for i := range all {
		if having>>i&1 == 0 {
			continue
		}
		if x.code(c, &all[i]); !c.Writing && !x.has(&all[i]) {
			c.Fail("has a %s with nothing more", x.of)
		}
	}
}

// saysMore tells whether the check asks by HTTP in another way than a plain GET.
func (k *Check) saysMore() bool {
	return k.Method != 0 || len(k.Headers) > 0 || k.Body != "" || k.Status != 0
}

// hasMore tells whether the first form of a check is not all of it.
func (k *Check) hasMore() bool { return k.Kind == CheckGRPC || k.StartMillis > 0 || k.Service != "" }

func codeContainer(c *coder, n *Container) {
	codec.Text(c, &n.Image, TextBytesMax)
	codec.Texts(c, &n.Arguments, ArgumentsMax, TextBytesMax)
	codec.Flags(c, &n.ReadOnly)
	codec.Texts(c, &n.Capabilities, CapabilitiesMax, NameBytesMax)
	codec.List(c, &n.Mounts, MountsMax, codeMount)
}

func codeMount(c *coder, m *Mount) {
	codec.Text(c, &m.Path, TextBytesMax)
	codec.Text(c, &m.Volume, NameBytesMax)
	codec.Flags(c, &m.ReadOnly)
}

func codeVolume(c *coder, v *Volume) { codec.Text(c, &v.Name, NameBytesMax) }

func codeHostPath(c *coder, h *HostPath) {
	codec.Text(c, &h.Name, NameBytesMax)
	codec.Flags(c, &h.ReadOnly)
}

func codeSecret(c *coder, s *SecretUse) {
	codec.Text(c, &s.Name, NameBytesMax)
	codec.Integer(c, &s.OnChange, uint64(SignalUser2))
}

// codeMoreOfSecrets codes what secrets of a task have since version 9 of the encoding.
func codeMoreOfSecrets(c *coder, t *Task) {
	has := func(s *SecretUse) bool { return s.Path != "" || s.Version != 0 }
	codeSome(c, t.Secrets, extra[SecretUse]{"secret", has, func(c *coder, s *SecretUse) {
		codec.Text(c, &s.Path, TextBytesMax)
		codec.Uint32s(c, &s.Version)
	}})
}

// codeVault codes where Vault has secrets of a task.
func codeVault(c *coder, t *Task) {
	has := func(s *SecretUse) bool { return !s.InPool() }
	codeSome(c, t.Secrets, extra[SecretUse]{"place in Vault", has, func(c *coder, s *SecretUse) {
		for _, text := range [...]*string{&s.Vault.Mount, &s.Vault.Path, &s.Vault.Field, &s.Vault.Role} {
			codec.Text(c, text, VaultTextMax)
		}
	}})
}

func codeIDToken(c *coder, k *IDToken) {
	codec.Text(c, &k.Name, NameBytesMax)
	codec.Text(c, &k.Audience, TextBytesMax)
	codec.Uint32s(c, &k.LifeMillis)
}

// CodeVariable codes a variable, an attribute or an argument.
func CodeVariable(c *coder, v *EnvVar) {
	codec.Text(c, &v.Name, NameBytesMax*4)
	codec.Text(c, &v.Value, TextBytesMax)
}

// CodeResources codes an amount of each kind.
func CodeResources(c *coder, r *Resources) {
	for k := range r {
		codec.Integer(c, &r[k], math.MaxInt64)
	}
}

// Code writes or reads what a node offers.
func (o *Offer) Code(c *codec.Coder) {
	CodeResources(c, &o.Capacity)
	codec.List(c, &o.Attributes, ArgumentsMax, CodeVariable)
	codec.List(c, &o.Devices, RequestsPerTaskMax, codeDeviceOffer)
	codec.Integer(c, &o.PortFirst, math.MaxUint16)
	codec.Integer(c, &o.PortLast, math.MaxUint16)
	codec.Text(c, &o.Address, AddressBytesMax)
	codec.Integer(c, &o.Rules, math.MaxUint32)
	if c.Version >= OfferVersion {
		codec.Integer(c, &o.AwayUntil, math.MaxInt64)
	}
}

func codeDeviceOffer(c *coder, d *DeviceOffer) {
	codec.Text(c, &d.Kind, NameBytesMax)
	codec.Text(c, &d.Model, NameBytesMax)
	codec.Integer(c, &d.Count, math.MaxUint32)
}

// Code writes or reads a pool.
func (s *Pool) Code(c *codec.Coder) {
	CodePoolPath(c, &s.Path)
	for k := range s.Quotas {
		q := &s.Quotas[k]
		codec.Integer(c, &q.Reservation, math.MaxInt64)
		codec.Integer(c, &q.Limit, math.MaxInt64)
		codec.Integer(c, &q.Share, math.MaxInt64)
		codec.Flags(c, &q.Static)
	}
	codec.Integer(c, &s.ControllerLimit, math.MaxUint8)
	codec.Integer(c, &s.SlackLimit, math.MaxUint8)
	codec.Integer(c, &s.PreemptionDelayMillis, math.MaxUint32)
	codec.Integer(c, &s.JobScheduler, uint64(JobPercentage))
	codec.List(c, &s.Owners, RequestsPerTaskMax, codeOwner)
	if c.Version >= PoolVersionRoles {
		codec.List(c, &s.Operators, RequestsPerTaskMax, codeOwner)
		codec.List(c, &s.Submitters, RequestsPerTaskMax, codeOwner)
		codec.List(c, &s.Viewers, RequestsPerTaskMax, codeOwner)
	}
	if c.Version >= PoolVersionUsers {
		codec.List(c, &s.RunAs, RequestsPerTaskMax, codeOwner)
	}
	if c.Version >= PoolVersionSpecBytes {
		codec.Integer(c, &s.SpecBytes, math.MaxInt64)
	}
	if c.Version >= PoolVersion {
		codec.List(c, &s.HostPaths, RequestsPerTaskMax, codeOwner)
		codec.List(c, &s.DeviceKinds, RequestsPerTaskMax, codeOwner)
		codec.List(c, &s.Capabilities, RequestsPerTaskMax, codeOwner)
	}
}

func codeOwner(c *coder, o *string) { codec.Text(c, o, ownerBytesMax) }

// ownerBytesMax bounds the name of a user in a pool.
const ownerBytesMax = 256

// CodePoolPath writes or reads the path of a pool.
func CodePoolPath(c *codec.Coder, p *PoolPath) { codec.Text(c, p, JobNameBytesMax) }
