package conformance

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/reconcile"
	"starling/terms"
)

// unitTable is any file of the folder unit: what it holds tells of which kind it is.
type unitTable struct {
	PeerTest  string `yaml:"peer_test"`
	PeerTest2 string `yaml:"peer_test_2"`
	Summary   string
	EvalID    string `yaml:"eval_id"`
	// Cases are those of classes and retries.
	Cases []yaml.Node
	// Columns, Rows and Filter are of the file occupies-slot.
	Columns     []string
	Rows        [][]yaml.Node
	Filter      []yaml.Node `yaml:"rows_server_terminal_filter"`
	indexTables `yaml:",inline"`
	pickTables  `yaml:",inline"`
	Other       map[string]yaml.Node `yaml:",inline"`
}

// unit runs a file of the folder unit.
func unit(s *sheet) {
	f := &unitTable{}
	if err := yaml.Load(s.data, f, yaml.WithKnownFields()); err != nil {
		s.fail("read the file: %v", err)
		return
	}
	s.unknownKeys(f.Other)
	for i := range f.Cases {
		var head struct {
			Name     string
			Expected map[string]yaml.Node
		}
		_ = f.Cases[i].Load(&head) // read tells what is wrong
		s.run(head.Name, func(t *trial) {
			c := &unitCase{}
			if read(t, &f.Cases[i], c); has(head.Expected, "kept") {
				c.retries(t)
			} else {
				c.classes(t)
			}
		})
	}
	f.occupation(s)
	f.indexes(s)
	f.picks(s)
	if len(s.cases) == 0 {
		s.fail("the file has no cases")
	}
}

// eachRow runs each row of a table by itself.
func eachRow[R any](s *sheet, name string, nodes []yaml.Node, check func(t *trial, row *R)) {
	for i := range nodes {
		s.run(fmt.Sprintf("%s-%d", name, i+1), func(t *trial) {
			row := new(R)
			read(t, &nodes[i], row)
			check(t, row)
		})
	}
}

// unitCase is a case of the files classify-* and reschedulable.
type unitCase struct {
	Name          string
	Nodes         map[string]*nomadNode `yaml:"tainted_nodes"`
	Batch         bool
	Disconnecting bool
	Allocs        []unitAllocation
	Expected      map[string][]string
}

// unitAllocation is an allocation with the policy of its own job.
type unitAllocation struct {
	nomadAllocation `yaml:",inline"`
	Reschedule      *nomadReschedule
	// Policy is a disconnect policy, or a word that says why there is none.
	Policy yaml.Node
	// Job is null where the allocation has none, and so no policy.
	Job yaml.Node
}

func (a *unitAllocation) candidate(nodes map[string]*nomadNode) (reconcile.Candidate, error) {
	f := &reconcileFile{Input: reconcileInput{Nodes: nodes}}
	c, err := f.candidate(&a.nomadAllocation)
	if err != nil {
		return c, err
	}
	var policy *nomadDisconnect
	if a.Policy.Kind == yaml.MappingNode {
		policy = &nomadDisconnect{}
		if err := a.Policy.Load(policy, yaml.WithKnownFields()); err != nil {
			return c, err
		}
	}
	if c.Own = specOf(a.Reschedule, policy); a.Canary {
		c.CanaryOf = theUpdate
	}
	return c, nil
}

// classWords are the classes in the words of the files.
var classWords = map[reconcile.Class]string{
	reconcile.Untouched: "untainted", reconcile.Ignored: "ignore", reconcile.Reconnecting: "reconnecting",
	reconcile.Expiring: "expiring", reconcile.Lost: "lost", reconcile.Disconnecting: "disconnecting",
	reconcile.Migrating: "migrate",
}

