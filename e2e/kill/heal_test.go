package kill

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/e2e/agents"
	"starling/terms"
)

// TestQuorumHeals destroys the machine on which the quorum's leader runs, with its disk: a fourth one takes its place.
// When the machine is there again, empty and under its name, it joins, and takes the place of the next that is away.
func TestQuorumHeals(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes and waits until members count as away")
	}
	t.Parallel()
	tr := prepare(t, 3*time.Second, []string{"a", "b", "c", "d"}, "--etcd-away", "2s")
	tr.must(tr.Start(tr.soon(), tr.Agents[:3]...))
	tr.submit(tr.job("web", terms.Stateless, serverRole, 3))
	tr.awaitRunning(tr.Agents[0], "web")
	lost, spare := tr.memberOf(tr.Agents[:3], true), tr.Agents[3]
	left := slices.DeleteFunc(slices.Clone(tr.Agents[:3]), func(a *agents.Agent) bool { return a == lost })
	tr.must(lost.Crash(tr.soon()))
	tr.must(lost.Wipe(left...))
	tr.must(spare.Wipe(left...))
	tr.must(spare.Start())
	tr.must(spare.Ready(tr.soon()))
	began := time.Now()
	tr.must(tr.AwaitQuorum(tr.soon(), append(left, spare)...))
	t.Logf("%s took the place of %s, which led, %v after it had joined", spare.Node, lost.Node, time.Since(began))
	tr.submit(tr.job("between", terms.Batch, witnessRole, 3), spare)
	tr.awaitDone(left[0], "between")

	tr.must(lost.Start())
	tr.must(lost.Ready(tr.soon()))
	tr.must(left[0].Crash(tr.soon()))
	tr.must(tr.AwaitQuorum(tr.soon(), left[1], spare, lost))
	tr.must(left[0].Start()) // it is no member any more, and goes on as a client
	tr.must(left[0].Ready(tr.soon()))
	tr.submit(tr.job("after", terms.Batch, witnessRole, 3), left[0])
	tr.awaitDone(lost, "after")
	tr.wantWhole()
}

// TestPausedMember pauses a member for longer than it may be away: another machine takes its place. When it goes on it
// is no member any more, and works as a client.
func TestPausedMember(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes and waits until a member counts as away")
	}
	t.Parallel()
	tr := prepare(t, 3*time.Second, []string{"a", "b", "c", "d"}, "--etcd-away", "1s")
	tr.must(tr.Start(tr.soon(), tr.Agents[:3]...))
	paused := tr.memberOf(tr.Agents[:3], false)
	left := slices.DeleteFunc(slices.Clone(tr.Agents), func(a *agents.Agent) bool { return a == paused })
	tr.must(paused.Pause())
	tr.must(tr.Agents[3].Start())
	tr.must(tr.AwaitQuorum(tr.soon(), left...))
	tr.must(paused.Resume())
	tr.must(paused.Ready(tr.soon()))
	tr.submit(tr.job("after", terms.Batch, witnessRole, 3), paused)
	tr.awaitDone(left[0], "after")
	tr.wantWhole()
}

// TestStalledQuorum has all members of the quorum stand still for longer than pulses live, as when their storage stalls
// or their machines are paused. No peer takes the others for dead because of that: what runs goes on where it is.
func TestStalledQuorum(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes and waits until pulses end")
	}
	t.Parallel()
	tr := prepare(t, 3*time.Second, []string{"a", "b", "c", "d"})
	tr.must(tr.Start(tr.soon(), tr.Agents[:3]...))
	tr.must(tr.Agents[3].Start())
	tr.must(tr.Agents[3].Ready(tr.soon()))
	tr.submit(tr.job("web", terms.Stateless, serverRole, 4))
	before := tr.wantTasks(tr.awaitRunning(tr.Agents[3], "web"))
	for _, a := range tr.Agents[:3] {
		tr.must(a.Pause())
	}
	<-time.After(3 * 3 * time.Second)
	for _, a := range tr.Agents[:3] {
		tr.must(a.Resume())
	}
	tr.submit(tr.job("after", terms.Batch, witnessRole, 3), tr.Agents[0])
	tr.awaitDone(tr.Agents[3], "after")
	<-time.After(2 * 3 * time.Second) // whoever is taken for dead is by now
	after := tr.wantTasks(tr.awaitRunning(tr.Agents[3], "web"))
	for id, was := range before {
		if after[id] != was {
			t.Errorf("%s is process %+v after the stall, was %+v", id, after[id], was)
		}
	}
	tr.wantWhole()
}

// memberOf returns one of these agents whose member leads the quorum, or one whose member follows.
func (tr *trial) memberOf(some []*agents.Agent, leads bool) *agents.Agent {
	tr.Helper()
	at := slices.IndexFunc(some, func(a *agents.Agent) bool { return tr.leads(a) == leads })
	if at < 0 {
		tr.Fatalf("no member is there that leads: %t", leads)
	}
	return some[at]
}

