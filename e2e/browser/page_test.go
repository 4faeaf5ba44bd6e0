package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// work is a service, and a gang that no machine has room for, in pools of their own. What the service writes is markup
// and codes of terminals.
const work = `
job: web
type: stateless
tasks:
  - name: server
    instances: 6
    command: ["sh", "-c", "printf '<script>document.title=1</script>\\033[31mred\\033[0m\\n'; exec sleep 6000"]
    resources: {cpu: 10m, memory: 10Mi}
---
job: train
type: batch
tasks: [{name: worker, instances: 3, command: sleep 6000, resources: {cpu: 10m, memory: 900Gi}}]
`

// TestPage looks at each part of the page, in the present and in the past.
func TestPage(t *testing.T) {
	b := open(t)
	found := starling(t, `(?s)API at (\S+).*page: (\S+)`, "", "dev", "--peers", "3", "--address", "127.0.0.1:0")
	address, link := found[1], found[2]
	b.do(chromedp.Navigate(link))
	b.see(`^Cluster$`)
	b.see(`3 machines`)
	b.see(`nothing runs here`)
	b.shoot("cluster-empty")
	b.visit("/jobs")
	b.see(`There are no jobs`)
	ask(t, address, work, "run", "--detach", "-")
	b.see(`web\s+. running`) // it came by itself
	b.visit("/")
	b.see(`web\s+6`)
	b.see(`digests agree`)
	b.shoot("cluster")
	b.visit("/jobs?q=tra")
	b.see(`1 of 2 jobs`)
	b.visit("/jobs")
	b.see(`train`)
	b.shoot("jobs")
	b.visit("/why")
	b.see(`1 job waiting`)
	b.see(`worker, 3 instances`)
	b.shoot("why")
	b.visit("/pools")
	b.see(`default`)
	b.press("default")
	b.see(`Pool default`)
	b.shoot("pools")
	b.visit("/journal")
	b.see(`submit job web`)
	b.shoot("journal")
	b.visit("/job/web?instance=server%5B0%5D")
	b.see(`<script>document.title=1</script>\^\[\[31mred`)
	b.see(`succeeded`)
	b.shoot("job")
	if title := evaluate[string](b, `document.title`); title != "Starling" {
		t.Errorf("what an instance has written is run: the title is %q", title)
	}
}

// TestPast moves the page back over an update, to the beginning and to the present, and compares two moments.
func TestPast(t *testing.T) {
	b := open(t)
	found := starling(t, `(?s)API at (\S+).*page: (\S+)`, "", "dev", "--peers", "2", "--address", "127.0.0.1:0")
	address := found[1]
	ask(t, address, strings.ReplaceAll(work, "10Mi", "11Mi"), "run", "--detach", "-")
	b.do(chromedp.Navigate(found[2]))
	b.visit("/job/web")
	b.see(`succeeded`)
	before := b.index()
	ask(t, address, strings.ReplaceAll(work, "10Mi", "12Mi"), "run", "--detach", "-")
	b.see(`Update to version 2`)
	b.see(`^version 2`)
	b.shoot("update")
	b.slide(before)
	b.see(fmt.Sprintf("as of index %d, ", before))
	b.unsee(`Update to version 2`)
	b.see(`^version 1`)
	b.shoot("past")
	b.press("Compare from here")
	b.press("Back to live")
	b.see(`version 1 to 2|updated`)
	b.unsee(`as of index`)
	b.shoot("compare")
	b.visit("/jobs")
	b.see(`web`)
	b.slide(1)
	b.see(`There are no jobs at this moment`)
	b.press("One entry on")
	b.see(`as of index 2`)
	b.press("Play the past")
	b.see(`live index`) // it ends there
	b.see(`web`)
}

// TestManyTabs opens more tabs than a browser has connections to one server: those that cannot be seen take none, and
// go on when they can.
func TestManyTabs(t *testing.T) {
	first := open(t)
	found := starling(t, `(?s)API at (\S+).*page: (\S+)`, "", "dev", "--address", "127.0.0.1:0")
	first.do(chromedp.Navigate(found[2]))
	first.visit("/jobs")
	first.see(`live index`)
	link := evaluate[string](first, `location.href`)
	last := first
	for range 8 {
		last.hide(true)
		ctx, leave := chromedp.NewContext(first.ctx, chromedp.WithNewWindow(true))
		t.Cleanup(leave)
		last = &tab{TB: t, ctx: ctx}
		if err := chromedp.Do(ctx, chromedp.Navigate(link)); err != nil { // in a context that does not end with it
			t.Fatal(err)
		}
		last.see(`live index`)
	}
	ask(t, found[1], work, "run", "--detach", "-")
	last.see(`web`)
	if text := first.text(); strings.Contains(text, "web") {
		t.Errorf("a tab that cannot be seen reads on:\n%s", text)
	}
	last.hide(true)
	first.hide(false)
	first.see(`web`)
}

// hide lets the tab be behind others, or be seen again.
func (b *tab) hide(is bool) {
	b.Helper()
	evaluate[bool](b, fmt.Sprintf(`(() => {
		Object.defineProperty(document, 'hidden', {value: %t, configurable: true})
		return document.dispatchEvent(new Event('visibilitychange'))
	})()`, is))
}

// index is that of the newest entry, as the page tells it.
func (b *tab) index() int {
	b.Helper()
	return evaluate[int](b, `Number(document.querySelector('input[type=range]').max)`)
}
