package kill

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/driver/uptime"
	"starling/e2e/agents"
	"starling/terms"
)

// The files that databases write: all of them a line for every beat into the watched folder, each a line for every
// start into its volume.
const (
	beatsName  = "beats"
	startsName = "starts"
)

const beatEvery = 5 * time.Millisecond

// database is an instance of a stateful service. It beats until it is killed, which alone ends it, or the test is gone.
func database(folder string) int {
	signal.Ignore(syscall.SIGTERM)
	allocation := os.Getenv("STARLING_ALLOCATION")
	if volume := os.Getenv("STARLING_VOLUME_DATA"); volume != "" {
		if err := addLine(filepath.Join(volume, startsName), allocation); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 9
		}
	}
	lock, err := os.Open(filepath.Join(folder, lockName))
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for ; err == nil && syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil; <-beat.C {
		err = addLine(filepath.Join(folder, beatsName), fmt.Sprint(uptime.Now(), " ", allocation))
	}
	fmt.Fprintln(os.Stderr, "the test is gone:", err)
	return 9
}

func addLine(path, line string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintln(file, line)
	return err
}

// stopAfter is longer than a peer takes to start again, and leaves little to wait for after it.
const stopAfter = 6 * time.Second

// stateful is a job with an instance for every machine, each with a volume if volumes are named.
func (tr *trial) stateful(name string, volumes ...string) *terms.Job {
	spec := tr.job(name, terms.Stateful, databaseRole, 3)
	spec.Tasks[0].Disconnect.StopAfterMillis = uint32(stopAfter.Milliseconds())
	for _, v := range volumes {
		spec.Tasks[0].Volumes = append(spec.Tasks[0].Volumes, terms.Volume{Name: v})
	}
	return spec
}

// beats is when an allocation beat first and last.
type beats struct{ first, last uptime.Moment }

// beatsOf reads the beats of all allocations.
func (tr *trial) beats() map[string]beats {
	tr.Helper()
	all := map[string]beats{}
	file, err := os.Open(filepath.Join(tr.watched, beatsName))
	if errors.Is(err, os.ErrNotExist) {
		return all // none has beaten yet
	}
	tr.must(err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var at uptime.Moment
		var allocation string
		if n, _ := fmt.Sscan(lines.Text(), &at, &allocation); n != 2 {
			tr.Fatalf("a line of beats is %q", lines.Text())
		}
		b, known := all[allocation]
		if !known {
			b.first = at
		}
		b.first, b.last = min(b.first, at), max(b.last, at)
		all[allocation] = b
	}
	tr.must(lines.Err())
	return all
}

// wantNeverTwo wants that no two allocations of a slot beat at the same time. It returns how many slots had several.
func (tr *trial) wantNeverTwo() (several int) {
	tr.Helper()
	all := tr.beats()
	slots := map[string][]string{}
	for allocation := range all {
		slot, _, _ := strings.Cut(allocation, "#")
		slots[slot] = append(slots[slot], allocation)
	}
	for _, slot := range slices.Sorted(maps.Keys(slots)) {
		one := slots[slot]
		slices.SortFunc(one, func(a, b string) int { return int(all[a].first - all[b].first) })
		for i := 1; i < len(one); i++ {
			between := time.Duration(all[one[i]].first - all[one[i-1]].last)
			tr.Logf("%s was silent for %v when %s began", one[i-1], between, one[i])
			if between <= 0 {
				tr.Errorf("%s and %s beat at the same time", one[i-1], one[i])
			}
		}
		if len(one) > 1 {
			several++
		}
	}
	return several
}

// awaitBeat waits until the program of an allocation that runs has written that it does.
func (tr *trial) awaitBeat(slot *starlingv1.Slot) {
	tr.Helper()
	tr.eventually(slot.GetAllocation()+" beats", func() string {
		if _, beat := tr.beats()[slot.GetAllocation()]; !beat {
			return "no beat of it"
		}
		return ""
	})
}

// slotOn returns the slot of a job that is on an agent.
func (tr *trial) slotOn(a *agents.Agent, slots []*starlingv1.Slot) *starlingv1.Slot {
	tr.Helper()
	at := slices.IndexFunc(slots, func(s *starlingv1.Slot) bool { return s.GetNode() == a.Node })
	if at < 0 {
		tr.Fatalf("no slot is on agent %s: %v", a.Node, slots)
	}
	return slots[at]
}

// wantWaitsFor asks why a job does not run, and wants an agent's machine to be the reason.
func (tr *trial) wantWaitsFor(from *agents.Agent, job string, machine *agents.Agent) {
	tr.Helper()
	tr.eventually("the reason is that "+machine.Node+" is missed", func() string {
		said, err := exec.CommandContext(tr.soon(), os.Getenv(binaryVariable), "why", job, "--address",
			from.Address).CombinedOutput()
		if err != nil || !strings.Contains(string(said), "waits for node "+machine.Node+": its volumes are there") {
			return fmt.Sprintf("%v\n%s", err, said)
		}
		return ""
	})
}

