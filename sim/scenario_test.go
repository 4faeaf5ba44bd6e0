package sim

import (
	"strings"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/journal"
	"starling/replica/report"
	"starling/sim/wishes"
	"starling/terms"
	"starling/terms/rules"
)

// script is a world in which nothing goes wrong but what a test lets go wrong.
type script struct {
	*World
	t *testing.T
}

// newScript starts machines with two cores and 4 GiB each, and waits until all are members.
func newScript(t *testing.T, machines int) *script {
	s := &script{newWorld(1, Options{limits: usualLimits()}), t}
	for i := range machines {
		s.boot(s.addMachine(i))
	}
	s.wait(10_000)
	if got := s.value().Members(); got != machines {
		t.Fatalf("%d of %d machines are members", got, machines)
	}
	return s
}

func (s *script) boot(m *machine) {
	m.offer = terms.Offer{
		Capacity: terms.Resources{2000, 4 << 30, 1 << 40}, PortFirst: wishes.PortFirst, PortLast: wishes.PortLast,
		Address: m.label + ":1", Rules: rules.Released,
	}
	m.boot()
}

// wait lets so many milliseconds pass.
func (s *script) wait(millis terms.Time) {
	s.t.Helper()
	s.run(s.now + millis)
	s.check()
}

func (s *script) check() {
	s.t.Helper()
	if s.failure != nil {
		s.t.Fatal(s.failure)
	}
}

// rest ends the story: all comes to rest, and what must hold then holds.
func (s *script) rest() {
	s.t.Helper()
	s.calmDown()
	s.run(s.now + 24*60*60*1000)
	if s.failure == nil {
		s.checkRest()
	}
	s.check()
}

// value returns the value of the first machine that runs.
func (s *script) value() *cluster.State {
	for _, m := range s.machines {
		if m.up {
			return m.core.State()
		}
	}
	s.t.Fatal("no machine runs")
	return nil
}

// send gives a command to the first machine that runs, and returns when it is answered.
func (s *script) send(c command.Command) (answer report.Receipt, failure error) {
	s.t.Helper()
	answered := false
	for _, m := range s.machines {
		if m.up && m.begun {
			m.core.Request(c, func(r report.Receipt, err error) { answered, answer, failure = true, r, err })
			m.wake()
			break
		}
	}
	for range 10_000 {
		if answered {
			return answer, failure
		}
		s.wait(1)
	}
	s.t.Fatalf("no answer to %s", words(c))
	return answer, failure
}

// must sends a command that is obeyed.
func (s *script) must(c command.Command) {
	s.t.Helper()
	if r, err := s.send(c); err != nil || r.Refusal.Code != facts.OK {
		s.t.Fatalf("%s: %v %v", words(c), r.Refusal, err)
	}
}

// submit submits a stateless job whose tasks have the given numbers of instances, each half a core unless changed.
func (s *script) submit(name terms.JobName, change func(*terms.Job), instances ...uint32) {
	s.t.Helper()
	spec := terms.Job{Name: name, Type: terms.Stateless}
	for i, n := range instances {
		spec.Tasks = append(spec.Tasks, terms.Task{
			Name: terms.TaskName("t" + string(rune('0'+i))), Instances: n, Command: []string{"run", "0"},
			Placement: terms.Spread,
			Resources: terms.Resources{500, 1 << 28, 0}, StopGraceMillis: 5000,
			Restart: terms.Restart{AttemptsMax: terms.RestartsUnlimited, DelayMillis: 100, DelayMaxMillis: 1000},
		})
	}
	if change != nil {
		change(&spec)
	}
	against := uint32(0)
	if j := s.value().JobOf(name); j != nil && j.Finished == 0 {
		against = j.Version
	}
	s.must(&command.SubmitJob{Spec: spec, Against: against})
}

// phases returns the phases of all slots of a job, tasks parted by bars.
func (s *script) phases(name terms.JobName) string {
	j := s.value().JobOf(name)
	if j == nil {
		return "none"
	}
	var tasks []string
	for _, t := range j.Tasks {
		var slots []string
		for i := range t.Slots.Len() {
			slots = append(slots, t.Slots.At(i).Phase.String())
		}
		tasks = append(tasks, strings.Join(slots, " "))
	}
	return strings.Join(tasks, " | ")
}

func (s *script) want(name terms.JobName, phases string) {
	s.t.Helper()
	if got := s.phases(name); got != phases {
		s.t.Fatalf("job %s is %q, want %q", name, got, phases)
	}
}

// write puts an entry into the journal as if somebody had written it.
func (s *script) write(e *command.Entry) {
	s.land(journal.Record{Writer: string(e.Writer), Seq: e.Seq, Payload: command.Encode(e)})
	s.wait(1000)
}
