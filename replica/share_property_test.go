package replica

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/report"
	"starling/schedule/entitle"
	"starling/terms"
	"starling/terms/constraint"
)

// sharedPool is a random history of jobs that share virtual peers, with what sharing promises checked after each
// change, once all has come to rest. Nothing else is scarce.
type sharedPool struct {
	*story
	rng   *rand.Rand
	pools []terms.Pool
	seed  uint64
	tree  *command.ChangePools
	// lives is the last incarnation of each node, members are those that are there.
	lives   map[terms.NodeName]int
	members []terms.NodeName
	jobs    int
	// at tells where each slot ran when all was at rest last, shares what each task was to have.
	at     map[terms.SlotName]terms.NodeName
	shares map[string]uint32
	// placed and yielded are the slots that since then were placed and gave way, in order.
	placed, yielded []terms.SlotName
	// events and effects tell what happened, and what the last event did, for people.
	events, effects, wrong []string
	// strained tells that meanwhile a machine ran more than it offered.
	strained bool
	// began is the entry with which the last change began.
	began terms.Index
	// succeeded are the jobs of which some instances succeeded with the last change.
	succeeded []terms.JobName
	seen      sightings
}

// sightings counts what was seen, so that poor histories are noticed.
type sightings struct{ yielded, compared, forced, copies, beside, otherWork, orders int }

func newSharedPool(seed uint64) *sharedPool {
	c := &sharedPool{story: newStory(), seed: seed, rng: rand.New(rand.NewPCG(seed, 13)), lives: map[terms.NodeName]int{}}
	c.quiet = true
	c.folded = func(_ *cluster.State, outcome report.Outcome) {
		if outcome.Index > c.began+1000 {
			panic(fmt.Sprintf("history %d does not come to rest after %s", seed, c.events))
		}
		c.strained = c.strained || c.strains()
		for _, e := range outcome.Effects {
			c.effects = append(c.effects, fmt.Sprintf("%d %s %s %s %s", outcome.Index, e.Kind, e.Slot, e.Node, e.Reason))
			switch e.Kind {
			case report.Placed:
				c.placed = append(c.placed, e.Slot)
			case report.GaveWay:
				c.yielded = append(c.yielded, e.Slot)
				if slices.Contains(c.placed, e.Slot) && len(c.pools) == 1 && !c.strained {
					c.say("%s was placed, and gave way", e.Slot)
				}
			}
		}
	}
	for i := range 1 + c.rng.IntN(6) {
		c.enter(terms.NodeName(string(rune('a' + i))))
	}
	change := &command.ChangePools{}
	for i := range max(c.rng.IntN(5)-1, 1) {
		p := terms.NewPool(terms.PoolPath(string(rune('x' + i))))
		p.JobScheduler, p.PreemptionDelayMillis = terms.JobScheduler(c.rng.IntN(4)), 0
		q := &p.Quotas[terms.VirtualPeers]
		q.Reservation, q.Share = int64(c.rng.IntN(5)*int(terms.WholeDevice)), int64(1+c.rng.IntN(3))
		if c.chance(20) {
			q.Limit = q.Reservation + int64((1+c.rng.IntN(9))*int(terms.WholeDevice))
		}
		c.pools = append(c.pools, p)
		c.tellOf("pool %s %s, reservation %d, share %d, limit %d", p.Path, p.JobScheduler, q.Reservation, q.Share, q.Limit)
	}
	change.Pools = c.pools
	if len(c.pools) == 1 { // percentages are of all peers
		rest := terms.NewPool(terms.DefaultPool)
		rest.Quotas[terms.VirtualPeers].Share = 0
		change.Pools = append(slices.Clone(change.Pools), rest)
	}
	c.tree = change
	c.write(c.peer("a"), change)
	return c
}

func (c *sharedPool) chance(percent int) bool { return c.rng.IntN(100) < percent }

func (c *sharedPool) tellOf(format string, args ...any) {
	c.events = append(c.events, fmt.Sprintf(format, args...))
}

