package kill

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"

	starlingv1 "starling/api/v1"
	"starling/driver/container/containertest"
	"starling/e2e/agents"
	"starling/terms"
)

// harbour is a trial whose tasks are containers. Each machine has a containerd of its own.
type harbour struct {
	*trial
	engines map[*agents.Agent]*containertest.Containerd
	image   string
	// program is this binary, in a folder of its own.
	program string
}

// beginContained is begin for containers, whose image is empty but for what leads to the programs of this machine.
func beginContained(t *testing.T, ttl time.Duration) *harbour {
	t.Helper()
	if missing := containertest.Missing(); missing != "" {
		t.Skip(missing)
	}
	h := &harbour{trial: prepare(t, ttl, []string{"a", "b", "c"}), engines: map[*agents.Agent]*containertest.Containerd{}}
	h.restarts = terms.RestartsUnlimited // starts fail while containerd is away
	binary, err := os.Executable()
	h.must(err)
	h.program = filepath.Join(t.TempDir(), "program")
	h.must(exec.Command("cp", binary, h.program).Run())
	registry := containertest.NewRegistry()
	t.Cleanup(registry.Close)
	_, h.image = registry.Push(t, "hosted:1", containertest.Image(t, v1.Config{}, containertest.Link("bin", "usr/bin"),
		containertest.Link("lib", "usr/lib"), containertest.Link("lib64", "usr/lib64")))
	for _, a := range h.Agents {
		folder, err := os.MkdirTemp("", "starling-kill-containerd-") // short, for the socket
		h.must(err)
		t.Cleanup(func() { os.RemoveAll(folder) })
		engine, err := containertest.Start(folder)
		h.must(err)
		t.Cleanup(engine.Kill)
		h.engines[a] = engine
		a.Flags = []string{"--containerd", engine.Socket,
			"--host-paths", fmt.Sprintf("usr=/usr,tests=%s,watched=%s", filepath.Dir(h.program), h.watched)}
	}
	h.must(h.Start(h.soon()))
	return h
}

// contained has a job's instances run in containers.
func (h *harbour) contained(spec *terms.Job) *terms.Job {
	task := &spec.Tasks[0]
	task.User, task.Container.Image, task.Command[0] = "", h.image, h.program
	task.Reschedule = terms.Reschedule{AttemptsMax: terms.RestartsUnlimited, DelayMillis: 100, DelayMaxMillis: 1000}
	for name, path := range map[string]string{"usr": "/usr", "tests": filepath.Dir(h.program), "watched": h.watched} {
		task.HostPaths = append(task.HostPaths, terms.HostPath{Name: name})
		task.Container.Mounts = append(task.Container.Mounts, terms.Mount{Path: path, Volume: name})
	}
	task.AskForNodes()
	return spec
}

// crash kills all that a machine runs, as the loss of its power does.
func (h *harbour) crash(a *agents.Agent) {
	h.Helper()
	h.must(a.Crash(h.soon()))
	h.engines[a].Kill()
}

func (h *harbour) restart(a *agents.Agent) {
	h.Helper()
	h.must(h.engines[a].Restart())
	h.must(a.Start())
}

// wantClean waits until all machines have what the slots' allocations need, and nothing else: one process and one
// supervisor for each, its folder, control groups, mounts, and file system.
func (h *harbour) wantClean(slots []*starlingv1.Slot) map[string]agents.Process {
	h.Helper()
	tasks := h.wantTasks(slots)
	for _, a := range h.Agents {
		var mine []string
		for _, s := range slots {
			if s.GetNode() == a.Node {
				mine = append(mine, s.GetAllocation())
			}
		}
		h.eventually("nothing is left over on "+a.Node, func() string { return h.leftOver(a, mine) })
	}
	return tasks
}

// leftOver says what is on a machine that should not be.
func (h *harbour) leftOver(a *agents.Agent, running []string) string {
	supervisors, err := a.Supervisors()
	h.must(err)
	if len(supervisors) != len(running) {
		return fmt.Sprintf("these look after %q: %+v", running, supervisors)
	}
	folder := filepath.Join(a.Folder(), "driver")
	tasks, err := os.ReadDir(filepath.Join(folder, "tasks"))
	h.must(err)
	if len(tasks) != len(running) {
		return fmt.Sprintf("folders are left of more than %q: %v", running, tasks)
	}
	isOurs := func(name string) bool {
		return slices.ContainsFunc(tasks, func(task fs.DirEntry) bool { return strings.Contains(name, task.Name()) })
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	h.must(err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, folder) && !isOurs(line) {
			return "a mount is left: " + line
		}
	}
	for _, group := range groupsOf(folder) {
		if !isOurs(group) {
			return "a control group is left: " + group
		}
	}
	return h.keptBy(a, isOurs)
}