// TestDiskLost takes a member's disk: its machine comes back under its name by itself, and keeps the journal again.
func TestDiskLost(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	tr := prepare(t, 3*time.Second, []string{"a", "b", "c"}, "--etcd-away", "1h")
	tr.must(tr.Start(tr.soon()))
	lost := tr.Agents[0] // which founded the cluster
	tr.must(lost.Crash(tr.soon()))
	tr.must(lost.Wipe(tr.others(lost)...))
	tr.must(lost.Start())
	tr.must(lost.Ready(tr.soon()))
	tr.must(tr.AwaitQuorum(tr.soon(), tr.Agents...))
	tr.submit(tr.job("after", terms.Batch, witnessRole, 3), lost)
	tr.awaitDone(lost, "after")
	tr.wantWhole()
}

// TestMemberDamaged damages the database of the machine that founded the cluster, and of another: each agent ends with
// a sentence, as recover does. With the folder out of the way the machine comes back by itself.
func TestMemberDamaged(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	tr := prepare(t, 3*time.Second, []string{"a", "b", "c"}, "--etcd-away", "1h")
	tr.must(tr.Start(tr.soon()))
	tr.submit(tr.job("before", terms.Batch, witnessRole, 3))
	tr.awaitDone(tr.Agents[0], "before")
	for _, hurt := range tr.Agents[:2] {
		tr.must(hurt.Kill())
		dir := filepath.Join(hurt.Folder(), "etcd")
		tr.must(os.Truncate(filepath.Join(dir, "member/snap/db"), 3*4096))
		tr.wantRecover(hurt, 1, "is damaged: it has 12288 bytes", "--yes")
		tr.must(hurt.Start())
		status, err := hurt.Ended(tr.soon())
		tr.must(err)
		if want := "hint: if most other machines of the quorum run, move " + dir + " away and start the agent"; status != 1 ||
			!strings.Contains(hurt.Said(), want) || strings.Contains(hurt.Said(), "goroutine") {
			t.Errorf("got exit status %d, want %q:\n%s", status, want, hurt.Said())
		}
		tr.must(os.Rename(dir, dir+".damaged"))
		tr.must(hurt.Start())
		tr.must(hurt.Ready(tr.soon()))
		tr.must(tr.AwaitQuorum(tr.soon(), tr.Agents...))
	}
	tr.submit(tr.job("after", terms.Batch, witnessRole, 3), tr.Agents[0])
	tr.awaitDone(tr.Agents[1], "after")
	tr.wantWhole()
}

// TestMemberLost takes from each machine in turn what its member holds, and nothing else: it comes back by itself, also
// where it starts before the others.
func TestMemberLost(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	tr := prepare(t, 3*time.Second, []string{"a", "b", "c"}, "--etcd-away", "1h")
	tr.must(tr.Start(tr.soon()))
	for _, lost := range tr.Agents {
		tr.must(lost.Terminate(tr.soon()))
		tr.must(os.RemoveAll(filepath.Join(lost.Folder(), "etcd")))
		tr.must(lost.Start())
		tr.must(lost.Ready(tr.soon()))
		if !strings.Contains(lost.Said(), "the member is made anew from the others") {
			t.Errorf("the agent does not tell that its member's data is gone:\n%s", lost.Said())
		}
		tr.must(tr.AwaitQuorum(tr.soon(), tr.Agents...))
	}
	for _, a := range tr.Agents {
		tr.must(a.Terminate(tr.soon()))
	}
	tr.must(os.RemoveAll(filepath.Join(tr.Agents[1].Folder(), "etcd")))
	for _, i := range []int{1, 0, 2} {
		tr.must(tr.Agents[i].Start())
	}
	for _, a := range tr.Agents {
		tr.must(a.Ready(tr.soon()))
	}
	tr.must(tr.AwaitQuorum(tr.soon(), tr.Agents...))
	tr.submit(tr.job("after", terms.Batch, witnessRole, 3))
	tr.awaitDone(tr.Agents[0], "after")
	tr.wantWhole()
}

