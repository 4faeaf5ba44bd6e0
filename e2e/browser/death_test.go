package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"starling/e2e/agents"
)

// TestDeath crashes a machine before the page's eyes, moves back to when it was there, and ends the peer that the page
// asks: the page goes on with another.
func TestDeath(t *testing.T) {
	b := open(t)
	folder := t.TempDir()
	flock, soon, must := newFlock(t, folder, "a", "b", "c", "d")
	for i, a := range flock.Agents {
		a.Flags = []string{"--attributes", fmt.Sprintf("rack=r%d,power=<b>%d</b>", i/2+1, i), "--devices", "fpga=2:U250"}
	}
	must(flock.Start(soon))
	var all []string
	for _, a := range flock.Agents {
		all = append(all, a.Address)
	}
	address := strings.Join(all, ",")
	spread := strings.Replace(work, "instances: 6", "instances: 8\n    placement: spread", 1)
	ask(t, address, spread, "run", "--detach", "-")
	ask(t, address, flashed, "run", "--detach", "-")
	link := starling(t, `(http://\S+)`, address, "ui", "--print")[1]
	b.do(chromedp.Navigate(link))
	b.see(`4 machines`)
	b.see(`11 instances running`)
	b.see(`quorum of 3`)
	b.seeRacks()
	before := b.index()

	must(flock.Agents[3].Crash(soon))
	b.see(`3 machines`)
	b.see(`11 instances running`) // those of the dead machine run elsewhere
	b.see(`^rack r2 1 machine, `)
	b.shoot("death")
	b.slide(before)
	b.see(fmt.Sprintf("as of index %d", before))
	b.see(`4 machines`)
	b.see(`^rack r2 2 machines, `)
	b.shoot("before-death")
	b.press("Back to live")
	b.see(`3 machines`)

	must(flock.Agents[0].Terminate(soon))
	ask(t, strings.Join(all[1:3], ","), strings.ReplaceAll(spread, "job: web", "job: later"), "run", "--detach", "-")
	b.see(`later`)
	b.see(`live`)
	must(flock.Agents[0].Start())
	must(flock.Agents[0].Ready(soon))
}

// flashed is work on the devices of one machine.
const flashed = `
job: flash
type: stateless
tasks:
  - name: half
    instances: 2
    command: sleep 6000
    resources: {cpu: 10m, memory: 10Mi}
    devices: {fpga: 0.5}
    constraints: [{attribute: node, operator: "=", value: b}]
  - name: whole
    command: sleep 6000
    resources: {cpu: 10m, memory: 10Mi}
    devices: {fpga: 1}
    constraints: [{attribute: node, operator: "=", value: b}]
`

// seeRacks looks at four machines by their racks and by another attribute, at what they have, and at the ring.
func (b *tab) seeRacks() {
	b.Helper()
	b.see(`^rack r1 2 machines, cpu `)
	b.see(`^rack r2 2 machines, cpu `)
	b.see(`fpga\s+2 U250`)
	held := []string{"fpga 0: flash.half[0] 50 %, flash.half[1] 50 %", "fpga 1: flash.whole[0]"}
	b.wait(fmt.Sprintf(`[...document.querySelectorAll('.cells')].some((e) => [...e.children].map((c) => c.title).join('; ') === %q)`,
		strings.Join(held, "; ")))
	if leads := evaluate[string](b, `decodeURIComponent(document.querySelectorAll('.cells a')[1].hash)`); leads !=
		"#/job/flash?instance=whole[0]" {
		b.Errorf("a device leads to %q", leads)
	}
	if got := evaluate[[]string](b, `[...document.querySelectorAll('.ring li')].map((li) => li.firstChild.data)`); len(
		got) != 4 || slices.Compare(slices.Sorted(slices.Values(got)), []string{"a", "b", "c", "d"}) != 0 {
		b.Errorf("the ring has %q", got)
	}
	if got := evaluate[int](b, `document.querySelectorAll('.ring b').length`); got != 3 {
		b.Errorf("%d of the ring keep the journal", got)
	}
	b.shoot("racks")
	b.choose("Group by", "power")
	b.see(`^power <b>0</b> 1 machine, `)
	b.choose("Group by", "nothing")
	b.unsee(`^power <b>`)
	b.choose("Group by", "rack")
}

// newFlock makes agents, which are not started; must ends the test with an error.
func newFlock(t *testing.T, folder string, nodes ...string) (flock *agents.Flock, soon context.Context,
	must func(error)) {
	t.Helper()
	must = func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	program, err := binary()
	must(err)
	flock, err = agents.New(agents.Config{Binary: program, Folder: folder, Nodes: nodes, PulseTTL: 3 * time.Second})
	must(err)
	soon, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	t.Cleanup(func() {
		if err := flock.Stop(context.WithoutCancel(soon)); err != nil {
			t.Error(err)
		}
	})
	return flock, soon, must
}