// classes compares of which class each allocation is.
func (c *unitCase) classes(t *trial) {
	got := map[string][]string{}
	for _, a := range c.Allocs {
		candidate, err := a.candidate(c.Nodes)
		if err != nil {
			t.Fatal(err)
		}
		node := c.Nodes[a.Node]
		switch known := node != nil && has(nodeStates, node.Status); {
		case node != nil && (!known || node.Status == "down" && candidate.Own.Disconnect.Wait ||
			node.Status == "initializing" && a.Client == "pending"):
			t.leaveOut("state of a node")
		case a.Canary && a.Transition.Migrate && a.Client != "running":
			t.leaveOut("mark")
		}
		class := classWords[reconcile.Classify(&candidate, &candidate.Own.Disconnect, nomadNow)]
		got[class] = append(got[class], a.ID)
	}
	checkSets(t, got, c.Expected)
}

// checkSets compares named sets; one that is not told is empty.
func checkSets(t *trial, got, want map[string][]string) {
	d := &resultDiff{}
	for word := range want {
		d.sets(word, want[word], got[word])
	}
	for word := range got {
		if _, told := want[word]; !told {
			d.sets(word, nil, got[word])
		}
	}
	for _, line := range d.lines {
		t.Error(line)
	}
}

// retries compares what is tried again.
func (c *unitCase) retries(t *trial) {
	got := map[string][]string{}
	for _, a := range c.Allocs {
		if a.Transition.Reschedule {
			t.leaveOut("mark")
		}
		candidate, err := a.candidate(c.Nodes)
		if err != nil {
			t.Fatal(err)
		}
		if a.Next != "" {
			continue // what was replaced is in no slot any more
		}
		if set := retrySet(&candidate, c); set != "" {
			got[set] = append(got[set], a.ID)
		}
	}
	checkSets(t, got, c.Expected)
}

// retrySet returns where the file lists a candidate: kept, now or later, or nowhere.
func retrySet(candidate *reconcile.Candidate, c *unitCase) string {
	occupancy := reconcile.Occupation(candidate, c.Batch)
	switch {
	case occupancy == reconcile.Vacates, c.Disconnecting && candidate.Client == reconcile.UnknownClient:
		return "" // who is out of reach already does not go out of reach
	case occupancy == reconcile.Occupies && !c.Disconnecting:
		return "kept"
	}
	task := reconcile.Task{Now: nomadNow, Soon: reconcile.SoonMillis, Batch: c.Batch}
	retry, _ := task.RetryOf(candidate, c.Disconnecting)
	return [...]string{reconcile.Never: "kept", reconcile.Later: "later", reconcile.Now: "now"}[retry]
}

// occupation runs the file occupies-slot.
func (f *unitTable) occupation(s *sheet) {
	known := strings.Fields("case batch tasks_failed desired client last_reschedule untainted ignore")
	for i, row := range f.Rows {
		s.run(fmt.Sprintf("row-%d", i+1), func(t *trial) {
			if !slices.Equal(f.Columns, known) || len(row) != len(known) {
				t.Fatalf("the columns are %v, of which the row has %d, want %v", f.Columns, len(row), known)
			}
			cell := func(column string) string { return row[slices.Index(known, column)].Value }
			is := func(column string) bool { return cell(column) == "true" }
			if cell("last_reschedule") != "" {
				t.leaveOut("mark")
			}
			c := reconcile.Candidate{Told: cell("desired") != "run", Client: clients[cell("client")]}
			want := reconcile.Retries
			if is("untainted") {
				want = reconcile.Occupies
			} else if is("ignore") {
				want = reconcile.Vacates
			}
			if got := reconcile.Occupation(&c, is("batch")); got != want {
				t.Errorf("%s: occupation %d, want %d", cell("case"), got, want)
			}
		})
	}
	type filter struct {
		Type, Desired string
		Kept          bool
	}
	eachRow(s, "filter", f.Filter, func(t *trial, row *filter) {
		t.leaveOut("considered")
	})
}

