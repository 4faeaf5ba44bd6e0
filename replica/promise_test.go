package replica

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
)

// promise is a random history of one job that is updated again and again while its instances and nodes fail, with what
// an update promises checked after each entry.
type promise struct {
	*story
	rng   *rand.Rand
	wrong []string
	// lives is the last incarnation of each node.
	lives map[terms.NodeName]int
}

const promised = terms.JobName("j")

func newPromise(seed uint64) *promise {
	p := &promise{story: newStory(), rng: rand.New(rand.NewPCG(seed, 11)), lives: map[terms.NodeName]int{}}
	p.folded = p.check
	for _, name := range []terms.NodeName{"a", "b", "c", "d"} {
		p.enter(name)
	}
	return p
}

func (p *promise) chance(percent int) bool { return p.rng.IntN(100) < percent }

func (p *promise) say(format string, args ...any) {
	p.wrong = append(p.wrong, fmt.Sprintf("entry %d: ", p.s.Index)+fmt.Sprintf(format, args...))
}

// enter lets a node join in its next life.
func (p *promise) enter(name terms.NodeName) {
	p.lives[name]++
	p.join([]string{fmt.Sprintf("%s~%d", name, p.lives[name])}, map[string]string{"cpu": "4000"})
	p.quiet = true
}

// peer returns the peer of a node, "" while it is away.
func (p *promise) peer(name terms.NodeName) terms.PeerID { return p.s.NodeOf(name).Peer }

func (p *promise) node() terms.NodeName {
	return terms.NodeName([]string{"a", "b", "c", "d"}[p.rng.IntN(4)])
}

// submit writes a version with random policies, the type stays.
func (p *promise) submit(kind string) {
	pick := func(words ...string) string { return words[p.rng.IntN(len(words))] }
	set := map[string]string{
		"type": kind, "cpu": "1000", "instances": pick("1", "3", "4", "6"), "program": pick("v1", "v2", "v3"),
		"batch": pick("0", "1", "1", "2"),
		"min":   pick("0", "1000"), "healthy": pick("0", "4000"), "failures": pick("0", "1", "2"),
		"attempts": pick("0", "1", "2"),
		"how":      pick("", "auto", "rollback", "auto,rollback", "paused", "same"),
		"restarts": pick("0", "1", "3", "unlimited"),
		"resched":  pick("0", "1", "2"),
	}
	if kind == "stateless" {
		set["canaries"] = pick("0", "0", "1", "2")
	}
	if p.chance(50) {
		set["check"] = "true"
	}
	switch p.rng.IntN(4) {
	case 0:
		set["stop-after"] = "3000"
	case 1:
		set["lost"], set["wait"], set["keep"] = "5000", "true", pick("original", "replacement", "longest-running")
	}
	if p.chance(30) && set["healthy"] != "0" {
		set["progress"] = "9000"
	}
	p.write(p.peer("a"), p.submission(string(promised), set))
}

// step lets one thing happen.
func (p *promise) step(kind string) {
	node, by := p.node(), p.peer("a")
	j := p.s.JobOf(promised)
	switch draw := p.rng.IntN(100); {
	case draw < 40:
		if p.peer(node) != "" {
			p.act(p.peer(node))
		}
	case draw < 55:
		p.now += terms.Time(p.rng.IntN(3000))
		p.write(by, &command.TellTime{})
	case draw < 75:
		p.disturb(node)
	case draw < 82:
		p.submit(kind)
	case draw < 90:
		p.write(by, &command.SteerUpdate{Job: promised, Version: j.Update.To,
			Steering: command.Steering(1 + p.rng.IntN(len(command.Steerings())-1))})
	case draw < 92:
		p.write(by, &command.RevertJob{Job: promised, To: uint32(1 + p.rng.IntN(int(j.Version)))})
	case draw < 93:
		p.write(by, &command.RestartJob{Job: promised})
	case draw < 95:
		p.write(by, &command.DrainNode{Node: node, Drain: p.chance(50), DeadlineMillis: 2000})
	case node == "a":
	case p.peer(node) == "":
		p.enter(node)
	default:
		p.write(by, &command.Leave{Peer: p.peer(node)})
		if p.chance(50) {
			p.local[node] = nil
		}
	}
}

// disturb lets something happen to a program of a node: its checks pass, or it ends.
func (p *promise) disturb(node terms.NodeName) {
	if len(p.local[node]) == 0 {
		return
	}
	task := &p.local[node][p.rng.IntN(len(p.local[node]))]
	switch {
	case task.Ended != facts.NotEnded:
	case p.chance(60):
		task.Ready = true
	default:
		task.Ended, task.ExitCode = facts.ByItself, int32(p.rng.IntN(2))
	}
}

// settle lets nothing fail any more, and users do what is waited for; the update must end.
func (p *promise) settle() {
	for _, name := range []terms.NodeName{"a", "b", "c", "d"} {
		if p.peer(name) == "" {
			p.enter(name)
		}
		p.write(p.peer("a"), &command.DrainNode{Node: name})
	}
	for range 60 {
		for _, name := range []terms.NodeName{"a", "b", "c", "d"} {
			p.act(p.peer(name))
			for i := range p.local[name] {
				p.local[name][i].Ready = true
			}
			p.act(p.peer(name))
		}
		p.goOn()
	}
	p.checkEnd(p.s.JobOf(promised))
}

// goOn resumes and promotes what waits for its user, and lets time pass.
func (p *promise) goOn() {
	u := p.s.JobOf(promised).Update
	if u.State == facts.Paused {
		p.write(p.peer("a"), &command.SteerUpdate{Job: promised, Version: u.To, Steering: command.Resume})
	}
	if u.State.Rolls() && !u.Promoted {
		p.write(p.peer("a"), &command.SteerUpdate{Job: promised, Version: u.To, Steering: command.Promote})
	}
	p.now += 1500
	p.write(p.peer("a"), &command.TellTime{})
}

