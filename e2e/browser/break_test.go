package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// counts is work that writes a number ten times a second.
const counts = `
job: counts
type: stateless
tasks:
  - command: 'i=0; while true; do i=$((i+1)); echo "number $i."; sleep 0.1; done'
    resources: {cpu: 10m, memory: 10Mi}
`

// TestBreak ends the peer of the page while an instance writes, and starts it again; then it pauses that peer, and then
// has it tell nothing. The page says so, and goes on when the peer does.
func TestBreak(t *testing.T) {
	b := open(t)
	flock, soon, must := newFlock(t, t.TempDir(), "a")
	must(flock.Start(soon))
	one := flock.Agents[0]
	ask(t, one.Address, counts, "run", "-")
	b.do(chromedp.Navigate(starling(t, `(http://\S+)`, one.Address, "ui", "--print")[1]))
	b.visit("/job/counts?instance=main%5B0%5D")
	const last = `Number(document.querySelector('.log')?.innerText.match(/number (\d+)\.\s*$/)?.[1])`
	b.wait(last + " > 0")

	must(one.Terminate(soon))
	b.see(`Not up to date`)
	b.wait(last + " > 0") // it stands there still
	before := evaluate[float64](b, last)
	must(one.Start())
	must(one.Ready(soon))
	b.see(`live index`)
	b.wait(fmt.Sprintf(`%s > %f`, last, before+10))
	if got := evaluate[string](b, `(() => {
		const all = [...document.querySelector('.log').innerText.matchAll(/number (\d+)\./g)].map((m) => Number(m[1]))
		return all.filter((n, i) => i > 0 && n !== all[i - 1] + 1).join()
	})()`); got != "" {
		t.Errorf("after the break the output goes on with the numbers %s, want those that follow", got)
	}

	must(one.Pause())
	b.seeLost()
	must(one.Resume())
	b.see(`live index`)
	b.deafen()
	must(one.Terminate(soon))
	must(one.Start())
	must(one.Ready(soon))
	b.see(`stale`)
	b.see(`Not up to date: the peer has told nothing for 12 seconds`)
	b.shoot("stale")
	evaluate[bool](b, `(window.fetch = fetchFor, true)`)
	b.see(`live index`)
	before = evaluate[float64](b, last)
	b.wait(fmt.Sprintf(`%s > %f`, last, before))
}

// seeLost wants the page to say that it is not up to date, and never that it is live, for longer than it waits.
func (b *tab) seeLost() {
	b.Helper()
	b.see(`Not up to date`)
	if evaluate[bool](b, `new Promise((done) => {
		const isLive = () => /\blive\b/.test(document.body.innerText.replace('Back to live', ''))
		const live = setInterval(() => isLive() && done(true), 20)
		setTimeout(() => (clearInterval(live), done(false)), 7000)
	})`) {
		b.Error("the page says that it is live while its peer does not answer")
	}
}

// deafen has the page hear nothing any more of what changes, on streams that it opens from now on.
func (b *tab) deafen() {
	b.Helper()
	evaluate[bool](b, `(() => {
		window.fetchFor = window.fetch
		window.fetch = (path, options) => path.endsWith('Watch') ? new Promise((_, fail) =>
			options.signal.addEventListener('abort', () => fail(options.signal.reason))) : fetchFor(path, options)
		return true
	})()`)
}