// indexTables are the tables of the file name-index. Slots need no book of names: what the peer's book answers must
// follow from slots.
type indexTables struct {
	// Size is of the peer's table, and says nothing about slots.
	Size              []yaml.Node
	Highest           []yaml.Node
	NextCanaries      []yaml.Node `yaml:"next_canaries"`
	NextCanariesOrder []string    `yaml:"next_canaries_order"`
	Next              []yaml.Node
	Duplicates        []yaml.Node
}

type (
	highestRow struct {
		N       uint32
		Removed []uint32
	}
	canariesRow struct {
		N     uint32
		Names []uint32
	}
	nextRow struct {
		Existing []uint32
		N        uint32
		Names    []uint32
		Note     string
	}
	duplicatesRow struct {
		Size       int      // of the peer's table
		Indexes    []uint32 `yaml:"duplicate_indexes"`
		AfterUnset struct {
			Duplicates []uint32
			Used       bool `yaml:"index_0_still_used"`
		} `yaml:"after_unset_0"`
		Next []uint32 `yaml:"next_1"`
	}
)

func (f *indexTables) indexes(s *sheet) {
	eachRow(s, "size", f.Size, func(t *trial, _ *map[string]any) { t.leaveOut("table of names") })
	eachRow(s, "highest", f.Highest, func(t *trial, c *highestRow) { // of the three
		out := reconcileIndexes(reconcile.Task{Count: 3 - min(3, c.N)}, 0, 1, 2)
		slices.Reverse(out.Stops)
		checkIndexes(t, "highest", stopped(out), c.Removed)
	})
	eachRow(s, "canaries", f.NextCanaries, func(t *trial, c *canariesRow) { // beside three that are outdated
		task := reconcile.Task{Count: 3, Version: 1, Update: reconcile.Update{ID: 1, Canaries: c.N, Trying: true}}
		checkIndexes(t, "canaries", placed(reconcileIndexes(task, 0, 1, 2)), c.Names)
	})
	eachRow(s, "next", f.Next, func(t *trial, c *nextRow) {
		if len(c.Existing) > 0 {
			t.leaveOut("name beside names")
		}
		checkIndexes(t, "next", placed(reconcileIndexes(reconcile.Task{Count: c.N})), c.Names)
	})
	eachRow(s, "duplicates", f.Duplicates, func(t *trial, c *duplicatesRow) { // 0, 0, 1 and 2 of four
		out := reconcileIndexes(reconcile.Task{Count: 4}, 0, 0, 1, 2)
		checkIndexes(t, "stopped", stopped(out), c.Indexes)
		checkIndexes(t, "placed beside them", placed(out), c.Next)
	})
}

// reconcileIndexes decides about a task with instances at the given indexes, in ascending order; those of version 0 are
// outdated if the task has another.
func reconcileIndexes(t reconcile.Task, existing ...uint32) *reconcile.Result {
	t.Now, t.Spec = nomadNow, &terms.Task{}
	if t.Policy == nil {
		t.Policy = &terms.UpdatePolicy{}
	}
	slots := make([]reconcile.Slot, max(t.Count, slices.Max(append(existing, 0))+1))
	for i := range slots {
		slots[i].Index = uint32(i)
	}
	for i, index := range existing {
		c := reconcile.Candidate{Order: terms.Index(i + 1), Client: reconcile.RunningClient}
		if t.Version != 0 {
			c.Outdated = true
		}
		slots[index].Candidates = append(slots[index].Candidates, c)
	}
	out := &reconcile.Result{}
	reconcile.Reconcile(&t, slots, reconcile.Tally{}, out)
	return out
}

func placed(out *reconcile.Result) []uint32 {
	var indexes []uint32
	for _, p := range out.Placements {
		indexes = append(indexes, p.Index)
	}
	return indexes
}

func stopped(out *reconcile.Result) []uint32 {
	var indexes []uint32
	for _, s := range out.Stops {
		indexes = append(indexes, s.Index)
	}
	return indexes
}

func checkIndexes(t *trial, name string, got, want []uint32) {
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", name, got, want)
	}
}