func (c *sharedPool) say(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

func (c *sharedPool) peer(name terms.NodeName) terms.PeerID {
	return terms.NewPeerID(name, uint32(c.lives[name]))
}

// enter lets a node join in its next life.
func (c *sharedPool) enter(name terms.NodeName) {
	c.lives[name]++
	count, set := 1+c.rng.IntN(6), map[string]string{}
	if set["cpu"] = fmt.Sprint(1000 * count); c.chance(40) {
		set["disk"] = "ssd"
	}
	c.tellOf("%s enters with %d peers, disk %s", name, count, set["disk"])
	c.join([]string{string(c.peer(name))}, set)
	c.quiet = true
	c.members = append(c.members, name)
}

// strains tells whether a machine runs more than it offers.
func (c *sharedPool) strains() bool {
	for n := range facts.NodeIndex(c.s.Nodes()) {
		node, offered := c.s.Node(n), 0
		if c.s.Eligible(n) {
			offered = int(node.Offer.Devices[0].Count)
		}
		if len(node.Held) > offered {
			return true
		}
	}
	return false
}

// job returns one that has not ended, nil if there is none.
func (c *sharedPool) job() *workload.Job {
	all := c.s.Sharers()
	if len(all) == 0 {
		return nil
	}
	return c.s.Job(all[c.rng.IntN(len(all))])
}

func (c *sharedPool) submit() {
	c.jobs++
	name := terms.NewJobName(c.pools[c.rng.IntN(len(c.pools))].Path, fmt.Sprint("j", c.jobs))
	pick := func(words ...string) string { return words[c.rng.IntN(len(words))] }
	tasks := ""
	for i := range 1 + c.rng.IntN(3) {
		tasks += fmt.Sprintf(",%c:%d", 't'+i, 1+c.rng.IntN(8))
	}
	set := map[string]string{
		"type": pick("batch", "stateless"), "task": tasks[1:], "priority": pick("0", "1", "2"),
		"restarts": pick("0", "2", "unlimited"),
		"shares":   pick("greedy", "round-robin", "round-robin", "percentage", "fixed", "colocated", "colocated"),
	}
	if set["shares"] != "colocated" {
		set["coverage"] = terms.Coverages()[len(c.events)%len(terms.Coverages())]
	}
	submit := c.submission(string(name), set)
	submit.Spec.Percent = uint32(c.rng.IntN(4) * 20)
	for i := range submit.Spec.Tasks {
		t := &submit.Spec.Tasks[i]
		if t.Percent = uint32(c.rng.IntN(4) * 20); c.chance(25) {
			t.Constraints = []constraint.Constraint{{Attribute: "disk", Operator: constraint.Exists}}
			set["task"] += " disk " + string(t.Name)
		}
	}
	c.tellOf("submit %s %s %s coverage %q priority %s percent %d %s", name, set["type"], set["shares"], set["coverage"],
		set["priority"], submit.Spec.Percent, set["task"])
	c.write(c.peer("a"), submit)
}

// step lets one thing happen.
func (c *sharedPool) step() {
	c.began = c.s.Index
	by, draw := c.peer("a"), c.rng.IntN(100)
	if draw < 25 || len(c.s.Sharers()) == 0 {
		c.submit()
		return
	}
	j := c.job()
	switch {
	case draw < 40:
		submit := &command.SubmitJob{Against: j.Version, Spec: *j.Spec}
		submit.Spec.Tasks = slices.Clone(j.Spec.Tasks)
		t := &submit.Spec.Tasks[c.rng.IntN(len(j.Spec.Tasks))]
		t.Instances = uint32(1 + c.rng.IntN(8))
		c.tellOf("scale %s.%s=%d", j.Name(), t.Name, t.Instances)
		c.write(by, submit)
	case draw < 48:
		c.tellOf("stop %s", j.Name())
		c.write(by, &command.KillJob{Job: j.Name()})
	case draw < 56:
		c.tellOf("suspend %s, or resume: %v", j.Name(), j.Suspended)
		c.write(by, &command.SuspendJob{Job: j.Name(), Resume: j.Suspended})
	case draw < 75:
		c.program(int32(c.rng.IntN(3) / 2))
	default:
		c.machine()
	}
}

// program lets some end.
func (c *sharedPool) program(status int32) {
	node := c.members[c.rng.IntN(len(c.members))]
	for i := range c.local[node] {
		if task := &c.local[node][i]; c.chance(50) {
			task.Ended, task.ExitCode = facts.ByItself, status
			if status == 0 {
				c.succeeded = append(c.succeeded, task.ID.Slot.Job)
			}
			c.tellOf("%s ends with %d", task.ID, status)
		}
	}
}

// machine lets one come, go or offer something else.
func (c *sharedPool) machine() {
	name := terms.NodeName(string(rune('a' + c.rng.IntN(len(c.lives)))))
	at := slices.Index(c.members, name)
	if at < 0 {
		c.enter(name)
		return
	}
	switch c.rng.IntN(5) {
	case 0, 1:
		if name != "a" {
			c.tellOf("%s leaves", name)
			c.write(c.peer("a"), &command.Leave{Peer: c.peer(name)})
			c.local[name], c.members = nil, slices.Delete(c.members, at, at+1)
			delete(c.offers, c.peer(name))
		}
	case 2:
		drain := !c.s.NodeOf(name).Drain.On
		c.tellOf("%s is drained: %v", name, drain)
		c.write(c.peer("a"), &command.DrainNode{Node: name, Drain: drain, DeadlineMillis: uint32(c.rng.IntN(2)) * 2000})
	default:
		offer := *c.offers[c.peer(name)]
		offer.Devices = slices.Clone(offer.Devices)
		offer.Devices[0].Count = uint32(1 + c.rng.IntN(6))
		c.tellOf("%s offers %d peers", name, offer.Devices[0].Count)
		c.offers[c.peer(name)] = &offer
	}
}

// rest lets all happen that follows, and time pass, until nothing does any more.
func (c *sharedPool) rest() {
	for range 40 {
		before := c.s.Index
		for _, name := range c.members {
			c.act(c.peer(name))
		}
		due, waits := c.s.NextDeadline()
		if !waits && c.s.Index == before {
			c.still()
			return
		}
		if waits {
			c.now = max(c.now, due)
		}
		c.write(c.peer("a"), &command.TellTime{})
	}
	c.say("it does not come to rest")
}

// still checks that one entry more changes nothing.
func (c *sharedPool) still() {
	placed, yielded, shares := len(c.placed), len(c.yielded), fmt.Sprint(c.sharesNow())
	c.write(c.peer("a"), &command.TellTime{})
	if len(c.placed) > placed || len(c.yielded) > yielded || fmt.Sprint(c.sharesNow()) != shares {
		c.say("what follows waits for the next entry: %v come, %v go", c.placed[placed:], c.yielded[yielded:])
	}
}

func (c *sharedPool) sharesNow() map[string]uint32 {
	all := map[string]uint32{}
	for _, id := range c.s.Sharers() {
		j := c.s.Job(id)
		for i := range j.Spec.Tasks {
			task := j.TaskIndex(j.Spec.Tasks[i].Name)
			all[fmt.Sprintf("%s.%s", j.Name(), j.Spec.Tasks[i].Name)], _ = j.Tasks[task].Share()
		}
	}
	return all
}

// running tells where the slots run.
func (c *sharedPool) running() map[terms.SlotName]terms.NodeName {
	all := map[terms.SlotName]terms.NodeName{}
	for n := range facts.NodeIndex(c.s.Nodes()) {
		for _, r := range c.s.Node(n).Held {
			if slot, _ := c.s.SlotAt(r); slot.Phase.Holds() && slot.Phase != facts.Stopping {
				all[c.s.NameOf(r)] = c.s.Node(n).Name
			}
		}
	}
	return all
}

// party is what a job may have: what its tasks want, at least and at most, as their shares go.
type party struct {
	job                     *workload.Job
	open                    []int
	total, least, most      uint32
	ended, picky, colocated bool
}

// parties returns what the jobs of a pool may have.
func (c *sharedPool) parties(path terms.PoolPath) (all []party) {
	for _, id := range c.s.Sharers() {
		j := c.s.Job(id)
		if j.Name().Pool() != path {
			continue
		}
		p := party{job: j, colocated: j.Spec.TaskScheduler == terms.TaskColocated}
		for task, t := range j.Tasks {
			done, wants := t.Counts[facts.Succeeded]+t.Counts[facts.Failed], t.Live()+t.Pending()
			share, _ := t.Share()
			p.total += share
			p.ended = p.ended || done > 0
			p.picky = p.picky || len(j.TaskSpecOf(task, j.Version).Constraints) > 0
			if wants == 0 || j.Suspended || j.Stop {
				if share > 0 {
					c.say("%s.%s wants nothing, and has a share of %d", j.Name(), t.Name, share)
				}
				continue
			}
			if p.open = append(p.open, task); p.colocated {
				wants += done
			}
			if j.Spec.NeedsCoverage() || len(p.open) == 1 {
				p.least++
			}
			if j.Spec.TaskScheduler == terms.TaskFixed {
				wants = 1
			}
			if p.most += wants; share > wants {
				c.say("%s.%s wants %d, and has a share of %d", j.Name(), t.Name, wants, share)
			}
		}
		all = append(all, p)
	}
	return all
}

// check holds what is at rest against what is promised.
func (c *sharedPool) check() {
	c.wrong = append(c.wrong, c.s.Audit()...)
	entitled := entitle.Entitlements(entitle.Of(c.s))
	picky := false
	for number, pool := range c.s.Pools() {
		all, peers, live := c.parties(pool.Path),
			uint32(entitled[number].NonSlack[terms.VirtualPeers]/int64(terms.WholeDevice)), uint32(0)
		for i := range all {
			c.checkShares(&all[i], slices.ContainsFunc(all, func(p party) bool { return p.colocated && p.ended }))
			c.checkCopies(&all[i])
			picky = picky || all[i].picky || all[i].colocated
			for _, t := range all[i].job.Tasks {
				live += t.Live()
			}
		}
		if live > peers {
			c.say("pool %s runs %d, and is entitled to %d peers", pool.Path, live, peers)
		}
		c.checkEven(&pool, all)
		c.checkIdle(&pool, all, peers)
	}
	c.checkNodes()
	c.checkMoves()
	c.checkNeighbours()
	c.checkOrder()
}

// remember keeps the picture for the next change.
func (c *sharedPool) remember() {
	c.at, c.shares = c.running(), c.sharesNow()
	c.seen.yielded += len(c.yielded)
	c.placed, c.yielded, c.effects, c.strained, c.succeeded = nil, nil, nil, c.strains(), nil
}

// checkShares checks that a job that requires it has all its open tasks covered or nothing, and runs what its shares
// say.
func (c *sharedPool) checkShares(p *party, kept bool) {
	j, covered := p.job, 0
	for _, task := range p.open {
		t := j.Tasks[task]
		share, _ := t.Share()
		if share > 0 {
			covered++
		}
		live := t.Live()
		switch {
		case live > share:
			c.say("%s.%s runs %d, its share is %d", j.Name(), t.Name, live, share)
		case live == share || p.colocated && p.ended:
		case len(c.pools) == 1:
			c.say("%s.%s runs %d, its share is %d and it wants %d more", j.Name(), t.Name, live, share, t.Pending())
		case !p.colocated && !kept:
			c.checkMissing(p, task)
		}
	}
	if covered > 0 && covered < len(p.open) && j.Spec.NeedsCoverage() {
		c.say("of the %d open tasks of %s %d have a share", len(p.open), j.Name(), covered)
	}
}

// checkMissing checks that what lacks of a share is held by other pools, or kept for somebody.
func (c *sharedPool) checkMissing(p *party, task int) {
	spec, others := p.job.TaskSpecOf(task, p.job.Version), 0
	for n := range facts.NodeIndex(c.s.Nodes()) {
		node := c.s.Node(n)
		if !c.s.Eligible(n) || !suits(node, spec) {
			continue
		}
		free, kept := int(node.Offer.Devices[0].Count)-len(node.Held), c.kept(n, p.job.ID)
		if free > kept {
			c.say("%s.%s lacks peers, %s has %d free", p.job.Name(), spec.Name, node.Name, free)
		}
		others += kept
		for _, r := range node.Held {
			if c.s.PoolOf(c.s.Job(r.Job)) != c.s.PoolOf(p.job) {
				others++
			}
		}
	}
	if c.seen.otherWork++; others == 0 {
		c.say("%s.%s lacks peers, and no other pool has any", p.job.Name(), spec.Name)
	}
}

// kept returns how many peers of a node are kept, but for a job.
func (c *sharedPool) kept(n facts.NodeIndex, job terms.JobID) (count int) {
	for _, id := range c.s.NominatedJobs() {
		nomination, _ := c.s.NominationOf(id)
		for _, seat := range nomination.Seats {
			if seat.Node == n && id != job {
				count += int(seat.Count)
			}
		}
	}
	return count
}

func suits(node *cluster.Node, spec *terms.Task) bool {
	_, disk := node.Offer.Attribute("disk")
	return disk || len(spec.Constraints) == 0
}

// checkCopies checks that each node has as many of each open task of a colocated job.
func (c *sharedPool) checkCopies(p *party) {
	if !p.colocated || p.ended || len(c.pools) > 1 {
		return
	}
	for n := range facts.NodeIndex(c.s.Nodes()) {
		counts := make([]int, len(p.job.Tasks))
		for _, r := range c.s.Node(n).Held {
			if r.Job == p.job.ID {
				counts[r.Task]++
				c.seen.copies++
			}
		}
		for _, task := range p.open {
			if counts[task] != counts[p.open[0]] {
				c.say("%s runs %v of the tasks of %s", c.s.Node(n).Name, counts, p.job.Name())
			}
		}
	}
}

// checkNeighbours checks that nobody of a colocated batch job is stopped because others of it succeeded.
func (c *sharedPool) checkNeighbours() {
	now := c.sharesNow()
	for key := range c.shares {
		if _, there := now[key]; !there {
			return // a job has ended, and its percentage goes to others
		}
	}
	for _, name := range c.yielded {
		j := c.s.JobOf(name.Job)
		others := slices.ContainsFunc(c.succeeded, func(succeeded terms.JobName) bool { return succeeded != name.Job })
		if len(c.succeeded) > 0 && !others && !c.strained && len(c.pools) == 1 &&
			j.Spec.TaskScheduler == terms.TaskColocated &&
			j.Spec.Type == terms.Batch {
			c.say("%s gave way when others succeeded", name)
		}
	}
}

// checkEven checks that with round-robin two jobs differ by a unit at most, unless the one with fewer can take no more
// or the other needs as many.
func (c *sharedPool) checkEven(pool *terms.Pool, all []party) {
	if pool.JobScheduler != terms.JobRoundRobin || slices.ContainsFunc(all, func(p party) bool { return p.picky }) {
		return
	}
	for _, a := range all {
		for _, b := range all {
			unit := uint32(1)
			if b.colocated {
				unit = uint32(len(b.open))
			}
			if !a.colocated && a.total > 0 && a.total < a.most && b.total > b.least && b.total > a.total+unit {
				c.say("%s has %d peers and could use %d, %s has %d", a.job.Name(), a.total, a.most, b.job.Name(), b.total)
			}
		}
	}
}

// checkIdle checks that no peer is idle that somebody could use.
func (c *sharedPool) checkIdle(pool *terms.Pool, all []party, peers uint32) {
	if pool.JobScheduler == terms.JobPercentage ||
		slices.ContainsFunc(all, func(p party) bool { return p.picky || p.colocated }) {
		return
	}
	for i := range all {
		peers -= all[i].total
	}
	for _, p := range all {
		if p.total == 0 && p.least > 0 && p.least <= peers || p.total > 0 && p.total < p.most && peers > 0 {
			c.say("%s has %d of %d, %d peers are idle", p.job.Name(), p.total, p.most, peers)
		}
	}
}

// checkNodes checks that nobody runs where his task cannot.
func (c *sharedPool) checkNodes() {
	for n := range facts.NodeIndex(c.s.Nodes()) {
		node := c.s.Node(n)
		for _, r := range node.Held {
			slot, _ := c.s.SlotAt(r)
			if !suits(node, c.s.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version)) {
				c.say("%s runs on %s", c.s.NameOf(r), node.Name)
			}
		}
	}
}

