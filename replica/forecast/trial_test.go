package forecast_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica"
	"starling/replica/forecast"
	"starling/replica/reaction"
	"starling/schedule/explain"
	"starling/terms"
)

// crowd is a cluster of a few machines under random jobs in random pools.
type crowd struct {
	rng *rand.Rand
	s   *cluster.State
}

// other lets one more node join.
func (h *crowd) other(capacity terms.Resources) bool {
	return h.enter(fmt.Sprint("other", h.s.Nodes()), capacity)
}

func newCrowd(seed uint64) *crowd {
	h := &crowd{rng: rand.New(rand.NewPCG(seed, 17)), s: cluster.NewState()}
	for i := range 1 + h.rng.IntN(4) {
		h.enter(fmt.Sprint("n", i), terms.Resources{int64(2+h.rng.IntN(7)) * 1000, int64(2+h.rng.IntN(7)) << 30, 0})
	}
	change := &command.ChangePools{}
	for _, path := range []terms.PoolPath{"a", "b", "c", "c/d", "c/e", "default"} {
		p := terms.NewPool(path)
		p.PreemptionDelayMillis, p.ControllerLimit = uint32(h.rng.IntN(2)*1000), terms.Percent(50+h.rng.IntN(51))
		for k, unit := range []int64{1000, 1 << 30} {
			q := &p.Quotas[k]
			*q = terms.Quota{Reservation: int64(h.rng.IntN(5)) * unit, Share: int64(h.rng.IntN(3)), Static: h.rng.IntN(4) == 0,
				Limit: terms.Unlimited}
			if path == "c" {
				q.Reservation = 10 * unit
			} else if h.rng.IntN(3) == 0 {
				q.Limit = q.Reservation + int64(h.rng.IntN(8))*unit
			}
		}
		change.Pools = append(change.Pools, p)
	}
	h.write("n0~1", change)
	return h
}

// write folds an entry and tells whether it was obeyed.
func (h *crowd) write(by terms.PeerID, c command.Command) bool {
	seq := h.s.NodeOf(by.Node()).LastSeq(1) + 1
	o := replica.Apply(h.s, h.s.Index+1,
		&command.Entry{Writer: by, Seq: seq, Time: h.s.Time, Commands: []command.Command{c}}, false)
	return o.Dropped == "" && o.Results[0].Refusal.Code == facts.OK
}

func (h *crowd) enter(name string, capacity terms.Resources) bool {
	n := h.s.EnsureNode(terms.NodeName(name)).Index
	self := terms.NewPeerID(h.s.Node(n).Name, 1)
	h.s.Wrote(n, 1, 1)
	h.s.SetPeer(n, self)
	return h.write(self, &command.Volunteer{Peer: self,
		Offer: terms.Offer{Capacity: capacity, PortFirst: 20000, PortLast: 29999, Rules: 1}})
}

func (h *crowd) submit(number int) {
	pool := []terms.PoolPath{"a", "b", "c/d", "c/e", terms.DefaultPool}[h.rng.IntN(5)]
	spec := terms.Job{Name: terms.NewJobName(pool, fmt.Sprint("j", number)), Type: terms.Batch,
		Priority: uint32(h.rng.IntN(3)) * 10}
	switch h.rng.IntN(7) {
	case 0:
		spec.Preemption = terms.NonPreemptible
	case 1, 2:
		spec.Revocable = true
	case 3:
		spec.Controller = true
	}
	for i := range 1 + h.rng.IntN(2) {
		t := terms.Task{Name: terms.TaskName(fmt.Sprint("t", i)), Instances: uint32(1 + h.rng.IntN(4)),
			Command: []string{"run"}, Placement: terms.Pack,
			Resources: terms.Resources{int64(1+h.rng.IntN(8)) * 500, int64(h.rng.IntN(9)) << 29, 0}}
		switch h.rng.IntN(6) {
		case 0:
			t.MaxRunning = 1
		case 1:
			t.PerNodeMax = 1
		case 2:
			t.MinAvailable = 1 + h.rng.Uint32N(t.Instances)
		case 3:
			t.Ports = []terms.PortRequest{{Name: "http", Number: 80}}
		}
		spec.Tasks = append(spec.Tasks, t)
	}
	h.write("n0~1", &command.SubmitJob{Spec: spec})
}

// settle lets all nodes do what they are told, and time pass for as long as trials do.
func (h *crowd) settle() { h.settleFor(600_000) }