// checkEnd holds the job against its newest version when nothing is left to do.
func (p *promise) checkEnd(j *workload.Job) {
	if !j.Update.State.Final() {
		p.say("the update to version %d is still %s", j.Update.To, j.Update.State)
	}
	if j.Update.State != facts.UpdateSucceeded && j.Update.State != facts.RolledBack {
		return
	}
	t := j.Tasks[0]
	if want := j.Spec.Tasks[0].Instances; j.Finished == 0 && (t.Desired != want || t.Slots.Len() != int(want)) {
		p.say("the update has ended with %d slots, %d of them wanted; want %d", t.Slots.Len(), t.Desired, want)
	}
	for index := range t.Slots.Len() {
		if slot := t.Slots.At(index); slot.Phase == facts.Running && slot.Version != j.Version {
			p.say("slot %d has version %d after the update to %d", index, slot.Version, j.Version)
		}
	}
}

// check holds the value after an entry against that before.
func (p *promise) check(before *cluster.State, outcome report.Outcome) {
	for _, line := range p.s.Audit() {
		p.say("%s", line)
	}
	held := map[facts.SlotRef]bool{}
	for n := range p.s.Nodes() {
		for _, r := range p.s.Node(facts.NodeIndex(n)).Held {
			if held[r] {
				p.say("two allocations have the seat %+v", r)
			}
			held[r] = true
		}
	}
	j, old := p.s.JobOf(promised), before.JobOf(promised)
	if j == nil {
		return
	}
	for task := range j.Tasks {
		p.checkTask(before, j, old, task)
	}
	if t := j.Tasks[0]; j.Finished != 0 && j.Update.State == facts.UpdateSucceeded &&
		t.Desired < j.Spec.Tasks[0].Instances {
		p.say("the job ended with %d of %d instances", t.Desired, j.Spec.Tasks[0].Instances)
	}
}

// taken counts the instances that an entry told to make room for the newest version, and those of them that were well
// and have no canary in their slot that is. On a drained node that may be the work of the drain.
func (p *promise) taken(before *cluster.State, j *workload.Job, task int) (all, well uint32) {
	t := j.Tasks[task]
	for index := range min(t.Slots.Len(), int(t.Desired)) {
		r := facts.SlotRef{Job: j.ID, Task: uint16(task), Index: uint32(index)}
		slot := t.Slots.At(index)
		was, _ := before.SlotAt(r)
		if slot.Phase != facts.Stopping || slot.Cause != facts.ByUpdate || was.Cause == facts.ByUpdate {
			continue
		}
		all++
		canary, _ := p.s.SlotAt(seatOf(r, facts.CanarySeat))
		drained := p.s.Node(slot.Node).Drain.On
		if was.Phase == facts.Running && was.Health == facts.Healthy && canary.Health != facts.Healthy && !drained {
			well++
		}
	}
	return all, well
}

func (p *promise) checkTask(before *cluster.State, j, old *workload.Job, task int) {
	t, policy := j.Tasks[task], &j.Spec.Update
	canaries := uint32(0)
	for _, n := range t.Canaries {
		canaries += n
	}
	if u := &j.Update; (u.State == facts.UpdateSucceeded || u.State == facts.RolledBack) && canaries > 0 &&
		u.Promoted {
		p.say("%d canaries are left after the update", canaries)
	}
	if old == nil || task >= len(old.Tasks) || policy.BatchSize == 0 {
		return
	}
	all, well := p.taken(before, j, task)
	healthy := t.New[facts.Healthy] + t.Old[facts.Healthy] + t.Canaries[facts.Healthy]
	borne := policy.BatchSize + min(t.New[facts.Unhealthy], policy.FailuresMax)
	if well > 0 && healthy+borne < t.Desired {
		p.say("the update took %d that were well, and leaves %d of %d; %d may be missing", well, healthy, t.Desired, borne)
	}
	promotes := j.Update.Promoted && !old.Update.Promoted
	if underWay := t.New[facts.Starting] + t.New[facts.Ready]; all > 0 && !promotes && underWay > policy.BatchSize {
		p.say("the update took %d, and has %d under way, in batches of %d", all, underWay, policy.BatchSize)
	}
}

// TestPromises plays random updates and checks what they promise.
func TestPromises(t *testing.T) {
	histories := uint64(600)
	if testing.Short() {
		histories = 60
	}
	ended := map[facts.UpdateState]int{}
	for seed := range histories {
		p := newPromise(seed)
		kind := []string{"stateless", "stateful", "stateless", "batch"}[seed%4]
		p.submit(kind)
		for range 150 {
			if j := p.s.JobOf(promised); len(p.wrong) > 0 || j == nil || j.Finished != 0 {
				break
			}
			p.step(kind)
		}
		if j := p.s.JobOf(promised); len(p.wrong) == 0 && j != nil && j.Finished == 0 {
			p.settle()
			ended[p.s.JobOf(promised).Update.State]++
		}
		if len(p.wrong) > 0 {
			t.Fatalf("seed %d: %q", seed, p.wrong)
		}
	}
	for _, state := range []facts.UpdateState{facts.UpdateSucceeded, facts.RolledBack, facts.UpdateFailed,
		facts.UpdateAborted} {
		if t.Logf("%s: %d", state, ended[state]); ended[state] == 0 {
			t.Errorf("no update ended as %s: the histories are poor", state)
		}
	}
}
