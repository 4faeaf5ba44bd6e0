package kill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/e2e/agents"
	"starling/terms"
)

// seedVariable chooses the victims and delays of an earlier run again; what happens meanwhile is the machine's affair.
const seedVariable = "KILL_SEED"

// TestKillAtAnyMoment kills agents at random moments while jobs come in through all of them.
func TestKillAtAnyMoment(t *testing.T) {
	t.Parallel()
	kills := 12
	if testing.Short() {
		kills = 2
	}
	seed := seedOf(t)
	tr := begin(t, 3*time.Second)
	random := rand.New(rand.NewPCG(seed, 0))
	ctx, stop := context.WithCancel(t.Context())
	const pace = 400 * time.Millisecond
	submitters := []*submitter{{trial: tr, name: "x", random: rand.New(rand.NewPCG(seed, 1)), pace: pace},
		{trial: tr, name: "y", random: rand.New(rand.NewPCG(seed, 2)), pace: pace}}
	var working sync.WaitGroup
	for _, s := range submitters {
		working.Go(func() { s.run(ctx) })
	}
	for range kills {
		tr.killAtRandom(random)
	}
	stop()
	working.Wait()
	tr.judge(submitters)
	tr.wantWhole()
}

// seedOf returns the seed of a run, and tells it.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("%s=%d", seedVariable, seed)
	return seed
}

// killAtRandom kills an agent at some moment and brings it back, at once or after the others have given it up. That may
// be before the victim of the round before is of any use again.
func (tr *trial) killAtRandom(random *rand.Rand) {
	tr.pauseAtMost(random, 1500*time.Millisecond)
	victim := tr.Agents[random.IntN(len(tr.Agents))]
	witness := tr.others(victim)[random.IntN(len(tr.Agents)-1)]
	late := random.IntN(2) == 0
	tr.Logf("killing agent %s; back late: %t", victim.Node, late)
	tr.must(victim.Kill())
	if late {
		tr.awaitPeer(witness, victim, "has left or never came", func(p *starlingv1.Peer) bool { return !isMember(p) })
	} else {
		tr.pauseAtMost(random, 800*time.Millisecond)
	}
	tr.must(victim.Start())
}

// pauseAtMost lets some time pass, so that what comes next does so at any moment.
func (tr *trial) pauseAtMost(random *rand.Rand, most time.Duration) {
	pause(tr.Context(), time.Duration(random.Int64N(int64(most))))
}

// submitter brings job after job, each to another agent first.
type submitter struct {
	*trial
	name   string
	random *rand.Rand
	// pace is the longest time between two jobs.
	pace time.Duration
	// change makes of each job what the test wants; nil leaves it.
	change func(*terms.Job) *terms.Job
	// acknowledged are the jobs that were accepted, doubtful those of which that is not known.
	acknowledged, doubtful []string
}

const (
	instancesMax = 3
	// submitWithin bounds one submission: the quorum may be gone for a while when one kill follows another.
	submitWithin = 20 * time.Second
)

func (s *submitter) run(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		var order []*agents.Agent
		for _, i := range s.random.Perm(len(s.Agents)) {
			order = append(order, s.Agents[i])
		}
		spec := s.job(fmt.Sprintf("%s-%d", s.name, n), terms.Batch, witnessRole, uint32(1+s.random.IntN(instancesMax)))
		if s.change != nil {
			spec = s.change(spec)
		}
		if err := s.bring(spec, order); err != nil {
			s.Logf("%s is in doubt: %v", spec.Name, err)
			s.doubtful = append(s.doubtful, string(spec.Name))
		} else {
			s.acknowledged = append(s.acknowledged, string(spec.Name))
		}
		pause(ctx, s.pace/4+time.Duration(s.random.Int64N(int64(s.pace*3/4))))
	}
}

// bring is not cut short by the end of the kills, lest it be in doubt for that alone.
func (s *submitter) bring(spec *terms.Job, order []*agents.Agent) error {
	ctx, cancel := context.WithTimeout(s.Context(), submitWithin)
	defer cancel()
	api := s.Client(order...)
	defer api.Close()
	_, err := api.SubmitJob(ctx, spec, 0)
	return err
}

// judge waits until all work has ended and compares what the value tells with what the witnesses left behind.
func (tr *trial) judge(submitters []*submitter) {
	for _, a := range tr.Agents {
		tr.must(a.Ready(tr.soon()))
	}
	tr.eventually("all jobs end", func() string {
		jobs, err := tr.asked().AllJobs(tr.soon(), "")
		if err != nil {
			return err.Error()
		}
		for _, j := range jobs.GetJobs() {
			if !j.GetFinal() {
				return j.String()
			}
		}
		return ""
	})
	ended, instances := 0, 0
	for i, a := range tr.Agents {
		jobs, err := tr.asked(a).AllJobs(tr.soon(), "")
		tr.must(err)
		known := map[string]bool{}
		for _, j := range jobs.GetJobs() {
			known[j.GetName()] = true
			if i == 0 && j.GetType() == "batch" {
				ended++
				instances += tr.judgeJob(a, j)
			}
		}
		for _, s := range submitters {
			for _, name := range s.acknowledged {
				if !known[name] {
					tr.Errorf("job %s was acknowledged and agent %s does not know it", name, a.Node)
				}
			}
		}
	}
	tr.wantTasks(nil)
	if twice := tr.count(twiceSuffix); twice > 0 {
		tr.Errorf("%d allocations were started twice", twice)
	}
	for _, s := range submitters {
		tr.Logf("submitter %s: %d jobs acknowledged, %d in doubt", s.name, len(s.acknowledged), len(s.doubtful))
	}
	tr.Logf("%d jobs of %d instances ended, of which %d ran once more because of a kill", ended, instances,
		tr.count(begunSuffix)-instances)
}

// judgeJob wants every instance of a job to have succeeded as the allocation that is reported; it returns their number.
func (tr *trial) judgeJob(a *agents.Agent, j *starlingv1.Job) int {
	if j.GetStatus() != "succeeded" || j.GetVersion() != 1 {
		tr.Errorf("job %s ended as %s with version %d, want that it succeeded with the first", j.GetName(), j.GetStatus(),
			j.GetVersion())
	}
	slots := tr.status(a, j.GetName()).GetSlots()
	for _, slot := range slots {
		_, err := os.Stat(proofOf(tr.watched, slot.GetAllocation(), doneSuffix))
		if slot.GetPhase() != "succeeded" || err != nil {
			tr.Errorf("%s is %s: %v; %v", slot.GetAllocation(), slot.GetPhase(), err, slot)
		}
	}
	return len(slots)
}

// count returns how many files of a kind the witnesses left.
func (tr *trial) count(suffix string) int {
	files, err := os.ReadDir(tr.watched)
	tr.must(err)
	n := 0
	for _, file := range files {
		if strings.HasSuffix(file.Name(), suffix) {
			n++
		}
	}
	return n
}
