package admission

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"starling/terms"
)

// TestStories plays the stories below testdata, in two kinds, cpu/memory:
//
//	pool entitlement=100/100 reservation=60/60 slack=20/20 controllers=10/10 held=50/0 lasting=20/0
//	a 30/10 count=2                       gangs that wait, in their order
//	b 5/5 non-preemptible controller
//	c 5/5 revocable
//
// What is held and lasting is preemptible, unless it is told as np-held=, slack-held= and so on.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			p := &Pool{ControllerLimit: terms.Amounts{terms.Unlimited, terms.Unlimited}}
			for _, word := range d.CmdArgs {
				tellPool(t, p, word.Key, word.Vals[0])
			}
			a, out := New(p), &strings.Builder{}
			for line := range strings.Lines(d.Input) {
				words := strings.Fields(line)
				g := tellGang(t, words[1:])
				n := a.Room(&g)
				a.Take(&g, n)
				fmt.Fprintf(out, "%s: %d of %d admitted", words[0], n, g.Count)
				if n < g.Count {
					before := a.awaited
					a.Await(&g, none)
					fmt.Fprint(out, map[bool]string{true: ", awaited", false: ""}[a.awaited != before])
				}
				fmt.Fprintf(out, "; free %d/%d\n", a.free[entitled][0], a.free[entitled][1])
			}
			return out.String()
		})
	})
}

func amounts(t *testing.T, text string) (a terms.Amounts) {
	for k, part := range strings.Split(text, "/") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		a[k] = n
	}
	return a
}

func tellPool(t *testing.T, p *Pool, name, value string) {
	switch name {
	case "entitlement":
		p.Entitlement.NonSlack = amounts(t, value)
	case "slack":
		p.Entitlement.Slack = amounts(t, value)
	case "reservation":
		p.Firm = amounts(t, value)
	case "controllers":
		p.ControllerLimit = amounts(t, value)
	case "held":
		p.Allocated.NonSlack = amounts(t, value)
	case "np-held":
		p.Allocated.NonPreemptible = amounts(t, value)
	case "slack-held":
		p.Allocated.Slack = amounts(t, value)
	case "lasting":
		p.Lasting.NonSlack = amounts(t, value)
	default:
		t.Fatalf("no word %s", name)
	}
}

func tellGang(t *testing.T, words []string) Gang {
	g := Gang{Need: amounts(t, words[0]), Count: 1}
	for _, word := range words[1:] {
		if count, ok := strings.CutPrefix(word, "count="); ok {
			g.Count = uint32(amounts(t, count)[0])
			continue
		}
		switch word {
		case "revocable":
			g.Revocable = true
		case "non-preemptible":
			g.NonPreemptible = true
		case "controller":
			g.Controller = true
		default:
			t.Fatalf("no word %s", word)
		}
	}
	return g
}