func (h *crowd) settleFor(millis terms.Time) {
	for until := h.s.Time + millis; ; {
		told := false
		for n := range facts.NodeIndex(h.s.Nodes()) {
			self := h.s.Node(n).Peer
			reports := &command.ReportTasks{Peer: self}
			for _, a := range reaction.ViewOf(h.s, self) {
				news := command.Report{Slot: a.Slot, Order: a.ID.Order, Ready: true}
				if a.Phase == facts.Stopping {
					news = command.Report{Slot: a.Slot, Order: a.ID.Order, Ended: facts.OnRequest}
				}
				if a.Phase == facts.Stopping || a.Phase == facts.Assigned {
					reports.Reports = append(reports.Reports, news)
				}
			}
			told = len(reports.Reports) > 0 && h.write(self, reports) || told
		}
		at, due := h.s.NextDeadline()
		switch {
		case told:
		case !due || at > until:
			return
		default:
			h.s.Time = max(h.s.Time, at)
			h.write("n0~1", &command.TellTime{})
		}
	}
}

func (h *crowd) running(job terms.JobName, task terms.TaskName) uint32 {
	j := h.s.JobOf(job)
	if j == nil {
		return 0
	}
	return j.Tasks[j.TaskIndex(task)].Counts[facts.Running]
}

