package command

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/constraint"
	"starling/terms/lifecycle"
)

// samples returns an entry for every form of command, with something in every field that it has.
func samples() map[form]*Entry {
	entries := map[form]*Entry{}
	add := func(one Command) {
		entries[formOf(one)] = &Entry{
			Rules: Needs([]Command{one}), Writer: "a~1", Seq: 1<<32 | 7, Time: 1_700_000_000_123, Cause: 41,
			Commands: []Command{one},
		}
	}
	for _, one := range commands() {
		add(one)
		if change, ok := one.(*ChangePools); ok {
			roles := *change
			roles.Pools = slices.Clone(change.Pools)
			roles.Pools[0].Operators, roles.Pools[0].Submitters = []string{"ops"}, []string{"alice", "ci"}
			roles.Pools[0].Viewers = []string{"bob"}
			add(&roles)
			users := roles
			users.Pools = slices.Clone(roles.Pools)
			users.Pools[0].RunAs = []string{"www", "*"}
			add(&users)
			filled := users
			filled.Pools = slices.Clone(users.Pools)
			filled.Pools[0].SpecBytes = 1 << 20
			add(&filled)
			letting := filled
			letting.Pools = slices.Clone(filled.Pools)
			letting.Pools[0].HostPaths, letting.Pools[0].DeviceKinds = []string{"data"}, []string{"gpu", "fpga"}
			letting.Pools[0].Capabilities = []string{"NET_ADMIN"}
			add(&letting)
		}
		if volunteer, ok := one.(*Volunteer); ok {
			away := *volunteer
			away.Offer.AwayUntil = 1_700_000_600_000
			add(&away)
		}
		if told, ok := one.(*ReportTasks); ok {
			full := *told
			full.Reports = slices.Clone(told.Reports)
			full.Reports[0].Ended, full.Reports[0].Detail = facts.OutOfDisk, "it had taken 2.0 MiB"
			add(&full)
		}
		if submit, ok := one.(*SubmitJob); ok {
			addJobs(submit, add)
		}
	}
	return entries
}

// addJobs adds the later forms of the order to run a job.
func addJobs(submit *SubmitJob, add func(Command)) {
	delayed := *submit
	delayed.Spec.Tasks = slices.Clone(submit.Spec.Tasks)
	delayed.Spec.Tasks[0].StopDelayMillis = 2000
	add(&delayed)
	contained := delayed
	contained.Spec.Tasks = slices.Clone(delayed.Spec.Tasks)
	contained.Spec.Tasks[0].Container = terms.Container{Image: "registry.example/web:1.2", Arguments: []string{"-v"},
		ReadOnly: true, Capabilities: []string{"NET_ADMIN"},
		Mounts: []terms.Mount{{Path: "/data", Volume: "data", ReadOnly: true}}}
	add(&contained)
	asked := contained
	asked.Spec.Tasks = slices.Clone(contained.Spec.Tasks)
	asked.Spec.Tasks[0].ProcessesMax = 100
	asked.Spec.Tasks[0].Checks = slices.Clone(contained.Spec.Tasks[0].Checks)
	check := &asked.Spec.Tasks[0].Checks[0]
	check.Kind, check.Service, check.StartMillis = terms.CheckGRPC, "web.Orders", 30_000
	add(&asked)
	shown := asked
	shown.Spec.Tasks = slices.Clone(asked.Spec.Tasks)
	shown.Spec.Tasks[0].IDTokens = []terms.IDToken{{Name: "vault", Audience: "https://vault.example",
		LifeMillis: 3_600_000}}
	shown.Spec.Tasks[0].Checks = slices.Clone(asked.Spec.Tasks[0].Checks)
	question := &shown.Spec.Tasks[0].Checks[0]
	question.Method, question.Body, question.Status = 2, "{}", 204
	question.Headers = []terms.EnvVar{{Name: "Host", Value: "web.example"}}
	add(&shown)
	limited := shown
	limited.Spec.Tasks = slices.Clone(shown.Spec.Tasks)
	limited.Spec.Tasks[0].DiskBytesMax = 10 << 30
	limited.Spec.Tasks[0].Secrets = []terms.SecretUse{{Name: "db-password", OnChange: terms.SignalHangUp}}
	add(&limited)
	shut := limited
	shut.Spec.Tasks = slices.Clone(limited.Spec.Tasks)
	shut.Spec.Tasks[0].Container.PullSecret = "registry"
	shut.Spec.Tasks[0].Checks = slices.Clone(limited.Spec.Tasks[0].Checks)
	shut.Spec.Tasks[0].Checks[0].OnFailure = terms.UnreadyOnFailure
	add(&shut)
	offered := shut
	offered.Spec.Tasks = slices.Clone(shut.Spec.Tasks)
	offered.Spec.Tasks[0].HostPaths = []terms.HostPath{{Name: "dataset", ReadOnly: true}}
	add(&offered)
	placed := offered
	placed.Spec.Tasks = slices.Clone(offered.Spec.Tasks)
	placed.Spec.Tasks[0].Secrets = []terms.SecretUse{{Name: "db-password", OnChange: terms.SignalHangUp,
		Path: "/run/secrets/db", Version: 3}}
	add(&placed)
	kept := placed
	kept.Spec.Tasks = slices.Clone(placed.Spec.Tasks)
	kept.Spec.Tasks[0].KeepVolumesMillis = 30 * 24 * 3_600_000
	add(&kept)
	elsewhere := kept
	elsewhere.Spec.Tasks = slices.Clone(kept.Spec.Tasks)
	elsewhere.Spec.Tasks[0].Secrets = slices.Clone(kept.Spec.Tasks[0].Secrets)
	elsewhere.Spec.Tasks[0].Secrets[0].Vault = terms.VaultSecret{Mount: "kv", Path: "team/web", Field: "key", Role: "web"}
	add(&elsewhere)
	ending := elsewhere
	ending.Spec.Tasks = slices.Clone(elsewhere.Spec.Tasks)
	ending.Spec.Tasks[0].StopSignal, ending.Spec.Tasks[0].VolumesBytesMax = terms.StopQuit, 10<<30
	add(&ending)
}