// groupsOf returns the control groups of a driver's tasks.
func groupsOf(folder string) (all []string) {
	parent := fmt.Sprintf("starling-%x", sha256.Sum256([]byte(folder)))[:len("starling-")+12]
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Base(filepath.Dir(path)) == parent && strings.HasPrefix(entry.Name(), "task-") {
			all = append(all, path)
		}
		return nil // others come and go meanwhile
	})
	return all
}

// keptBy says what a machine's containerd keeps for tasks that are gone.
func (h *harbour) keptBy(a *agents.Agent, isOurs func(name string) bool) string {
	client := h.engines[a].Client(h)
	defer client.Close()
	ctx := namespaces.WithNamespace(h.Context(), "starling")
	all, err := client.LeasesService().List(ctx)
	if err != nil {
		return err.Error()
	}
	for _, lease := range all {
		if lease.Labels["starling.owner"] != "" && !isOurs(lease.ID) {
			return "containerd keeps the lease " + lease.ID
		}
	}
	left := ""
	err = client.SnapshotService("overlayfs").Walk(ctx, func(_ context.Context, info snapshots.Info) error {
		if info.Kind == snapshots.KindActive && !isOurs(info.Name) {
			left = "containerd keeps the file system " + info.Name
		}
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return left
}

// wantEntered runs a program beside an instance, in its container.
func (h *harbour) wantEntered(slot *starlingv1.Slot) {
	h.Helper()
	name, _, _ := strings.Cut(slot.GetAllocation(), "#")
	said, err := exec.CommandContext(h.soon(), os.Getenv(binaryVariable), "exec", "--address", h.Agents[0].Address, name,
		"--", "/usr/bin/test", "!", "-e", "/etc/passwd").CombinedOutput()
	if err != nil {
		h.Errorf("a session in %s: %v\n%s", name, err, said)
	}
}

// TestContainersGoOn kills agents, and what keeps their images, and both, while containers run.
func TestContainersGoOn(t *testing.T) {
	t.Parallel()
	h := beginContained(t, 20*time.Second)
	h.submit(h.contained(h.job("web", terms.Stateless, serverRole, 3)))
	before := h.awaitRunning(h.Agents[0], "web")
	tasks := h.wantClean(before)
	victim := h.Agents[2]
	engine, slot := h.engines[victim], h.slotOn(victim, before)
	goesOn := func(what string) {
		t.Helper()
		t.Log(what)
		h.must(victim.Ready(h.soon()))
		for id, now := range h.wantTasks(h.awaitRunning(h.Agents[0], "web")) {
			if now != tasks[id] {
				t.Errorf("%s: %s is process %+v, was %+v", what, id, now, tasks[id])
			}
		}
		h.wantEntered(slot)
	}
	h.must(victim.Kill())
	h.must(victim.Start())
	goesOn("the agent was killed")
	engine.Kill()
	goesOn("containerd was killed")
	h.must(engine.Restart())
	goesOn("containerd is back")
	engine.Kill()
	h.must(victim.Kill())
	h.must(victim.Start())
	goesOn("both were killed, and the agent is back alone")
	h.must(engine.Restart())
	h.awaitPeer(h.Agents[0], victim, "runs containers again", func(p *starlingv1.Peer) bool {
		return slices.ContainsFunc(p.GetAttributes(), func(v *starlingv1.Variable) bool {
			return v.GetName() == terms.ContainersAttribute && v.GetValue() == terms.ContainersYes
		})
	})
	goesOn("containerd is back, too")
	h.submit(h.contained(h.job("again", terms.Batch, witnessRole, 3)))
	h.awaitDone(victim, "again")
	h.must(victim.Terminate(h.soon()))
	h.must(victim.Start())
	goesOn("the agent was restarted")
	h.wantClean(before)
	h.wantWhole()
}

// TestContainerWhoseSupervisorIsKilled has it, and its program, begin anew.
func TestContainerWhoseSupervisorIsKilled(t *testing.T) {
	t.Parallel()
	h := beginContained(t, 20*time.Second)
	h.submit(h.contained(h.job("web", terms.Stateless, serverRole, 3)))
	before := h.wantClean(h.awaitRunning(h.Agents[0], "web"))
	victim := h.Agents[1]
	anew := func(what string, kill func()) {
		t.Helper()
		t.Log(what)
		kill()
		var slots []*starlingv1.Slot
		h.eventually("another begins", func() string {
			slots = h.awaitRunning(h.Agents[0], "web")
			if _, same := before[h.slotOn(victim, slots).GetAllocation()]; same {
				return "it is the same"
			}
			return ""
		})
		before = h.wantClean(slots)
		h.wantEntered(h.slotOn(victim, slots))
	}
	supervisors := func() {
		all, err := victim.Supervisors()
		h.must(err)
		for _, p := range all {
			h.must(syscall.Kill(p.PID, syscall.SIGKILL))
		}
	}
	anew("its supervisor is killed", supervisors)
	anew("its program is killed", func() {
		all, err := victim.Tasks()
		h.must(err)
		for _, p := range all {
			h.must(syscall.Kill(p.PID, syscall.SIGKILL))
		}
	})
	anew("its agent is killed, and then its supervisor", func() {
		h.must(victim.Kill())
		supervisors()
		h.must(victim.Start())
	})
	h.wantWhole()
}

// TestMachineWithContainersCrashes has a machine lose its power, and come back soon, and late.
func TestMachineWithContainersCrashes(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a pulse to end")
	}
	t.Parallel()
	h := beginContained(t, 3*time.Second)
	h.submit(h.contained(h.job("web", terms.Stateless, serverRole, 3)))
	victim, other := h.Agents[2], h.Agents[0]
	before := h.wantClean(h.awaitRunning(other, "web"))
	h.crash(victim)
	h.restart(victim)
	h.must(victim.Ready(h.soon()))
	h.eventually("the lost instance begins anew", func() string {
		for _, s := range h.awaitRunning(other, "web") {
			if _, same := before[s.GetAllocation()]; same && s.GetNode() == victim.Node {
				return "it is as if nothing had been lost"
			}
		}
		return ""
	})
	h.wantClean(h.awaitRunning(other, "web"))
	h.crash(victim)
	h.awaitPeer(other, victim, "has left", hasLeft)
	now := h.awaitRunning(other, "web")
	h.wantElsewhere(now, victim)
	h.restart(victim)
	h.must(victim.Ready(h.soon()))
	h.wantClean(h.awaitRunning(other, "web"))
	h.wantWhole()
}

// TestContainersAtAnyMoment kills agents, supervisors, runtimes, containerd and machines at random moments while jobs
// come in.
func TestContainersAtAnyMoment(t *testing.T) {
	t.Parallel()
	kills := 10
	if testing.Short() {
		kills = 2
	}
	seed := seedOf(t)
	h := beginContained(t, 3*time.Second)
	ctx, stop := context.WithCancel(t.Context())
	s := &submitter{trial: h.trial, name: "x", random: rand.New(rand.NewPCG(seed, 1)), pace: 2 * time.Second,
		change: h.contained}
	var working sync.WaitGroup
	working.Go(func() { s.run(ctx) })
	random := rand.New(rand.NewPCG(seed, 0))
	for range kills {
		h.killSomething(random)
	}
	stop()
	working.Wait()
	h.judge([]*submitter{s})
	h.wantClean(nil)
	h.wantWhole()
}

// killSomething kills something of a machine at some moment, and brings back what does not come by itself.
func (h *harbour) killSomething(random *rand.Rand) {
	h.pauseAtMost(random, 2*time.Second)
	victim := h.Agents[random.IntN(len(h.Agents))]
	engine := h.engines[victim]
	switch random.IntN(6) {
	case 0:
		h.Logf("killing agent %s", victim.Node)
		h.must(victim.Kill())
		h.pauseAtMost(random, 800*time.Millisecond)
		h.must(victim.Start())
	case 1:
		h.Logf("killing the containerd of %s", victim.Node)
		engine.Kill()
		h.pauseAtMost(random, 800*time.Millisecond)
		h.must(engine.Restart())
	case 2:
		h.Logf("killing the supervisors of %s", victim.Node)
		all, err := victim.Supervisors()
		h.must(err)
		for _, p := range all {
			_ = syscall.Kill(p.PID, syscall.SIGKILL) // it may have ended by now
		}
	case 3:
		h.Logf("killing the runtimes of %s", victim.Node)
		for range 50 {
			killRuntimes(victim.Folder())
			pause(h.Context(), 2*time.Millisecond) // one that begins meanwhile is to be hit, too
		}
	case 4:
		h.Logf("killing agent %s with its containerd, which comes back later", victim.Node)
		h.must(victim.Kill())
		engine.Kill()
		h.must(victim.Start())
		h.pauseAtMost(random, 800*time.Millisecond)
		h.must(engine.Restart())
	default:
		h.Logf("machine %s loses its power", victim.Node)
		h.crash(victim)
		h.pauseAtMost(random, 800*time.Millisecond)
		h.restart(victim)
	}
}

// killRuntimes kills each runc that works for a machine now.
func killRuntimes(folder string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		var pid int
		program, _, _ := strings.Cut(string(text), "\x00")
		if _, err := fmt.Sscanf(file, "/proc/%d/cmdline", &pid); err == nil && filepath.Base(program) == "runc" &&
			strings.Contains(string(text), folder+"/") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