// checkOrder checks that another order of events, with the same ages, divides alike.
func (c *sharedPool) checkOrder() {
	for _, id := range c.s.Sharers() {
		for _, t := range c.s.Job(id).Tasks {
			if t.Counts[facts.Succeeded]+t.Counts[facts.Failed] > 0 {
				return
			}
		}
	}
	if c.strained || len(c.s.Draining()) > 0 || c.s.Index%4 > 0 {
		return
	}
	d := &sharedPool{story: newStory(), rng: rand.New(rand.NewPCG(c.seed, 14)), lives: map[terms.NodeName]int{},
		pools: c.pools}
	d.quiet = true
	slices.Sort(c.members)
	members, jobs := c.members, c.s.Sharers()
	for len(members)+len(jobs) > 0 {
		if len(members) > 0 && (len(d.members) == 0 || len(jobs) == 0 || d.chance(50)) {
			d.copyNode(c, members[0])
			members = members[1:]
			continue
		}
		j := c.s.Job(jobs[0])
		jobs = jobs[1:]
		d.write(d.peer("a"), &command.SubmitJob{Spec: *j.Spec})
		if j.Suspended {
			d.write(d.peer("a"), &command.SuspendJob{Job: j.Name()})
		}
		d.act(d.peer("a"))
	}
	d.rest()
	c.seen.orders++
	if got, want := fmt.Sprint(d.sharesNow()), fmt.Sprint(c.sharesNow()); got != want {
		c.say("the shares are %s in the order of events, and %s in another", want, got)
	}
	c.wrong = append(c.wrong, d.wrong...)
}