// wantStarts wants the volume of a slot on an agent to know so many starts.
func (tr *trial) wantStarts(a *agents.Agent, want int) {
	tr.Helper()
	files, err := filepath.Glob(a.Volume("*", startsName))
	tr.must(err)
	if len(files) != 1 {
		tr.Fatalf("agent %s has these volumes with starts: %q, want one", a.Node, files)
	}
	text, err := os.ReadFile(files[0])
	tr.must(err)
	if got := strings.Count(string(text), "\n"); got != want {
		tr.Errorf("the volume on agent %s knows the starts %q, want %d", a.Node, text, want)
	}
}

// TestStatefulOnAFrozenMachine freezes a peer for so long that its slots are given to others, where they may be.
func TestStatefulOnAFrozenMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until nothing can run on a machine that is cut off")
	}
	t.Parallel()
	tr := begin(t, 3*time.Second)
	victim := tr.Agents[2]
	other := tr.Agents[0]
	tr.submit(tr.stateful("free"))
	tr.submit(tr.stateful("db", "data"))
	free := tr.slotOn(victim, tr.awaitRunning(other, "free"))
	bound := tr.slotOn(victim, tr.awaitRunning(other, "db"))
	before := tr.awaitPeer(other, victim, "is a member", isMember).GetPeer()

	tr.must(victim.Pause())
	tr.awaitPeer(other, victim, "has left", hasLeft)
	tr.wantElsewhere(tr.awaitRunning(other, "free"), victim)
	tr.wantWaitsFor(other, "db", victim)
	if left := tr.tasksOf(victim); len(left) > 0 {
		t.Errorf("%v still run on agent %s", left, victim.Node)
	}
	tr.must(victim.Resume())
	tr.wantNewLife(victim, before)
	now := tr.awaitRunning(other, "db")
	if back := tr.slotOn(victim, now); back.GetNumber() != bound.GetNumber() || back.GetFailures() != 0 {
		t.Errorf("after the thaw %v is on agent %s, want slot %d without a failure", back, victim.Node, bound.GetNumber())
	}
	tr.wantTasks(append(now, tr.awaitRunning(other, "free")...))
	tr.awaitBeat(tr.slotOn(victim, now))
	tr.wantStarts(victim, 2)
	if several := tr.wantNeverTwo(); several != 2 {
		t.Errorf("%d slots had several allocations, want the 2 of agent %s, among them %s", several, victim.Node,
			free.GetAllocation())
	}
	tr.wantWhole()
}

// TestStatefulWhoseAgentRestarts kills agents, which are back soon, for longer than a task runs without proof.
func TestStatefulWhoseAgentRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until tasks had to end")
	}
	t.Parallel()
	tr := begin(t, 5*time.Second)
	tr.submit(tr.stateful("db", "data"))
	tasks := tr.wantTasks(tr.awaitRunning(tr.Agents[0], "db"))
	began := time.Now()
	for time.Since(began) < 2*stopAfter {
		for _, a := range tr.Agents {
			tr.must(a.Kill())
			tr.must(a.Start())
			tr.must(a.Ready(tr.soon()))
		}
	}
	if now := tr.wantTasks(tr.awaitRunning(tr.Agents[0], "db")); !maps.Equal(now, tasks) {
		t.Errorf("after restarts of the agents %v run, want %v", now, tasks)
	}
	tr.wantWhole()
}

// TestStatefulOnADeadMachine crashes a machine, which comes back much later with its data.
func TestStatefulOnADeadMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until nothing can run on a machine that is cut off")
	}
	t.Parallel()
	tr := begin(t, 3*time.Second)
	victim, other := tr.Agents[1], tr.Agents[0]
	tr.submit(tr.stateful("db", "data"))
	bound := tr.slotOn(victim, tr.awaitRunning(other, "db"))
	tr.awaitBeat(bound)
	tr.must(victim.Crash(tr.soon()))
	tr.wantWaitsFor(other, "db", victim)
	tr.must(victim.Start())
	tr.must(victim.Ready(tr.soon()))
	if back := tr.slotOn(victim, tr.awaitRunning(other, "db")); back.GetNumber() != bound.GetNumber() {
		t.Errorf("%v is on the machine that came back, want slot %d", back, bound.GetNumber())
	}
	tr.eventually("the data is there", func() string {
		if several := tr.wantNeverTwo(); several != 1 {
			return fmt.Sprintf("%d slots have begun again, want 1", several)
		}
		return ""
	})
	tr.wantStarts(victim, 2)
	tr.wantWhole()
}
