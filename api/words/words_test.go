package words_test

import (
	"strings"
	"testing"

	"starling/api/words"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
)

// said is a command and its words.
type said struct {
	command command.Command
	want    string
}

func commandsAboutWhoIsKnown() []said {
	return []said{
		{&command.As{Subject: access.Subject{Kind: access.OfUser, Name: "alice"}, Command: &command.KillJob{Job: "web"}},
			"kill job web, asked by user alice"},
		{&command.AddUser{Credential: access.Credential{Name: "alice", Role: access.Operator}},
			"let user alice in with key 000000000000, as operator"},
		{&command.AddAuthority{Certificate: "MII="}, "let authority 9d599135483f sign"},
		{&command.RemoveAuthority{ID: access.Key{0xab}}, "end authority ab0000000000"},
		{&command.RemoveUser{Name: "alice"}, "end the credentials of user alice"},
		{&command.PutSecret{Secret: access.Secret{Pool: "team", Name: "db"}}, "put secret team/db"},
		{&command.SealSecret{Secret: access.Secret{Pool: "team", Name: "db", Version: 2}},
			"seal version 2 of secret team/db with the newest key"},
		{&command.RemoveSecret{Pool: "team", Name: "db"}, "remove secret team/db"},
		{&command.RemoveSecret{Pool: "team", Name: "db", Version: 3}, "remove version 3 of secret team/db"},
		{&command.AddToken{Token: access.Token{ID: "T7", Uses: 3}}, "let 3 machines join by token T7"},
		{&command.RemoveToken{ID: "T7"}, "end token T7"},
		{&command.AdmitNode{Node: "b"}, "node b has key 000000000000"},
		{&command.AdmitNode{Node: "b", Token: "T7"}, "admit node b with key 000000000000 by token T7"},
		{&command.RemoveNode{Node: "b"}, "remove node b"},
		{&command.RemoveNode{Node: "b", IsOff: true}, "remove node b, which is off"},
		{&command.TakeSnapshot{}, "ask for a snapshot"},
	}
}