// copyNode lets a node join that is like one of another history.
func (c *sharedPool) copyNode(from *sharedPool, name terms.NodeName) {
	offer := from.offers[from.peer(name)]
	disk, _ := offer.Attribute("disk")
	c.lives[name] = 1
	c.join([]string{string(c.peer(name))},
		map[string]string{"cpu": fmt.Sprint(1000 * offer.Devices[0].Count), "disk": disk})
	c.quiet = true
	if c.members = append(c.members, name); name == "a" {
		c.write(c.peer("a"), from.tree)
	}
}

// cases returns how many histories are played: as many as STARLING_CASES says.
func cases(t *testing.T, short, long uint64) uint64 {
	if told := os.Getenv("STARLING_CASES"); told != "" {
		n, err := strconv.ParseUint(told, 10, 64)
		if err != nil {
			t.Fatalf("STARLING_CASES: %v", err)
		}
		return n
	}
	if testing.Short() {
		return short
	}
	return long
}

// TestCommons plays random histories of jobs that share virtual peers, and holds the promises of sharing after each
// change.
func TestCommons(t *testing.T) {
	var seen sightings
	for seed := range cases(t, 400, 2500) {
		c := newSharedPool(seed)
		for range 25 {
			c.step()
			c.rest()
			c.check()
			if len(c.wrong) > 0 {
				t.Fatalf("history %d: %q\nafter %s\nof which the last led from %v, shares %v\nto %v, shares %v:\n%s", seed, c.wrong,
					strings.Join(c.events, "\n"), c.at, c.shares, c.running(), c.sharesNow(), strings.Join(c.effects, "\n"))
			}
			c.remember()
		}
		seen.add(&c.seen)
	}
	if t.Logf("%+v", seen); min(seen.yielded, seen.compared, seen.forced, seen.copies, seen.beside, seen.otherWork,
		seen.orders) == 0 {
		t.Errorf("the histories are poor: %+v", seen)
	}
}

func (s *sightings) add(o *sightings) {
	s.yielded += o.yielded
	s.compared += o.compared
	s.forced += o.forced
	s.copies += o.copies
	s.otherWork += o.otherWork
	s.beside += o.beside
	s.orders += o.orders
}
