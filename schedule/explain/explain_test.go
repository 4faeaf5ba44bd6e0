package explain_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/jobspec"
	"starling/replica/forecast"
	"starling/schedule"
	"starling/schedule/explain"
	"starling/schedule/preempt"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/pool"
	"starling/terms/rules"
)

// dawn is the time at which every story begins.
var dawn = terms.Time(time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC).UnixMilli())

// story is a cluster that a test file builds line by line:
//
//	node NAME [cpu=4] [memory=8Gi] [disk=0] [attributes=zone:a,...] [devices=gpu:2:A100,...] [ports=20000-20100]
//	member NAME                  a member that has volunteered nothing
//	leave NAME                   the node is gone
//	remove NAME                  the node was removed
//	submit, with a job file as input
//	pools, with a pools file as input
//	place                        what fits is placed, and who has to give way is told to
//	slot JOB.TASK[N] PHASE [ended=ByItself] [exit=1] [failures=2] [after=90s] [said=WORDS] [tied=true]
//	stop JOB
//	later 30s                    time passes
//	newest                       the newest rules are in force
//	unfinished                   work was left over
//	why JOB [sees=POOL]          what explain finds; the peer of a node called slow says that starts wait for input
type story struct{ s *cluster.State }

func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		st := &story{s: cluster.NewState()}
		st.s.Index, st.s.Time = 1, dawn
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			st.s.Index++
			switch d.Cmd {
			case "node":
				st.node(t, d)
			case "member":
				st.s.SetPeer(st.ensure(d), terms.NewPeerID(terms.NodeName(d.CmdArgs[0].Key), 1))
			case "leave":
				st.s.SetPeer(st.ensure(d), "")
				st.s.SetOffer(st.ensure(d), nil)
			case "remove":
				st.s.SetRegistry(st.s.Registry().Remove(
					access.Subject{Kind: access.OfNode, Name: d.CmdArgs[0].Key}, st.s.Time))
			case "submit":
				return st.submit(t, d)
			case "place":
				schedule.Run(st.s, nil, nil, st.evict)
			case "pools":
				st.pools(t, d)
			case "slot":
				st.slot(t, d)
			case "stop":
				st.s.StopJob(st.job(t, d).ID)
			case "later":
				st.s.Time += millis(t, d.CmdArgs[0].Key)
			case "newest":
				st.s.Rules = rules.Released
			case "unfinished":
				st.s.Unfinished = true
			case "why":
				return words(explain.Job(st.s, st.job(t, d), st.reader(t, d)))
			default:
				t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			}
			return ""
		})
	})
}

// reader is who may see the jobs of one pool, or of all.
func (st *story) reader(t *testing.T, d *datadriven.TestData) *explain.Reader {
	r := &explain.Reader{Said: said, Try: forecast.Tries(st.s, st.job(t, d).Name())}
	if one := ""; d.HasArg("sees") {
		d.ScanArgs(t, "sees", &one)
		r.Sees = func(path terms.PoolPath) bool { return path == terms.PoolPath(one) }
	}
	return r
}

func (st *story) ensure(d *datadriven.TestData) facts.NodeIndex {
	n := st.s.EnsureNode(terms.NodeName(d.CmdArgs[0].Key)).Index
	st.s.Wrote(n, 1, 1)
	return n
}

func (st *story) job(t *testing.T, d *datadriven.TestData) *workload.Job {
	j := st.s.JobOf(terms.JobName(d.CmdArgs[0].Key))
	if j == nil {
		t.Fatalf("%s: no such job", d.Pos)
	}
	return j
}