func TestCommands(t *testing.T) {
	gigabytes := func(n int64) int64 { return n << 30 }
	cases := []said{
		{&command.PrepareJoin{Joiner: "b~1", Attempt: 2}, "b~1 prepares to join (attempt 2)"},
		{&command.NotifyJoin{Joiner: "b~1", Attempt: 2}, "notify b~1 that it is watched (attempt 2)"},
		{&command.AcceptJoin{Joiner: "b~1", Observer: "a~1", Attempt: 2}, "b~1 accepts a~1 as its observer (attempt 2)"},
		{&command.AbortJoin{Joiner: "b~1", Attempt: 2}, "b~1 gives up attempt 2 to join"},
		{&command.Leave{Peer: "b~1"}, "b~1 leaves"},
		{&command.Volunteer{Peer: "b~1"}, "b~1 withdraws its offer"},
		{&command.Volunteer{Peer: "b~1", Offer: terms.Offer{
			Capacity: terms.Resources{8000, gigabytes(16), 1536 << 30},
			Devices:  []terms.DeviceOffer{{Kind: "fpga", Count: 1}, {Kind: "gpu", Model: "A100", Count: 2}},
		}}, "b~1 offers 8 cpu, 16Gi memory, 1.5Ti disk, 1 fpga, 2 gpu A100"},
		{&command.Volunteer{Peer: "b~1", Offer: terms.Offer{Capacity: terms.Resources{500, 1023, 1 << 62}}},
			"b~1 offers 0.5 cpu, 1023B memory, 4096Pi disk"},
		{&command.SubmitJob{Spec: terms.Job{Name: "web", Tasks: []terms.Task{{Instances: 3}}}},
			"submit job web: 1 task, 3 instances"},
		{&command.SubmitJob{Spec: terms.Job{Name: "etl", Tasks: []terms.Task{{Instances: 1}, {}}}},
			"submit job etl: 2 tasks, 1 instance"},
		{&command.KillJob{Job: "web"}, "kill job web"},
		{&command.ReportTasks{Peer: "a~1", Reports: []command.Report{{}, {Ended: facts.ByItself, ExitCode: 1}, {}}},
			"a~1 reports 3 allocations: 2 running, 1 exited"},
		{&command.ReportTasks{Peer: "a~1", Reports: []command.Report{{Ended: facts.OutOfMemory}}},
			"a~1 reports 1 allocation: 1 out of memory"},
		{&command.TellTime{}, "tell the time"},
		{&command.RaiseRules{Version: 2}, "raise the rules to version 2"},
		{&command.PassTime{Millis: 7}, "let 7 ms pass"},
		{&command.SteerUpdate{Job: "web", Version: 3, Steering: command.Promote},
			"promote the update of job web to version 3"},
		{&command.RevertJob{Job: "web", Against: 3, To: 1}, "revert job web to version 1"},
		{&command.RestartJob{Job: "web"}, "restart job web"},
		{&command.SuspendJob{Job: "web"}, "suspend job web"},
		{&command.SuspendJob{Job: "web", Resume: true}, "resume job web"},
		{&command.RestartJob{Job: "web", Task: "server"}, "restart task server of job web"},
		{&command.SealTask{Slot: terms.SlotName{Job: "web", Task: "server", Index: 2}, Order: 4711},
			"seal task server of job web by web.server[2]#4711"},
		{&command.RemoveVolumes{Volumes: terms.VolumeSet{Slot: terms.SlotName{Job: "web", Task: "main", Index: 2}, Job: 7}},
			"remove the volumes web.main[2]@7"},
		{&command.MoveVolumes{Volumes: terms.VolumeSet{Slot: terms.SlotName{Job: "web", Task: "main", Index: 2}, Job: 7},
			Order: 4711}, "have the volumes web.main[2]@7, copied as web.main[2]#4711 left them, from now on"},
		{&command.EndAllocation{Slot: terms.SlotName{Job: "web", Task: "server", Index: 2}, Order: 4711},
			"restart web.server[2]#4711"},
		{&command.EndAllocation{Slot: terms.SlotName{Job: "web", Task: "server", Index: 2}, Order: 4711, Elsewhere: true},
			"stop web.server[2]#4711, to be replaced elsewhere"},
		{&command.DrainNode{Node: "a", Drain: true, DeadlineMillis: 3_600_000}, "drain node a within 1h0m0s"},
		{&command.DrainNode{Node: "a"}, "end the drain of node a"},
		{&command.ChangePools{Pools: []terms.Pool{{Path: "b"}, {Path: "b/c"}},
			Gone: []terms.PoolPath{"a", "d", "e", "f", "g"}},
			"change pools b, b/c and delete pools a, d, e, 2 more"},
		{&command.VouchSnapshot{Snapshot: facts.Snapshot{Index: 12, Digest: 255, Chunks: 3}},
			"vouch for the snapshot of entry 12, 3 chunks, digest 00000000000000ff"},
	}
	tried := map[command.Kind]bool{}
	cases = append(cases, commandsAboutWhoIsKnown()...)
	cases = append(cases, said{unreadable(t), `refused unread: a command of kind 65535, version 1, is not known under version 1 of the rules: ` +
		`if it is one of a newer program, raise them first, see "starling rules"`})
	for _, c := range cases {
		if got := words.Command(c.command); got != c.want {
			t.Errorf("%T: got %q, want %q", c.command, got, c.want)
		}
		tried[c.command.Kind()] = true
	}
	// The kinds are numbered without gaps, and each has a name.
	for kind := command.Kind(1); !strings.HasPrefix(kind.String(), "kind-"); kind++ {
		if !tried[kind] {
			t.Errorf("no case for %s", kind)
		}
	}
}

// unreadable returns what the first rules make of a command of the next.
func unreadable(t *testing.T) command.Command {
	e, err := command.Decode(command.Encode(&command.Entry{
		Rules: rules.First, Writer: "a~1", Seq: 1, Commands: []command.Command{&command.PassTime{Millis: 7}},
	}), rules.First)
	if err != nil {
		t.Fatal(err)
	}
	return e.Commands[0]
}

