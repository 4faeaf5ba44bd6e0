package jobspec

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"starling/examples"
	"starling/terms"
	"starling/terms/pool"
)

// TestPoolsFiles reads pools files and writes them again, or tells what is wrong with them.
func TestPoolsFiles(t *testing.T) {
	datadriven.RunTest(t, "testdata/pools", func(t *testing.T, d *datadriven.TestData) string {
		tree, err := ParsePools("pools.yaml", []byte(d.Input))
		if err != nil {
			checkErrors(t, err)
			return err.Error() + "\n"
		}
		return string(FormatPools(tree))
	})
}

func TestPoolsExample(t *testing.T) {
	tree, err := ParsePools("pools.yaml", examples.Pools().Data)
	if err != nil || len(tree) != 4 {
		t.Errorf("got %v, %v", tree, err)
	}
}

// TestPoolsRoundTrip reads random trees from what was written of them.
func TestPoolsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := treeDrawn(t)
		data := FormatPools(tree)
		got, err := ParsePools("pools.yaml", data)
		if err != nil || !slices.EqualFunc(got, tree, samePool) {
			t.Fatalf("got %+v, %v, want %+v from:\n%s", got, err, tree, data)
		}
	})
}

func treeDrawn(t *rapid.T) pool.Tree {
	specs := []terms.Pool{terms.NewPool(terms.DefaultPool)}
	for _, name := range rapid.SliceOfNDistinct(namesDrawn(), 0, 3, rapid.ID).Draw(t, "names") {
		if name == "root" || name == string(terms.DefaultPool) {
			continue
		}
		parent := poolDrawn(t, terms.PoolPath(name), terms.BytesMax/4)
		specs = append(specs, parent)
		if rapid.Bool().Draw(t, "below") {
			child := poolDrawn(t, terms.PoolPath(name+"/"+name), 1)
			for k := range child.Quotas {
				child.Quotas[k].Reservation = min(child.Quotas[k].Reservation, parent.Quotas[k].Reservation)
				child.Quotas[k].Limit = min(child.Quotas[k].Limit, parent.Quotas[k].Limit)
			}
			specs = append(specs, child)
		}
	}
	tree := pool.New(specs)
	if problems := tree.Problems(nil); len(problems) > 0 {
		t.Fatalf("the drawn tree has problems: %v", problems)
	}
	return tree
}

func poolDrawn(t *rapid.T, path terms.PoolPath, most int64) terms.Pool {
	s := terms.NewPool(path)
	for k := range s.Quotas {
		if rapid.Bool().Draw(t, "usual") {
			continue
		}
		q := &s.Quotas[k]
		q.Reservation = rapid.Int64Range(0, most).Draw(t, "reservation")
		if rapid.Bool().Draw(t, "limited") {
			q.Limit = rapid.Int64Range(q.Reservation, terms.BytesMax).Draw(t, "limit")
		}
		q.Share, q.Static = rapid.Int64Range(0, pool.ShareMax).Draw(t, "share"), rapid.Bool().Draw(t, "static")
	}
	s.ControllerLimit = terms.Percent(rapid.SampledFrom([]int{0, 40, 100, int(terms.NoPercent)}).Draw(t, "controllers"))
	s.SlackLimit = terms.Percent(rapid.IntRange(0, 100).Draw(t, "slack"))
	s.JobScheduler = rapid.SampledFrom([]terms.JobScheduler{terms.JobPriority, terms.JobRoundRobin}).Draw(t,
		"job_scheduler")
	s.PreemptionDelayMillis = rapid.Uint32Range(0, terms.DelayMillisMax).Draw(t, "timeout")
	owner := texts().Filter(func(s string) bool { return s != "" && len(s) <= pool.OwnerBytesMax })
	s.Owners = rapid.SliceOfN(owner, 0, 3).Draw(t, "owners")
	return s
}

func samePool(a, b terms.Pool) bool {
	same := slices.Equal(a.Owners, b.Owners)
	a.Owners, b.Owners = nil, nil
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return same && err1 == nil && err2 == nil && string(x) == string(y)
}

func TestDiffPools(t *testing.T) {
	from := terms.NewPool("a")
	to := from
	to.Quotas[terms.CPU] = terms.Quota{Reservation: 1500, Limit: 4000, Share: 1}
	to.Owners = []string{"maps"}
	got := ""
	for _, c := range DiffPools(&from, &to) {
		got += c.Path + " " + c.Old + " to " + c.New + "; "
	}
	if want := "cpu.reservation 0 to 1500m; cpu.limit unlimited to 4; owners  to [maps]; "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzPools wants that ParsePools never panics, and that what it returns keeps to the rules and is read back.
func FuzzPools(f *testing.F) {
	f.Add(examples.Pools().Data)
	f.Add([]byte("pools: [{path: a, cpu: {limit: unlimited, reservation: 0.5}, gpu: {share: 0, static: true}}, {path: a/b}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := ParsePools("pools.yaml", data)
		if err != nil {
			checkErrors(t, err)
			return
		}
		if _, found := tree.Find(terms.DefaultPool); found {
			if problems := tree.Problems(nil); len(problems) > 0 {
				t.Fatalf("got problems %v", problems)
			}
		}
		again, err := ParsePools("again.yaml", FormatPools(tree))
		if err != nil || !slices.EqualFunc(again, tree, samePool) {
			t.Fatalf("got %+v, %v, want %+v", again, err, tree)
		}
	})
}

func TestPoolsSchema(t *testing.T) {
	schema := compiledOf(t, PoolsSchema())
	for _, c := range []struct {
		data string
		want bool
	}{
		{string(examples.Pools().Data), true},
		{"pools: [{path: a, cpu: {limit: unlimited, reservation: 500m}, controller_limit: 5}]", true},
		{"pools: [{path: a, memory: {limit: 5}}]", false}, {"pools: [{cpu: {}}]", false}, {"pools: [{path: a/}]", false},
		{"{}", false},
		{"pools: [{path: a, slack_limit: 101}]", false}, {"pools: [{path: " + strings.Repeat("a/", 8) + "a}]", false},
	} {
		if accepted, ok := judged(schema, []byte(c.data)); accepted != c.want || !ok {
			t.Errorf("%s: got %v, want %v", c.data, accepted, c.want)
		}
	}
}