func (st *story) node(t *testing.T, d *datadriven.TestData) {
	offer := &terms.Offer{Capacity: terms.Resources{terms.CPU: 4000, terms.Memory: 8 << 30}}
	for _, arg := range d.CmdArgs[1:] {
		var err error
		value := strings.Join(arg.Vals, ",")
		switch arg.Key {
		case "cpu":
			offer.Capacity[terms.CPU], err = jobspec.ParseCPU(value)
		case "memory":
			offer.Capacity[terms.Memory], err = jobspec.ParseBytes(value)
		case "disk":
			offer.Capacity[terms.Disk], err = jobspec.ParseBytes(value)
		case "ports":
			_, err = fmt.Sscanf(value, "%d-%d", &offer.PortFirst, &offer.PortLast)
		case "attributes":
			for _, v := range strings.Split(value, ",") {
				name, text, _ := strings.Cut(v, ":")
				offer.Attributes = append(offer.Attributes, terms.EnvVar{Name: name, Value: text})
			}
		case "devices":
			for _, v := range strings.Split(value, ",") {
				kind, count, _ := strings.Cut(v, ":")
				count, model, _ := strings.Cut(count, ":")
				n, _ := strconv.Atoi(count)
				offer.Devices = append(offer.Devices, terms.DeviceOffer{Kind: kind, Model: model, Count: uint32(n)})
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
	}
	n := st.ensure(d)
	st.s.SetPeer(n, terms.NewPeerID(st.s.Node(n).Name, 1))
	st.s.SetOffer(n, offer)
}

func (st *story) pools(t *testing.T, d *datadriven.TestData) {
	tree, err := jobspec.ParsePools(d.Pos, []byte(d.Input))
	if err != nil {
		t.Fatal(err)
	}
	st.s.SetPools(pool.Tree(st.s.Pools()).Change(tree, nil))
}

func (st *story) evict(r facts.SlotRef, to terms.JobID, rule preempt.Rule) {
	st.s.SetPreemption(r, facts.Preemption{Index: r.Index, Entry: st.s.Index, At: st.s.Time, By: st.s.Job(to).Name(),
		Rule: uint8(rule)})
	st.s.StopSlot(r, facts.ByPreemption)
}

// submit keeps a job, or a new version of one: then all that runs is told to stop.
func (st *story) submit(t *testing.T, d *datadriven.TestData) string {
	documents, err := jobspec.Parse(d.Pos, []byte(d.Input))
	if err != nil {
		t.Fatal(err)
	}
	for i := range documents {
		spec := &documents[i].Spec
		j := st.s.JobOf(spec.Name)
		if j == nil {
			st.s.AddJob(spec)
			continue
		}
		st.s.AddVersion(j.ID, facts.JobVersion{Kind: facts.Submitted, Spec: spec}, nil)
		for i, task := range st.s.Job(j.ID).Tasks {
			for index := range task.Slots.Len() {
				r := facts.SlotRef{Job: j.ID, Task: uint16(i), Index: uint32(index)}
				if slot, ok := st.s.SlotAt(r); ok && slot.Phase.Holds() {
					st.s.StopSlot(r, facts.ByUpdate)
				}
			}
		}
	}
	return ""
}

func (st *story) slot(t *testing.T, d *datadriven.TestData) {
	id, ok := terms.ParseAllocationID(d.CmdArgs[0].Key + "#0")
	r, found := st.s.RefOf(id.Slot)
	if !ok || !found {
		t.Fatalf("%s: no such slot", d.Pos)
	}
	slot, _ := st.s.SlotAt(r)
	slot.Since = st.s.Time
	for slot.Phase = 0; strings.ReplaceAll(slot.Phase.String(), " ", "-") != d.CmdArgs[1].Key; slot.Phase++ {
	}
	for _, arg := range d.CmdArgs[2:] {
		value := arg.Vals[0]
		n, _ := strconv.Atoi(value)
		switch arg.Key {
		case "ended":
			for slot.Ended = 0; strings.ReplaceAll(slot.Ended.String(), " ", "-") != value; slot.Ended++ {
			}
		case "exit":
			slot.Ended, slot.ExitCode = facts.ByItself, int32(n)
		case "said":
			st.s.SetFailure(r.Job, int(r.Task), facts.Failure{Index: r.Index, Order: slot.Order, Detail: value})
		case "failures":
			slot.Failures = uint32(n)
		case "tied":
			slot.Preference = facts.OnlyNode
		case "after":
			slot.Deadline = st.s.Time + millis(t, value)
		}
	}
	if slot.Phase == facts.Waiting {
		slot.Version = 0
	}
	st.s.SetSlot(r, slot)
	st.s.FinishIfDone(r.Job)
}

func millis(t *testing.T, text string) terms.Time {
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return terms.Time(d.Milliseconds())
}

// said tells of one node what a start there waits for.
func said(id terms.AllocationID, node terms.NodeName) string {
	if node != "slow" {
		return ""
	}
	return fmt.Sprintf("the input of number %d", id.Slot.Index)
}

// words writes findings as a test file holds them.
func words(findings []explain.Finding) string {
	if len(findings) == 0 {
		return "nothing\n"
	}
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s %d from [%d]: %s%s%s\n", f.Task, f.Instances, f.Slot, f.Reason, when("since", f.Since),
			when("until", f.Until))
		for _, line := range f.Details {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	return b.String()
}

func when(word string, at terms.Time) string {
	if at == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s %v)", word, time.Duration(at-dawn)*time.Millisecond)
}