func TestEffects(t *testing.T) {
	slot := terms.SlotName{Job: "web", Task: "server", Index: 2}
	cases := []struct {
		effect report.Effect
		want   string
	}{
		{report.Effect{Kind: report.Joined, Peer: "b~1", Node: "b"}, "b~1 joined"},
		{report.Effect{Kind: report.Left, Peer: "b~1", Node: "b"}, "b~1 left"},
		{report.Effect{Kind: report.Placed, Slot: slot, Order: 7, Node: "b"}, "placed web.server[2] on node b"},
		{report.Effect{Kind: report.Started, Slot: slot, Order: 7, Node: "b"}, "web.server[2] runs on node b"},
		{report.Effect{Kind: report.Ended, Slot: slot, Order: 7, Node: "b", Reason: "exited with 1"},
			"web.server[2] ended on node b: exited with 1"},
		{report.Effect{Kind: report.Lost, Slot: slot, Order: 7, Node: "b", Reason: "its node left"},
			"lost web.server[2] on node b: its node left"},
		{report.Effect{Kind: report.BackingOff, Slot: slot, Order: 7, Node: "b", Reason: "failure 1 in a row"},
			"web.server[2] waits on node b to start again: failure 1 in a row"},
		{report.Effect{Kind: report.Stopping, Slot: slot, Order: 7, Node: "b", Reason: "the job was stopped"},
			"stopping web.server[2] on node b: the job was stopped"},
		{report.Effect{Kind: report.JobFinished, Slot: terms.SlotName{Job: "web"}, Reason: "stopped"},
			"job web finished: stopped"},
		{report.Effect{Kind: report.Unhealthy, Slot: slot, Order: 7, Node: "b", Reason: "it was not healthy in time"},
			"web.server[2] on node b counts as failed: it was not healthy in time"},
		{report.Effect{Kind: report.Unready, Slot: slot, Order: 7, Node: "b", Reason: "check tcp on port http failed once"},
			"web.server[2] on node b is not ready any more: check tcp on port http failed once"},
		{report.Effect{Kind: report.Updating, Slot: terms.SlotName{Job: "web"}, Reason: "to version 2: PAUSED"},
			"update of job web to version 2: PAUSED"},
		{report.Effect{Kind: report.GaveWay, Slot: slot, Order: 7, Node: "b", By: "a/nightly",
			Reason: "it has a higher priority"},
			"web.server[2] on node b gives way to a/nightly: it has a higher priority"},
		{report.Effect{Kind: report.GaveWay, Slot: slot, Order: 7, Node: "b", Reason: "it has a higher priority"},
			"web.server[2] on node b gives way to a job of another pool: it has a higher priority"},
		{report.Effect{Kind: report.Placed, Slot: slot, Seat: facts.CanarySeat, Node: "b"},
			"placed web.server[2] canary on node b"},
		{report.Effect{Kind: report.Decided, Slot: slot, Order: 7, Node: "b",
			Reason: "the job is suspended: worker[3] failed: out of memory (policy of the job)"},
			"job web: the job is suspended: worker[3] failed: out of memory (policy of the job)"},
		{report.Effect{Kind: report.More}, "and more that is not listed"},
	}
	tried := map[report.EffectKind]bool{}
	for _, c := range cases {
		if got := words.Effect(&c.effect); got != c.want {
			t.Errorf("%s: got %q, want %q", c.effect.Kind, got, c.want)
		}
		tried[c.effect.Kind] = true
	}
	for kind := report.Joined; knownEffect(kind); kind++ {
		if !tried[kind] {
			t.Errorf("no case for %s", kind)
		}
	}
}

func knownEffect(kind report.EffectKind) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return kind.String() != ""
}

func TestCounted(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{words.Counted(1, "job"), "1 job"}, {words.Counted(uint32(3), "job"), "3 jobs"}, {words.Counted(0, "job"), "0 jobs"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
