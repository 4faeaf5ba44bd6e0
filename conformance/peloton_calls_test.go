package conformance

import (
	"fmt"
	"slices"
	"strings"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/jobspec"
	"starling/schedule/entitle"
	"starling/terms"
	"starling/terms/pool"
)

// noCall says why a call of a case is not made.
var noCall = &difference{name: "no call", column: true, reason: "nothing is taken out of a queue by a call, " +
	"with a limit or without: admission is part of every entry"}

// callsCase lists calls that must fail.
type callsCase struct {
	told  `yaml:",inline"`
	Cases []struct{ Call, Result string }
}

func (c *callsCase) run(t *trial, differences tally) {
	made := 0
	for _, one := range c.Cases {
		refused := false
		switch one.Call {
		case "enqueue on inner pool":
			refused = refusesInner(t, []terms.Pool{terms.NewPool("outer"), terms.NewPool("outer/inner")}, "outer")
		case "enqueue nil gang":
			w := newStage(t, room())
			spec := service(1, "run", terms.UpdatePolicy{})
			spec.Tasks = nil
			refused = w.write(user, &command.SubmitJob{Spec: *spec}).Code == facts.Invalid
		case "dequeue on inner pool", "dequeue limit 0":
			differences.state(t, noCall)
			continue
		default:
			t.Fatalf("no rule for the call %q", one.Call)
		}
		made++
		if refused != (one.Result == "error") {
			t.Errorf("%s: refused is %v, want %s", one.Call, refused, one.Result)
		}
	}
	if made == 0 {
		t.Error("the case has no call that could be made")
	}
}

// refusesInner tells whether the fold refuses a job in one of some pools.
func refusesInner(t *trial, pools []terms.Pool, path terms.PoolPath) bool {
	w := newStage(t, room())
	w.must(&command.ChangePools{Pools: pools})
	spec := service(1, "run", terms.UpdatePolicy{})
	spec.Name = terms.NewJobName(path, "job")
	return w.write(user, &command.SubmitJob{Spec: *spec}).Code == facts.Invalid
}

// checkOrder submits what a case submits to the fold while no node is there, lets one with room for a single gang come,
// and wants each to be admitted when those before it have ended.
func (c *admissionCase) checkOrder(t *trial) {
	w := newStage(t)
	for _, s := range c.Submitted {
		if s.Gangs != 1 || s.Size != nil || s.Revocable || s.Controller || s.Preemptible != nil {
			t.Fatal("an order is told of single tasks of one class only")
		}
		tasks := []terms.Task{stageTask("main", 1)}
		w.submit(&terms.Job{Name: terms.JobName(s.Name), Type: terms.Batch, Priority: s.Priority, Tasks: tasks})
	}
	node := w.s.EnsureNode("n0")
	w.s.SetPeer(node.Index, "n0~1")
	w.s.SetWatched("n0~1", user)
	w.s.SetWatched(user, "n0~1")
	w.s.Wrote(node.Index, 1, 1)
	w.seqs["n0~1"] = 1
	w.s.SetOffer(node.Index, &terms.Offer{Capacity: stageTask("main", 1).Resources, Rules: 1})
	w.later(1000)
	var order []string
	for range c.Submitted {
		for _, s := range c.Submitted {
			j := w.s.JobOf(terms.JobName(s.Name))
			if slot := j.Tasks[0].Slots.At(0); slot.Phase == facts.Assigned {
				order = append(order, s.Name)
				w.report(facts.SlotRef{Job: j.ID}, command.Report{Ended: facts.ByItself})
				break
			}
		}
	}
	if !slices.Equal(order, c.Expect.Order) {
		t.Errorf("admitted in the order %v, want %v", order, c.Expect.Order)
	}
}

// capacityCase tells what the root has, step by step, whatever it had before.
type capacityCase struct {
	told   `yaml:",inline"`
	Before map[string]quantities
	Steps  []struct {
		Capacity quantities
		Expect   quantities `yaml:"expect_root_reservation_and_limit"`
	}
}