// commands returns one of every kind, in its first version.
func commands() []Command {
	return []Command{
		&PrepareJoin{Joiner: "a.example~3", Attempt: 2},
		&NotifyJoin{Joiner: "b~1", Attempt: 300},
		&AcceptJoin{Joiner: "b~1", Observer: "a~1", Attempt: 1},
		&AbortJoin{Joiner: "b~1", Attempt: 1<<32 - 1},
		&Leave{Peer: "c~12"},
		&Volunteer{Peer: "a~1", Offer: terms.Offer{
			Capacity:   terms.Resources{4000, 8 << 30, 1 << 40},
			Attributes: []terms.EnvVar{{Name: "arch", Value: "arm64"}, {Name: "zone", Value: "Zürich"}},
			Devices:    []terms.DeviceOffer{{Kind: "gpu", Model: "A100", Count: 2}}, PortFirst: 20000, PortLast: 29999,
			Address: "10.0.0.1:7700", Rules: 1,
		}},
		submission(),
		&KillJob{RequestID: "0f9d", Job: "web", Against: 2},
		&KillJob{RequestID: "0f9e", Job: "web", Against: 3, Now: true},
		&ReportTasks{Peer: "a~1", Reports: []Report{
			{Slot: facts.SlotRef{Job: 1, Task: 2, Index: 3, Seat: facts.CanarySeat}, Order: 4711, Ended: facts.BySignal,
				ExitCode: -1, Ready: true, Detail: "killed"},
		}},
		&TellTime{},
		&RaiseRules{Version: 2},
		&SteerUpdate{RequestID: "0f9e", Job: "web", Version: 3, Steering: Promote},
		&RevertJob{RequestID: "0f9f", Job: "web", Against: 3, To: 1},
		&RestartJob{RequestID: "0fa0", Job: "web", Against: 4, Task: "server"},
		&SuspendJob{RequestID: "0fa0", Job: "web", Against: 4, Resume: true},
		&SealTask{RequestID: "0fa4", Slot: terms.SlotName{Job: "words", Task: "split", Index: 2}, Order: 4711},
		&EndAllocation{RequestID: "0fa1", Slot: terms.SlotName{Job: "web", Task: "server", Index: 2}, Order: 4711,
			Elsewhere: true},
		&EndAllocation{RequestID: "0fa2", Slot: terms.SlotName{Job: "web", Task: "server", Index: 2}, Order: 4711,
			Elsewhere: true, WithoutVolumes: true},
		&EndAllocation{RequestID: "0fa2", Slot: terms.SlotName{Job: "web", Task: "server", Index: 2}, Order: 4711,
			Elsewhere: true, WithoutVolumes: true, Now: true},
		&DrainNode{RequestID: "0fa2", Node: "a.example", Drain: true, DeadlineMillis: 3_600_000},
		&ChangePools{RequestID: "0fa3", Against: 7,
			Pools: []terms.Pool{{Path: "shop/web", Quotas: [terms.AmountCount]terms.Quota{
				{Reservation: 4000, Limit: terms.Unlimited, Share: 2, Static: true},
				{Reservation: 1 << 30, Limit: 1 << 31, Share: 1, Static: true},
				{Reservation: 1, Limit: 2, Share: 3, Static: true}, {Reservation: 1000, Limit: 2000, Share: 1, Static: true},
				{Reservation: 3000, Limit: 4000, Share: 2, Static: true},
			}, ControllerLimit: 50, SlackLimit: 20, PreemptionDelayMillis: 1000, JobScheduler: terms.JobRoundRobin,
				Owners: []string{"team"}}}, Gone: []terms.PoolPath{"shop/old"}},
		&AddUser{RequestID: "0f9d", Credential: access.Credential{Key: access.Key([]byte("the SHA-256 of a public key of 1")),
			Kind: access.OfUser, Name: "alice@example.org", Role: access.Operator, Until: 1_800_000_000_000}},
		&RemoveUser{RequestID: "0f9d", Name: "alice@example.org"},
		&AddToken{RequestID: "0f9d", Token: access.Token{ID: "QVBSGCPVLFNRLFBY", Node: "b", Keeper: true,
			Until: 1_800_000_000_000, Uses: 3}, LifeMillis: 900_000},
		&RemoveToken{RequestID: "0f9d", ID: "QVBSGCPVLFNRLFBY"},
		&AdmitNode{Node: "b", Key: access.Key([]byte("the SHA-256 of a public key of 1")), Token: "QVBSGCPVLFNRLFBY"},
		&RemoveNode{RequestID: "0f9d", Node: "b"},
		&RemoveNode{RequestID: "0f9d", Node: "b", IsOff: true},
		&TakeSnapshot{},
		&AddAuthority{RequestID: "0f9d", Against: access.Key([]byte("the SHA-256 of a certificate of1")),
			Certificate: "MIIBmTCCAT+gAwIBAgI="},
		&RemoveAuthority{RequestID: "0f9d", ID: access.Key([]byte("the SHA-256 of a certificate of1"))},
		&RemoveVolumes{RequestID: "0f9d",
			Volumes: terms.VolumeSet{Slot: terms.SlotName{Job: "shop/db", Task: "main", Index: 2}, Job: 17}},
		&MoveVolumes{RequestID: "0f9d", Order: 4711,
			Volumes: terms.VolumeSet{Slot: terms.SlotName{Job: "shop/db", Task: "main", Index: 2}, Job: 17}},
		&PutSecret{RequestID: "0f9d", Secret: sealed()},
		&SealSecret{Secret: sealed()},
		&RemoveSecret{RequestID: "0f9d", Pool: "shop", Name: "db-password"},
		&RemoveSecret{RequestID: "0f9d", Pool: "shop", Name: "db-password", Version: 2},
		&As{Subject: access.Subject{Kind: access.OfLocal, Name: "root@a"},
			Command: &KillJob{RequestID: "0f9d", Job: "web", Against: 2}},
		&VouchSnapshot{facts.Snapshot{Index: 10_000, Digest: 7, Chunks: 3,
			Sum: [32]byte([]byte("the SHA-256 of all of its chunks"))}},
	}
}

