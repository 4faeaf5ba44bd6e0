package entitle

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"starling/terms"
	"starling/terms/pool"
)

// TestStories plays the stories below testdata. They are told in one kind, memory, and in cpu where slack is beyond
// the entitlement:
//
//	divide 100 slack=20
//	rp1 20/100/1 asks=80 holds=10         a pool with its reservation, limit and share, and what its jobs want
//	rp1/a 20/-/1 static slack-limit=20    - is no limit
//	rp1/b 5/-/1 controller-limit=10 asks=5 slack-asks=3 slack-holds=1 non-preemptible=3 controllers=2
//
// The last two words say how much of what is asked for is non-preemptible, or by controllers. Each pool is shown with
// how its entitlement came about.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			in, tree := &Input{}, pool.Tree{}
			k := terms.Memory
			in.Capacity[k] = number(t, d.CmdArgs[0].Key)
			if len(d.CmdArgs) > 1 {
				k = terms.CPU
				in.Capacity[k], in.Slack[k] = number(t, d.CmdArgs[0].Key), number(t, d.CmdArgs[1].Vals[0])
			}
			for line := range strings.Lines(d.Input) {
				p := told(t, strings.Fields(line), k)
				tree = append(tree, *p.Spec)
				in.Pools = append(in.Pools, p)
			}
			for i, parent := range tree.Parents() {
				in.Pools[i].Parent = parent
			}
			out := &strings.Builder{}
			for i, trace := range Traces(in) {
				fmt.Fprintf(out, "%s: %d asked, %d claimed = %d reserved + %d shared + %d left over = %d", tree[i].Path,
					trace.Asked[k], trace.Claim[k], trace.Reserved[k], trace.Shared[k], trace.Left[k], trace.Total[k])
				if trace.Slack[k] > 0 {
					fmt.Fprintf(out, ", slack %d", trace.Slack[k])
				}
				if trace.Short[k] > 0 {
					fmt.Fprintf(out, ", reservation short of %d", trace.Short[k])
				}
				if trace.Cut[k] != NotCut {
					fmt.Fprintf(out, " (%s)", trace.Cut[k])
				}
				fmt.Fprintln(out)
			}
			return out.String()
		})
	})
}

func number(t *testing.T, text string) int64 {
	if text == "-" {
		return terms.Unlimited
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// told returns the pool that a line of a story tells of.
func told(t *testing.T, words []string, k terms.Kind) Pool {
	spec := terms.NewPool(terms.PoolPath(words[0]))
	p := Pool{Spec: &spec}
	quota := strings.Split(words[1], "/")
	spec.Quotas[k] = terms.Quota{Reservation: number(t, quota[0]), Limit: number(t, quota[1]), Share: number(t, quota[2])}
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		if name == "static" {
			spec.Quotas[k].Static = true
			continue
		}
		n := number(t, value)
		switch name {
		case "asks":
			p.Demand.NonSlack[k] = n
		case "holds":
			p.Allocated.NonSlack[k] = n
		case "slack-asks":
			p.Demand.Slack[k] = n
		case "slack-holds":
			p.Allocated.Slack[k] = n
		case "non-preemptible":
			p.Demand.NonPreemptible[k] = n
		case "controllers":
			p.Demand.Controller[k] = n
		case "slack-limit":
			spec.SlackLimit = terms.Percent(n)
		case "controller-limit":
			spec.ControllerLimit = terms.Percent(n)
		default:
			t.Fatalf("no word %s", word)
		}
	}
	return p
}