// run lets the only node of a value offer one capacity after the other, and compares what pools divide.
func (c *capacityCase) run(t *trial) {
	s := cluster.NewState()
	node := s.EnsureNode("n").Index
	offer := func(amounts quantities) {
		a, err := amounts.amounts()
		if err != nil {
			t.Fatal(err)
		}
		o := &terms.Offer{}
		copy(o.Capacity[:], a[:])
		if devices := a[terms.GPU] / perUnit; devices > 0 {
			o.Devices = []terms.DeviceOffer{{Kind: terms.GPU.String(), Count: uint32(devices)}}
		}
		s.SetOffer(node, o)
	}
	for i, step := range c.Steps {
		if i == 0 {
			offer(c.Before["root"])
		}
		offer(step.Capacity)
		got := quantities{}
		for k, amount := range entitle.Of(s).Capacity {
			unit := int64(perUnit)
			if terms.Kind(k) == terms.GPU {
				unit = 1000 // devices are counted in thousandths
			}
			got[terms.Kind(k).String()] = quantity(amount) / quantity(unit)
		}
		want := map[string]quantities{"root": step.Expect}
		for _, line := range different("capacity", map[string]quantities{"root": got}, want, 0) {
			t.Error(line)
		}
	}
	if len(c.Steps) == 0 {
		t.Error("the case has no steps")
	}
}

// checkPaths looks for pools by their paths.
func (c *poolCase) checkPaths(t *trial) {
	tree := pool.Tree(cluster.NewState().Pools())
	for _, path := range c.Tree {
		above := ""
		for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
			above = strings.TrimPrefix(above+"/"+part, "/")
			if _, there := tree.Find(terms.PoolPath(above)); !there {
				tree = tree.Change([]terms.Pool{terms.NewPool(terms.PoolPath(above))}, nil)
			}
		}
	}
	for _, one := range c.Cases {
		got := "not found"
		if _, there := tree.Find(terms.PoolPath(strings.TrimPrefix(one.Path, "/"))); there {
			got = "found"
		}
		if got != one.Result {
			t.Errorf("%s is %s, want %s", one.Path, got, one.Result)
		}
	}
}

// fileProblem writes a pool that states some kinds as a pools file, and returns why that is refused.
func fileProblem(kinds []string) string {
	text := "pools:\n  - path: new\n"
	for _, kind := range kinds {
		text += fmt.Sprintf("    %s: {limit: 1}\n", kind)
	}
	if _, err := jobspec.ParsePools("pools.yaml", []byte(text)); err != nil {
		return err.Error()
	}
	return ""
}

// newestWins says what becomes of an order that comes while another is obeyed.
var newestWins = &difference{name: "the newest wins", reason: "a restart is an update to a version with the same " +
	"spec: it takes the place of an update that runs, and the other way round, as one update does of another"}

// overwriteCase tells what becomes of an update while another order comes.
type overwriteCase struct {
	told  `yaml:",inline"`
	Kind  string
	Cases []struct{ Active, New, Expect string }
}

func (c *overwriteCase) check(t *trial, differences tally) {
	for _, one := range c.Cases {
		w := newStage(t, room())
		w.submit(service(4, "old", terms.UpdatePolicy{BatchSize: 1}))
		w.play(always(passes))
		active := uint32(0)
		switch one.Active {
		case "none":
		case "UPDATE", "UPDATE identical spec":
			w.submit(service(4, "new", terms.UpdatePolicy{BatchSize: 1}))
			active = w.job().Version
		case "RESTART":
			w.must(&command.RestartJob{Job: stageJob, Against: w.job().Version})
			active = w.job().Version
		default:
			t.Fatalf("no rule for the active %q", one.Active)
		}
		before := w.job().Version
		refusal := facts.Refusal{}
		if one.New == "RESTART" {
			refusal = w.write(user, &command.RestartJob{Job: stageJob, Against: before})
		} else {
			program := "newer"
			if one.Active == "UPDATE identical spec" {
				program = "new"
			}
			spec := service(4, program, terms.UpdatePolicy{BatchSize: 1})
			refusal = w.write(user, &command.SubmitJob{Spec: *spec, Against: before})
		}
		got := overwritten(w, active, before, refusal)
		switch want, _, _ := strings.Cut(one.Expect, ", opaque"); {
		case got == want || strings.HasSuffix(want, got) && active == 0:
		case want == "INVALID_ARGUMENT" && one.Active != one.New && got == "old ABORTED, new starts":
			differences.state(t, newestWins)
		default:
			t.Errorf("%s while %s: got %s, want %s", one.New, one.Active, got, one.Expect)
		}
	}
}

// overwritten tells in words what became of the active update, if there was one, after another order.
func overwritten(w *stage, active, before uint32, refusal facts.Refusal) string {
	j := w.job()
	old := facts.NoUpdate
	for _, v := range j.Versions {
		if v.Number == active {
			old = v.Outcome
		}
	}
	switch {
	case refusal.Code != facts.OK:
		return "refused: " + refusal.Reason
	case j.Version == before:
		return "no-op"
	case !j.Update.State.Rolls() || j.Update.To != j.Version:
		return "nothing starts"
	case active == 0:
		return "starts"
	}
	return fmt.Sprintf("old %s, new starts", old)
}