// TestRecover takes two of three machines with their disks: from the third, and after it is told to, the cluster begins
// anew. Its tasks go on, and the others rejoin.
func TestRecover(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes and waits until the majority is given up")
	}
	t.Parallel()
	tr := begin(t, 3*time.Second)
	left, gone := tr.Agents[1], []*agents.Agent{tr.Agents[0], tr.Agents[2]}
	tr.submit(tr.job("web", terms.Stateless, serverRole, 3))
	running := tr.wantTasks(tr.awaitRunning(left, "web"))
	tr.submit(tr.job("before", terms.Batch, witnessRole, 2))
	tr.awaitDone(left, "before")
	tr.wantRecover(left, 1, "is in use by process")
	for _, a := range gone {
		tr.must(a.Crash(tr.soon()))
		tr.must(a.Wipe(left))
	}
	here := tr.processes()
	tr.must(left.Terminate(tr.soon()))
	old := t.TempDir()
	copied := exec.Command("cp", "-a", left.Folder()+"/etcd", left.Folder()+"/trust", old)
	tr.must(copied.Run())
	tr.wantRecover(gone[0], 1, "find the data directory")
	said := tr.wantRecover(left, 2, "nothing was changed")
	for _, want := range []string{"has the journal up to entry", "member a at https://127.0.0.1:", "nobody answers",
		"1 of 3 members answer; bring back 1 of the others instead", "Type yes"} {
		if !strings.Contains(said, want) {
			t.Errorf("recover says nothing of %q:\n%s", want, said)
		}
	}
	tr.wantRecover(left, 4, "nobody answers at https://127.0.0.1:1,", "--yes", "--others", "https://127.0.0.1:1")
	tr.wantRecover(left, 0, "keeps the journal alone now", "--yes")
	tr.must(os.Rename(left.Folder()+"/etcd", left.Folder()+"/etcd.chosen")) // as if it had been killed just before
	tr.wantRecover(left, 4, "this machine keeps the journal alone already", "--yes")
	tr.must(os.Rename(left.Folder()+"/etcd", left.Folder()+"/etcd.chosen")) // now it is the agent that finds it
	tr.must(left.Start())
	tr.must(left.Ready(tr.soon()))
	for id, was := range here {
		if now := tr.processes()[id]; now != was || running[id] != was {
			t.Errorf("%s is process %+v after the recovery, was %+v", id, now, was)
		}
	}
	tr.awaitRunning(left, "web")
	tr.awaitDone(left, "before")
	for _, a := range gone {
		tr.must(a.Start())
	}
	for _, a := range gone {
		tr.must(a.Ready(tr.soon()))
	}
	tr.must(tr.AwaitQuorum(tr.soon(), tr.Agents...))
	tr.wantRecover(left, 4, "has more: its log ends at term", "--data", old, "--others", left.Folder())
	tr.wantRecover(left, 4, "answers and has a leader", "--data", old, "--others", gone[0].Endpoint)
	tr.wantRecover(left, 1, "no data of a member of the quorum is there", "--data", t.TempDir())
	tr.wantRecoverRefused(left)
	tr.submit(tr.job("after", terms.Batch, witnessRole, 3), gone[0])
	tr.awaitDone(left, "after")
	tr.wantWhole()
}

// TestRecoverKeepsVolumes begins anew from a machine that knows less than one which is left: what that one has of a job
// which the journal has lost is set aside, and it says where.
func TestRecoverKeepsVolumes(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes and waits until the majority is given up")
	}
	t.Parallel()
	tr := begin(t, 3*time.Second)
	first, late := tr.Agents[0], tr.Agents[1]
	tr.must(late.Terminate(tr.soon()))
	tr.awaitPeer(first, late, "left", func(p *starlingv1.Peer) bool { return p.GetState() == "left" })
	spec := tr.stateful("db", "data")
	spec.Tasks[0].Instances, spec.Tasks[0].MinAvailable = 1, 1
	tr.submit(spec, first)
	slot := tr.awaitRunning(first, "db")[0]
	tr.awaitBeat(slot)
	for _, a := range []*agents.Agent{first, tr.Agents[2]} {
		tr.must(a.Crash(tr.soon()))
	}
	tr.wantRecover(late, 0, "keeps the journal alone now", "--yes")
	for _, a := range []*agents.Agent{late, first, tr.Agents[2]} {
		tr.must(a.Start())
		tr.must(a.Ready(tr.soon()))
	}
	tr.eventually("the volumes are set aside", func() string {
		var all []string
		for _, a := range tr.Agents {
			some, _ := filepath.Glob(filepath.Join(a.Folder(), "driver", "volumes", ".aside", "*", "*", startsName))
			all = append(all, some...)
		}
		if len(all) == 0 {
			return "no volume of db is set aside"
		}
		return ""
	})
	tr.wantWhole()
}

// wantRecoverRefused stops an agent for a moment: as the others are a majority there is nothing to recover.
func (tr *trial) wantRecoverRefused(a *agents.Agent) {
	tr.Helper()
	tr.must(a.Terminate(tr.soon()))
	tr.wantRecover(a, 4, "a majority runs, and nothing is to be recovered", "--yes")
	tr.must(a.Start())
	tr.must(a.Ready(tr.soon()))
}

// wantRecover runs "starling recover" for an agent, wants an exit status and a text, and returns all it says.
func (tr *trial) wantRecover(a *agents.Agent, status int, text string, flags ...string) string {
	tr.Helper()
	command := exec.CommandContext(tr.soon(), os.Getenv(binaryVariable),
		append([]string{"recover", "--node", a.Node, "--data", a.Folder()}, flags...)...)
	said, _ := command.CombinedOutput() // the status is asked for
	if got := command.ProcessState.ExitCode(); got != status || !strings.Contains(string(said), text) {
		tr.Fatalf("recover of %s: got exit status %d, want %d and %q:\n%s", a.Node, got, status, text, said)
	}
	return string(said)
}
