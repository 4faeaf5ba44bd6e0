package explanation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"starling/jobspec"
	"starling/schedule/entitle"
	"starling/terms"
	"starling/terms/pool"
)

// TestSentences tells stories about the cores of a cluster with so many of them, divided among the pools of a file.
// Each line after it says what a pool's jobs hold and ask for.
func TestSentences(t *testing.T) {
	datadriven.RunTest(t, "testdata/sentences", func(t *testing.T, d *datadriven.TestData) string {
		file, work, _ := strings.Cut(d.Input, "\n---\n")
		tree, err := jobspec.ParsePools("pools.yaml", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		in := &entitle.Input{}
		d.ScanArgs(t, "cores", &in.Capacity[terms.CPU])
		in.Capacity[terms.CPU] *= 1000
		for i, parent := range tree.Parents() {
			in.Pools = append(in.Pools, entitle.Pool{Parent: parent, Spec: &tree[i]})
		}
		for line := range strings.Lines(work) {
			told(t, in, tree, strings.Fields(line))
		}
		b, out := New(in), &strings.Builder{}
		for i := range tree {
			u := b.Use(i, terms.CPU)
			fmt.Fprintf(out, "%s: entitled to %s, borrows %s, lends %s\n", tree[i].Path, terms.CPU.Round(u.Entitled),
				terms.CPU.Round(u.Borrowed), terms.CPU.Round(u.Lent))
			for _, line := range b.Sentences(i, terms.CPU) {
				fmt.Fprintf(out, "  %s\n", line)
			}
			if in.Pools[i].Demand.Slack[terms.Memory] > 0 {
				fmt.Fprintf(out, "  memory: %s\n", strings.Join(b.Sentences(i, terms.Memory), "; "))
			}
		}
		return out.String()
	})
}

func told(t *testing.T, in *entitle.Input, tree pool.Tree, words []string) {
	at, found := tree.Find(terms.PoolPath(words[0]))
	if !found {
		t.Fatalf("no pool %s", words[0])
	}
	p := &in.Pools[at]
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		cores, err := jobspec.ParseCPU(value)
		if err != nil {
			t.Fatal(err)
		}
		switch name {
		case "holds":
			p.Allocated.NonSlack[terms.CPU] = cores
		case "asks":
			p.Demand.NonSlack[terms.CPU] = cores
		case "revocable":
			p.Demand.Slack[terms.CPU] = cores
			in.Slack[terms.CPU] = 2 * cores
		case "revocable-memory": // bytes, written like thousandths of a core
			p.Demand.Slack[terms.Memory] = cores
			in.Capacity[terms.Memory] = 4 * cores
		case "non-preemptible":
			p.Demand.NonPreemptible[terms.CPU] = cores
		default:
			t.Fatalf("no word %s", name)
		}
	}
}
