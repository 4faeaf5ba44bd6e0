package cluster

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"starling/cluster/division"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/sim/imprint"
	"starling/terms"
	"starling/terms/constraint"
)

// writers are the methods of State that may change it, by what their names begin with. All others read.
var writers = strings.Fields("Add Assign Copy Depart Divide End Ensure Expire FinishIfDone Forget Freeze " +
	"MarkPlacementDirty Move RaiseRules Remember Remove Set Stop Take Tighten TraceJobs Visit WakeTimedOut Wrote Restore")

// rich is a value under random changes that has labels, spreads, divisions, gangs, devices and ports besides.
func rich(seed uint64) *State {
	b := &books{rng: rand.New(rand.NewPCG(seed, 9)), s: NewState()}
	for range 150 {
		b.change()
	}
	spec := &terms.Job{Name: "rich", Type: terms.Stateless, MinAvailable: 3, Tasks: []terms.Task{
		{Name: "main", Instances: 9, Resources: terms.Resources{100, 1, 0}, SpreadOver: "zone", PerNodeMax: 2,
			Labels: []terms.EnvVar{{Name: "app", Value: "rich"}}, Devices: []terms.DeviceRequest{{Kind: "gpu", Amount: 250}}},
		{Name: "side", Instances: 2, Devices: []terms.DeviceRequest{{Kind: "gpu", Amount: 500}},
			Constraints: []constraint.Constraint{
				{Label: "app", Values: []string{"rich"}, Operator: constraint.Greater, Count: 7, Within: "zone", Soft: true,
					SoftTimeoutMillis: 9}}},
	}}
	j := b.s.AddJob(spec)
	b.s.Divide(facts.KeyOf(j.ID, 0), &spec.Tasks[0])
	for n := range facts.NodeIndex(b.s.Nodes()) {
		if free := b.s.Free(n); b.s.Eligible(n) && spec.Tasks[0].Resources.Fits(&free) &&
			b.s.Node(n).DeviceTimes(&spec.Tasks[0].Devices[0], 1) > 0 && b.s.Job(j.ID).Tasks[0].Waits() > 0 {
			b.s.Assign(facts.KeyOf(j.ID, 0), n, 1, nil)
		}
	}
	b.s.SetBlocked(facts.KeyOf(j.ID, 1), true)
	b.s.EnsureDivision("zone")
	b.s.Divide(facts.KeyOf(j.ID, 0), &spec.Tasks[0])
	return b.s
}

// arguments returns what a method that reads may be asked, for every job, task and node of a value.
func arguments(t *testing.T, s *State, method reflect.Method) (asked [][]reflect.Value) {
	s.EachJob(func(j *workload.Job) bool {
		for task := range j.Tasks {
			for n := range facts.NodeIndex(s.Nodes()) {
				if s.Node(n).Offer == nil {
					continue
				}
				var args []reflect.Value
				for i := 1; i < method.Type.NumIn(); i++ {
					args = append(args, argument(t, s, method.Type.In(i), facts.SlotRef{Job: j.ID, Task: uint16(task)}, n))
				}
				asked = append(asked, args)
				if len(args) == 0 {
					return false
				}
			}
		}
		return true
	})
	return asked
}

// argument returns one argument that fits the type, about a slot or a node.
func argument(t *testing.T, s *State, want reflect.Type, r facts.SlotRef, n facts.NodeIndex) reflect.Value {
	if want.Kind() == reflect.Func {
		return reflect.MakeFunc(want, func([]reflect.Value) (all []reflect.Value) {
			for i := range want.NumOut() {
				all = append(all, reflect.ValueOf(n%2 == 0).Convert(want.Out(i)))
			}
			return all
		})
	}
	j, page := s.Job(r.Job), int(n)%s.RoomPages()
	known := []any{
		&j.Spec.Tasks[int(r.Task)%len(j.Spec.Tasks)],
		j, j.Spec, s.Node(n).Offer, r, j.ID, j.Name(), s.NameOf(r), facts.KeyOf(j.ID, int(r.Task)), n, s.Node(n),
		s.Node(n).Name, terms.NewPeerID(s.Node(n).Name, 1),
		division.Page{Page: page, Nodes: ^uint64(0)}, terms.DeviceWork, &terms.Resources{int64(n) * 300, 1, 0},
		terms.DefaultPool, s.QueueStart(0), s.Index,
		&constraint.Constraint{Label: "app", Values: []string{"rich"}, Within: "zone", Soft: true},
		[]string{"zone", "kernel"}[n%2], true, uint64(n), j.Pool, s,
	}
	if want.Kind() == reflect.Int { // a page, a rank, a number of a task or of a pool: 0 is each of them
		return reflect.Zero(want)
	}
	for _, one := range known {
		if reflect.TypeOf(one) == want {
			return reflect.ValueOf(one)
		}
	}
	t.Fatalf("argument does not know a %s: add one", want)
	return reflect.Value{}
}

// TestReadingWritesNothing asks a value all that it can be asked, and finds it as it was down to the last byte.
func TestReadingWritesNothing(t *testing.T) {
	for seed := range uint64(3) {
		s := rich(seed)
		before := imprint.Of(s)
		for i := range reflect.TypeOf(s).NumMethod() {
			method := reflect.TypeOf(s).Method(i)
			if slices.ContainsFunc(writers, func(w string) bool { return strings.HasPrefix(method.Name, w) }) {
				continue
			}
			for _, args := range arguments(t, s, method) {
				method.Func.Call(append([]reflect.Value{reflect.ValueOf(s)}, args...))
			}
			if after := imprint.Of(s); after != before {
				t.Errorf("seed %d: %s has changed the value", seed, method.Name)
				before = after
			}
		}
	}
}

// TestManyCopyAFrozenValue lets goroutines take copies of one value and change them while the one that it was frozen
// from changes, too.
func TestManyCopyAFrozenValue(t *testing.T) {
	b := &books{rng: rand.New(rand.NewPCG(1, 1)), s: rich(1)}
	frozen := b.s.Freeze()
	before, told := imprint.Of(frozen.s), dump(frozen.Copy())
	if now := imprint.Of(frozen.s); now != before {
		t.Fatal("a copy has changed the value")
	}
	var group sync.WaitGroup
	for reader := range uint64(4) {
		group.Go(func() {
			for turn := range uint64(5) {
				own := &books{rng: rand.New(rand.NewPCG(reader, turn)), s: frozen.Copy()}
				for range 10 {
					own.change()
				}
				for page := range own.s.RoomPages() {
					own.s.Tighten(page, terms.DeviceWork)
				}
				own.s.EnsureDivision(fmt.Sprint("attribute", turn))
				if found := own.s.Audit(); len(found) > 0 {
					t.Errorf("the books of a copy: %q", found)
				}
			}
		})
	}
	for range 50 {
		b.change()
	}
	group.Wait()
	if imprint.Of(frozen.s) != before || dump(frozen.Copy()) != told {
		t.Error("the value has changed after it was frozen")
	}
}