func sealed() access.Secret {
	return access.Secret{Pool: "shop", Name: "db-password", Version: 3,
		Key: access.Key([]byte("the SHA-256 of a certificate of1")), Sealed: "c2VhbGVk", At: 1_700_000_000_000}
}

// submission returns a job with every field of its first version.
func submission() *SubmitJob {
	return &SubmitJob{RequestID: "0f9c", Against: 4, Spec: terms.Job{Name: "shop/web", Type: terms.Stateless, Priority: 60,
		Preemption: terms.NonPreemptible, Revocable: true, Controller: true, KillOnPreempt: true,
		TaskScheduler: terms.TaskGreedy, Percent: 30, Coverage: terms.CoverageRequired, MinAvailable: 2, Within: "rack",
		Grow: terms.GrowWhole, After: []terms.JobName{"ops/load"},
		MinSuccess: 3, MaxRestarts: 4, KeepMillis: 86_400_000, Policies: []lifecycle.Policy{{
			On: []lifecycle.Event{lifecycle.InstanceFailed, lifecycle.TaskFailed}, ExitCodes: []uint32{7, 137},
			Action: lifecycle.Abort, DelayMillis: 3000,
		}},
		Update: terms.UpdatePolicy{
			BatchSize: 2, Canaries: 1, AutoPromote: true, MinHealthyMillis: 5000, HealthyDeadlineMillis: 300_000,
			ProgressDeadlineMillis: 600_000,
			AttemptsMax:            3, FailuresMax: 1, Rollback: true, StartPaused: true, SameNode: true,
		}, Plugins: []terms.PluginRequest{{Name: "pytorch", Arguments: []terms.EnvVar{{Name: "master", Value: "server"}}}},
		Tasks: []terms.Task{{
			Name: "server", Instances: 3, MinAvailable: 2, MaxRunning: 3, MaxRunMillis: 3_600_000,
			After: []terms.TaskName{"fetch"}, Command: []string{"/bin/server", "-v"},
			Env:     []terms.EnvVar{{Name: "LANG", Value: "C"}},
			WorkDir: "/srv", User: "www", Resources: terms.Resources{500, 1 << 28, 1 << 30},
			Devices: []terms.DeviceRequest{{Kind: "gpu", Amount: 500, Models: []string{"A100", "H100"}}},
			Ports:   []terms.PortRequest{{Name: "http", Number: 8080}},
			Constraints: []constraint.Constraint{{
				Attribute: "zone", Label: "app", Within: "rack", Operator: constraint.In, Values: []string{"a", "b"}, Count: 3,
				All: []constraint.Constraint{{Attribute: "all"}}, Any: []constraint.Constraint{{Attribute: "any"}}, Soft: true,
				SoftTimeoutMillis: 2000,
			}},
			Labels: []terms.EnvVar{{Name: "app", Value: "web"}}, PerNodeMax: 2, SpreadOver: "zone",
			Placement: terms.Spread, Restart: terms.Restart{AttemptsMax: 3, DelayMillis: 1000, DelayMaxMillis: 60000,
				ResetMillis: 600000},
			Reschedule: terms.Reschedule{AttemptsMax: 2, IntervalMillis: 60000, DelayMillis: 5000, DelayMaxMillis: 30000,
				Growth: terms.Fibonacci},
			Disconnect: terms.Disconnect{LostAfterMillis: 300000, Wait: true, Keep: terms.KeepLongest, StopAfterMillis: 10000},
			Checks: []terms.Check{{
				Kind: terms.CheckHTTP, Port: "http", Path: "/health", Command: []string{"probe"}, IntervalMillis: 1000,
				TimeoutMillis: 500, FailuresMax: 3,
			}},
			Policies: []lifecycle.Policy{{
				On: []lifecycle.Event{lifecycle.InstanceEvicted}, ExitCodes: []uint32{3}, Action: lifecycle.RestartTask,
				DelayMillis: 10_000,
			}},
			MaxRestarts:     5,
			Percent:         40,
			Volumes:         []terms.Volume{{Name: "data"}},
			StopGraceMillis: 5000, OnMembersChange: terms.SignalHangUp,
		}}}}
}