// deeds are how a hint is done by its words, which must be all of it.
var deeds = []struct {
	kind  string
	words *regexp.Regexp
	do    func(h *crowd, job *workload.Job, task int, words []string) bool
}{
	{"node", regexp.MustCompile(`^(?:another|a) node that has all (?:it|that one of its gang) needs$`),
		func(h *crowd, j *workload.Job, task int, _ []string) bool {
			return h.more(j, task, 1)
		}},
	{"gang nodes", regexp.MustCompile(`^(\d+) more nodes that each have all (?:it|that one of its gang) needs$`),
		func(h *crowd, j *workload.Job, task int, words []string) bool {
			return h.more(j, task, number(words[1]))
		}},
	{"like", regexp.MustCompile(`^another node like (\w+)$`),
		func(h *crowd, _ *workload.Job, _ int, words []string) bool {
			return h.other(h.s.NodeOf(terms.NodeName(words[1])).Offer.Capacity)
		}},
	{"nodes", regexp.MustCompile(`^nodes with (\S+ ?[A-Za-z]* ?)(cpu|memory) more$`),
		func(h *crowd, j *workload.Job, task int, words []string) bool {
			k, amount := quantity(words[1], words[2])
			capacity := j.Spec.Tasks[task].Resources
			capacity[k] = amount
			return h.other(capacity)
		}},
	{"less", regexp.MustCompile(`^a task that needs no more than (\w+) has$`),
		func(h *crowd, j *workload.Job, task int, words []string) bool {
			return h.edit(j, task, func(_ *terms.Job, t *terms.Task) {
				for k := range t.Resources {
					t.Resources[k] = min(t.Resources[k], h.s.NodeOf(terms.NodeName(words[1])).Offer.Capacity[k])
				}
			})
		}},
	{"end", regexp.MustCompile(`^the end of (\S+)$`), func(h *crowd, _ *workload.Job, _ int, words []string) bool {
		return h.write("n0~1", &command.KillJob{Job: terms.JobName(words[1])})
	}},
	{"priority", regexp.MustCompile(`^a priority above (\d+)(?:, that of .*|: less .*)$`),
		func(h *crowd, j *workload.Job, task int, words []string) bool {
			return h.edit(j, task, func(spec *terms.Job, _ *terms.Task) { spec.Priority = uint32(number(words[1]) + 1) })
		}},
	{"gang", regexp.MustCompile(`^a gang of at most (\d+)$`),
		func(h *crowd, j *workload.Job, task int, words []string) bool {
			return h.edit(j, task, func(_ *terms.Job, t *terms.Task) { t.MinAvailable = uint32(number(words[1])) })
		}},
	{"max_running", regexp.MustCompile(`^a max_running above (\d+)$`),
		func(h *crowd, j *workload.Job, task int, words []string) bool {
			return h.edit(j, task, func(_ *terms.Job, t *terms.Task) { t.MaxRunning = uint32(number(words[1]) + 1) })
		}},
	{"preemptible", regexp.MustCompile(`^preemptible: true, by a stop and a new start of the job$`),
		func(h *crowd, j *workload.Job, task int, _ []string) bool {
			return h.anew(j, func(spec *terms.Job) { spec.Preemption = terms.Preemptible })
		}},
	{"revocable", regexp.MustCompile(`^revocable: false, by a stop and a new start of the job$`),
		func(h *crowd, j *workload.Job, task int, _ []string) bool {
			return h.anew(j, func(spec *terms.Job) { spec.Revocable = false })
		}},
	{"reservation", regexp.MustCompile(
		`^(\S+ ?[A-Za-z]* ?)(cpu|memory) more reserved for pool (\S+?)(, with less for the pools beside it)?$`),
		func(h *crowd, _ *workload.Job, _ int, words []string) bool {
			k, amount := quantity(words[1], words[2])
			return h.reserve(terms.PoolPath(words[3]), k, amount, words[4] != "")
		}},
	{"limit", regexp.MustCompile(`^a limit of pool (\S+) that is (\S+ ?[A-Za-z]* ?)(cpu|memory) higher$`),
		func(h *crowd, _ *workload.Job, _ int, words []string) bool {
			k, amount := quantity(words[2], words[3])
			return h.pool(words[1], func(p *terms.Pool) { p.Quotas[k].Limit += amount })
		}},
	{"share", regexp.MustCompile(`^a share of (\d+) of (cpu|memory) for pool (\S+)$`),
		func(h *crowd, _ *workload.Job, _ int, words []string) bool {
			return h.pool(words[3], func(p *terms.Pool) { p.Quotas[kind(words[2])].Share = int64(number(words[1])) })
		}},
	{"controller_limit", regexp.MustCompile(`^a controller_limit of pool (\S+) of (\d+) percent$`),
		func(h *crowd, _ *workload.Job, _ int, words []string) bool {
			return h.pool(words[1], func(p *terms.Pool) { p.ControllerLimit = terms.Percent(number(words[2])) })
		}},
	{"controller_limit", regexp.MustCompile(`^no controller_limit of pool (\S+)$`),
		func(h *crowd, _ *workload.Job, _ int, words []string) bool {
			return h.pool(words[1], func(p *terms.Pool) { p.ControllerLimit = terms.NoPercent })
		}},
	{"slack_limit", regexp.MustCompile(`^a slack_limit of pool (\S+) of (\d+) percent$`),
		func(h *crowd, _ *workload.Job, _ int, words []string) bool {
			return h.pool(words[1], func(p *terms.Pool) { p.SlackLimit = terms.Percent(number(words[2])) })
		}},
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

func kind(word string) terms.Kind {
	if word == "cpu" {
		return terms.CPU
	}
	return terms.Memory
}

// quantity reads "2 cpu", "500m cpu", "1.5 GiB memory".
func quantity(text, word string) (terms.Kind, int64) {
	text = strings.TrimSpace(text)
	if word == "cpu" {
		if millis, ok := strings.CutSuffix(text, "m"); ok {
			return terms.CPU, int64(number(millis))
		}
		cores, _ := strconv.ParseFloat(text, 64)
		return terms.CPU, int64(cores * 1000)
	}
	value, unit, _ := strings.Cut(text, " ")
	size, _ := strconv.ParseFloat(value, 64)
	return terms.Memory, int64(size * float64(map[string]int64{"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20,
		"GiB": 1 << 30}[unit]))
}

func (h *crowd) more(j *workload.Job, task, count int) bool {
	capacity := j.Spec.Tasks[task].Resources
	for i := range j.Spec.Tasks {
		for k := range capacity {
			if j.HasGang() {
				capacity[k] = max(capacity[k], j.Spec.Tasks[i].Resources[k])
			}
		}
	}
	for range count {
		if !h.other(capacity) {
			return false
		}
	}
	return true
}

func (h *crowd) edit(j *workload.Job, task int, change func(*terms.Job, *terms.Task)) bool {
	spec := *h.s.JobOf(j.Name()).Spec
	spec.Tasks = slices.Clone(spec.Tasks)
	change(&spec, &spec.Tasks[task])
	return h.write("n0~1", &command.SubmitJob{Spec: spec, Against: h.s.JobOf(j.Name()).Version})
}

func (h *crowd) anew(j *workload.Job, change func(*terms.Job)) bool {
	spec := *h.s.JobOf(j.Name()).Spec
	h.write("n0~1", &command.KillJob{Job: j.Name()})
	h.settleFor(0)
	change(&spec)
	return h.write("n0~1", &command.SubmitJob{Spec: spec})
}

func (h *crowd) pool(path string, change func(*terms.Pool)) bool {
	number, _ := h.s.PoolNumber(terms.PoolPath(path))
	p := h.s.Pools()[number]
	change(&p)
	return h.write("n0~1", &command.ChangePools{Pools: []terms.Pool{p}})
}

// reserve reserves more for a pool, with less for those beside it that need it least if that is said.
func (h *crowd) reserve(path terms.PoolPath, k terms.Kind, more int64, less bool) bool {
	tree := slices.Clone(h.s.Pools())
	parent := func(p terms.PoolPath) string { return string(p[:max(strings.LastIndex(string(p), "/"), 0)]) }
	left := h.s.Capacity()[k]
	if above, ok := h.s.PoolNumber(terms.PoolPath(parent(path))); ok {
		left = tree[above].Quotas[k].Reservation
	}
	own, _ := h.s.PoolNumber(path)
	var beside []int
	for i := range tree {
		if parent(tree[i].Path) == parent(path) {
			left -= tree[i].Quotas[k].Reservation
			if i != own {
				beside = append(beside, i)
			}
		}
	}
	held := func(i int) (sum int64) {
		for n := range tree {
			if n == i || strings.HasPrefix(string(tree[n].Path), string(tree[i].Path)+"/") {
				sum += h.s.Account(n).Held.NonSlack[k]
				if k != terms.CPU {
					sum += h.s.Account(n).Held.Slack[k]
				}
			}
		}
		return tree[i].Quotas[k].Reservation - sum
	}
	slices.SortStableFunc(beside, func(a, b int) int { return int((held(b) - held(a)) >> 1) })
	tree[own].Quotas[k].Reservation += more
	for short := more - max(left, 0); less && short > 0 && len(beside) > 0; beside = beside[1:] {
		q := &tree[beside[0]].Quotas[k]
		part := min(short, q.Reservation)
		q.Reservation, short = q.Reservation-part, short-part
	}
	return h.write("n0~1", &command.ChangePools{Pools: tree})
}

// do does all that a hint says. It returns of what kinds that is, "" if the words are not known.
func (h *crowd) do(t *testing.T, j *workload.Job, task int, hint string) string {
	var kinds []string
	for _, part := range strings.Split(hint, ", together with ") {
		at := slices.IndexFunc(deeds, func(d struct {
			kind  string
			words *regexp.Regexp
			do    func(h *crowd, job *workload.Job, task int, words []string) bool
		}) bool {
			return d.words.MatchString(part)
		})
		if at < 0 {
			t.Errorf("%q is not known", part)
			return ""
		}
		if !deeds[at].do(h, j, task, deeds[at].words.FindStringSubmatch(part)) {
			return deeds[at].kind + " is refused"
		}
		kinds = append(kinds, deeds[at].kind)
	}
	return strings.Join(kinds, " and ")
}

// TestHintsHelp does, by its words, whatever is said to help work that waits in random clusters, and wants more of it
// to run then than without: as many as is said, or all.
func TestHintsHelp(t *testing.T) {
	clusters := uint64(400)
	if testing.Short() {
		clusters = 80
	}
	helped, wrong := map[string]int{}, map[string]int{}
	for seed := range clusters {
		h := newCrowd(seed)
		for i := range 3 + h.rng.IntN(6) {
			h.submit(i)
			h.settle()
		}
		h.s.EachJob(func(j *workload.Job) bool {
			for _, f := range explain.Job(h.s, j, &explain.Reader{Try: forecast.Tries(h.s, j.Name())}) {
				for _, line := range f.Details {
					help, found := strings.CutPrefix(line, "would help: ")
					if !found {
						continue
					}
					kind, text := h.help(t, j, f.Task, help)
					for _, one := range strings.Split(kind, " and ") {
						helped[one]++
					}
					if text != "" {
						wrong[kind]++
						t.Errorf("seed %d: %s: %s: %q does not help: %s", seed, j.Name(), f.Reason, help, text)
					}
				}
			}
			return true
		})
	}
	t.Logf("done: %v; wrong: %v", helped, wrong)
	for _, kind := range []string{"node", "gang nodes", "like", "nodes", "less", "end", "priority", "gang", "max_running",
		"preemptible", "revocable",
		"reservation", "limit", "share"} {
		if helped[kind] == 0 && !testing.Short() {
			t.Errorf("no hint at %s was tried", kind)
		}
	}
}

var partly = regexp.MustCompile(` \((\d+) of \d+ would run\)$`)

// help does what a hint says on a copy, and returns of what kind it is, and what is wrong if not so much more runs then
// as it says.
func (h *crowd) help(t *testing.T, j *workload.Job, task terms.TaskName, hint string) (kind, wrong string) {
	alone, with := &crowd{rng: h.rng, s: h.s.Copy()}, &crowd{rng: h.rng, s: h.s.Copy()}
	alone.settle()
	before := alone.running(j.Name(), task)
	row := h.s.JobOf(j.Name()).Tasks[j.TaskIndex(task)]
	want := row.Pending()
	if said := partly.FindStringSubmatch(hint); said != nil {
		want, hint = uint32(number(said[1])), strings.TrimSuffix(hint, said[0])
	}
	if kind = with.do(t, j, j.TaskIndex(task), hint); strings.HasSuffix(kind, "refused") {
		return kind, "it is refused"
	}
	with.settle()
	if after := with.running(j.Name(), task); after < before+want {
		return kind, fmt.Sprintf("%d run, with it %d, %d wait", before, after, row.Pending())
	}
	return kind, ""
}
