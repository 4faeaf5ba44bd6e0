package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"starling/reconcile"
	"starling/terms"
)

// unit runs a file of the folder unit: what it holds tells of which kind it is.
func unit(t *testing.T, data []byte) {
	var f struct {
		Cases []struct{ Expected map[string]yaml.Node }
		Rows  yaml.Node
		Best  yaml.Node `yaml:"best_score"`
		Next  yaml.Node
	}
	if err := yaml.Load(data, &f); err != nil {
		t.Fatal(err)
	}
	switch {
	case f.Rows.Kind != 0:
		occupation(t, data)
	case f.Best.Kind != 0:
		picks(t, data)
	case f.Next.Kind != 0:
		indexes(t, data)
	case len(f.Cases) > 0 && has(f.Cases[0].Expected, "kept"):
		retries(t, data)
	case len(f.Cases) > 0:
		classification(t, data)
	default:
		t.Fatal("it is not known what kind of table this is")
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

// classification runs a file of classes.
func classification(t *testing.T, data []byte) {
	var f struct {
		PeerTest string `yaml:"peer_test"`
		Summary  string
		Cases    []unitCase
	}
	if err := yaml.Load(data, &f, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	words := map[reconcile.Class]string{
		reconcile.Untouched: "untainted", reconcile.Ignored: "ignore", reconcile.Reconnecting: "reconnecting",
		reconcile.Expiring: "expiring", reconcile.Lost: "lost", reconcile.Disconnecting: "disconnecting",
		reconcile.Migrating: "migrate",
	}
	for _, c := range f.Cases {
		got := map[string][]string{}
		for _, a := range c.Allocs {
			candidate, err := a.candidate(c.Nodes)
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			class := words[reconcile.Classify(&candidate, &candidate.Own.Disconnect, nomadNow)]
			got[class] = append(got[class], a.ID)
		}
		checkSets(t, c.Name, got, c.Expected)
	}
}

// checkSets compares named sets; one that is not told is empty.
func checkSets(t *testing.T, name string, got, want map[string][]string) {
	t.Helper()
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
		t.Errorf("%s: %s", name, line)
	}
}

// retries runs the file reschedulable.
func retries(t *testing.T, data []byte) {
	var f struct {
		PeerTest string `yaml:"peer_test"`
		Summary  string
		EvalID   string `yaml:"eval_id"`
		Cases    []unitCase
	}
	if err := yaml.Load(data, &f, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Cases {
		got := map[string][]string{}
		for _, a := range c.Allocs {
			candidate, err := a.candidate(c.Nodes)
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			if set := retrySet(&candidate, &c); set != "" {
				got[set] = append(got[set], a.ID)
			}
		}
		checkSets(t, c.Name, got, c.Expected)
	}
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
	task := reconcile.Task{Now: nomadNow, Batch: c.Batch}
	retry, _ := task.RetryOf(candidate, c.Disconnecting)
	return [...]string{reconcile.Never: "kept", reconcile.Later: "later", reconcile.Now: "now"}[retry]
}

// occupation runs the file occupies-slot.
func occupation(t *testing.T, data []byte) {
	var f struct {
		PeerTest  string `yaml:"peer_test"`
		PeerTest2 string `yaml:"peer_test_2"`
		Summary   string
		Columns   []string
		Rows      [][]yaml.Node
		Filter    []struct {
			Type, Desired string
			Kept          bool
		} `yaml:"rows_server_terminal_filter"`
	}
	if err := yaml.Load(data, &f, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	known := strings.Fields("case batch tasks_failed desired client last_reschedule untainted ignore")
	if !slices.Equal(f.Columns, known) {
		t.Fatalf("the columns are %v, want %v", f.Columns, known)
	}
	for _, row := range f.Rows {
		cell := func(column string) string { return row[slices.Index(f.Columns, column)].Value }
		is := func(column string) bool { return cell(column) == "true" }
		c := reconcile.Candidate{
			Desired: desires[cell("desired")], Client: clients[cell("client")], Succeeded: !is("tasks_failed"),
			Unplaced: cell("last_reschedule") != "",
		}
		want := reconcile.Retries
		if is("untainted") {
			want = reconcile.Occupies
		} else if is("ignore") {
			want = reconcile.Vacates
		}
		if got := reconcile.Occupation(&c, is("batch")); got != want {
			t.Errorf("%s: occupation %d, want %d", cell("case"), got, want)
		}
	}
	for _, row := range f.Filter {
		c := reconcile.Candidate{Desired: desires[row.Desired], Client: reconcile.CompleteClient}
		if got := reconcile.Considered(&c, row.Type == "batch"); got != row.Kept {
			t.Errorf("%s %s: considered %v, want %v", row.Type, row.Desired, got, row.Kept)
		}
	}
}

// indexes runs the file name-index. Slots need no book of names: what the peer's book answers must follow from slots.
func indexes(t *testing.T, data []byte) {
	var f struct {
		Summary string
		Size    []yaml.Node // of the peer's table
		Highest []struct {
			N       uint32
			Removed []uint32
		}
		NextCanaries []struct {
			N     uint32
			Names []uint32
		} `yaml:"next_canaries"`
		NextCanariesOrder []string `yaml:"next_canaries_order"`
		Next              []struct {
			Existing []uint32
			N        uint32
			Names    []uint32
			Note     string
		}
		Duplicates []struct {
			Size       int      // of the peer's table
			Indexes    []uint32 `yaml:"duplicate_indexes"`
			AfterUnset struct {
				Duplicates []uint32
				Used       bool `yaml:"index_0_still_used"`
			} `yaml:"after_unset_0"`
			Next []uint32 `yaml:"next_1"`
		}
	}
	if err := yaml.Load(data, &f, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Highest { // of the three
		out := reconcileIndexes(reconcile.Task{Count: 3 - min(3, c.N)}, 0, 1, 2)
		slices.Reverse(out.Stops)
		checkIndexes(t, fmt.Sprintf("highest %d", c.N), stopped(out), c.Removed)
	}
	for _, c := range f.NextCanaries { // beside three that are outdated
		task := reconcile.Task{Count: 3, Version: 1, Policy: &terms.UpdatePolicy{BatchSize: 1, Canaries: c.N}}
		checkIndexes(t, fmt.Sprintf("next canaries %d", c.N), placed(reconcileIndexes(task, 0, 1, 2)), c.Names)
	}
	for _, c := range f.Next {
		if len(c.Existing) > 0 {
			t.Logf("choice: no names beside %v, because a seat has one instance at most (%s)", c.Existing, c.Note)
			c.Names = nil
		}
		checkIndexes(t, "next", placed(reconcileIndexes(reconcile.Task{Count: c.N}, c.Existing...)), c.Names)
	}
	for _, c := range f.Duplicates { // 0, 0, 1 and 2 of four
		out := reconcileIndexes(reconcile.Task{Count: 4}, 0, 0, 1, 2)
		checkIndexes(t, "duplicates", stopped(out), c.Indexes)
		checkIndexes(t, "next to duplicates", placed(out), c.Next)
	}
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
			c.Change = reconcile.Destructive
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

func checkIndexes(t *testing.T, name string, got, want []uint32) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", name, got, want)
	}
}