// filler fills commands at random, within what the encoding takes.
type filler struct {
	rng *rand.Rand
	// depth is how many constraints are within each other.
	depth int
}

func (f *filler) entry() *Entry {
	e := &Entry{}
	f.fill(reflect.ValueOf(&e.Writer).Elem())
	e.Seq, e.Time, e.Cause = f.number(64), terms.Time(f.number(55)), terms.Index(f.number(63))
	for range f.rng.IntN(5) {
		one := blank(form{Kind(1 + f.rng.IntN(int(kindEnd)-1)), 1})
		if f.rng.IntN(10) == 0 {
			one = &PassTime{}
		}
		f.fill(reflect.ValueOf(one).Elem())
		e.Commands = append(e.Commands, one)
	}
	return e
}

// number returns a number of at most so many bits; all lengths are equally likely.
func (f *filler) number(bits int) uint64 {
	if n := f.rng.IntN(bits + 1); n > 0 {
		return f.rng.Uint64() >> (64 - n)
	}
	return 0
}

func (f *filler) fill(v reflect.Value) {
	enumerations := map[reflect.Type]int{
		reflect.TypeFor[terms.JobType](): int(terms.Daemon), reflect.TypeFor[lifecycle.Event](): int(lifecycle.Any),
		reflect.TypeFor[terms.TaskScheduler](): int(terms.TaskFixed),
		reflect.TypeFor[terms.Coverage]():      int(terms.CoverageOptional),
		reflect.TypeFor[terms.Grow]():          int(terms.GrowWhole),
		reflect.TypeFor[terms.JobScheduler]():  int(terms.JobPercentage),
		reflect.TypeFor[lifecycle.Action]():    int(lifecycle.Complete),
		reflect.TypeFor[terms.Growth]():        int(terms.Fibonacci),
		reflect.TypeFor[terms.Preemption]():    int(terms.Preemptible),
		reflect.TypeFor[terms.Survivor]():      int(terms.KeepLongest),
		reflect.TypeFor[terms.CheckKind]():     int(terms.CheckCommand),
		reflect.TypeFor[terms.Method]():        len(terms.Methods()) - 1,
		reflect.TypeFor[terms.OnFailure]():     len(terms.OnFailures()) - 1,
		reflect.TypeFor[Steering]():            int(Abort), reflect.TypeFor[facts.Seat](): int(facts.UnknownSeat),
		reflect.TypeFor[terms.Placement]():     int(terms.Defragment),
		reflect.TypeFor[terms.Signal]():        int(terms.SignalUser2),
		reflect.TypeFor[terms.StopSignal]():    int(terms.StopWindowChange),
		reflect.TypeFor[constraint.Operator](): int(constraint.GreaterOrEqual),
		reflect.TypeFor[facts.Ending]():        int(facts.EndingCount) - 1,
		reflect.TypeFor[access.Kind]():         int(access.OfUser), reflect.TypeFor[access.Role](): int(access.Admin),
	}
	if f.fillBounded(v.Addr().Interface()) {
		return
	}
	if most, ok := enumerations[v.Type()]; ok {
		v.SetUint(uint64(f.rng.IntN(most + 1)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Slice:
		f.fillList(v)
	case reflect.String:
		letters := []rune("az09.-_~/é世\x00 ")
		text := make([]rune, f.rng.IntN(15))
		for i := range text {
			text[i] = letters[f.rng.IntN(len(letters))]
		}
		v.SetString(string(text))
	case reflect.Bool:
		v.SetBool(f.rng.IntN(2) == 0)
	case reflect.Int32:
		v.SetInt(int64(int32(f.number(32))))
	case reflect.Int64:
		v.SetInt(int64(f.number(63)))
	default:
		v.SetUint(f.number(v.Type().Bits()))
	}
}

// fillBounded fills what has bounds of its own, and returns whether it has.
func (f *filler) fillBounded(one any) bool {
	switch one := one.(type) {
	case *PassTime:
		one.Millis = uint32(f.rng.IntN(PassMillisMax + 1))
	case *As:
		kill := &KillJob{}
		f.fill(reflect.ValueOf(&one.Subject).Elem())
		f.fill(reflect.ValueOf(kill).Elem())
		one.Command = kill
	case *AddToken:
		f.fill(reflect.ValueOf(&one.RequestID).Elem())
		f.fill(reflect.ValueOf(&one.Token.ID).Elem())
		f.fill(reflect.ValueOf(&one.Token.Node).Elem())
		one.Token.Uses, one.Token.Keeper = uint32(f.rng.IntN(access.TokenUsesMax)), f.rng.IntN(2) == 0
		one.LifeMillis = uint64(f.rng.IntN(access.TokenLifeMillisMax))
	default:
		return false
	}
	return true
}

func (f *filler) fillList(v reflect.Value) {
	if v.Type() == reflect.TypeFor[[]constraint.Constraint]() {
		f.depth++
		defer func() { f.depth-- }()
	}
	if n := f.rng.IntN(4); n > 0 && f.depth <= constraint.DepthMax {
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i))
		}
	}
}

// blankField returns the path of a field that is zero somewhere below v, "" if there is none.
func blankField(path string, v reflect.Value) string {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() && strings.HasSuffix(path, ".Command") {
			return "" // a command within one has a sample of its own
		}
		return blankField(path, v.Elem())
	case reflect.Pointer:
		return blankField(path, v.Elem())
	case reflect.Struct:
		if strings.HasSuffix(path, ".All") || strings.HasSuffix(path, ".Any") {
			return "" // a constraint within one has the same fields
		}
		for i := range v.NumField() {
			if found := blankField(path+"."+v.Type().Field(i).Name, v.Field(i)); found != "" {
				return found
			}
		}
		return ""
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if found := blankField(path, v.Index(i)); found != "" {
				return found
			}
		}
	}
	if v.IsZero() {
		return path
	}
	return ""
}
