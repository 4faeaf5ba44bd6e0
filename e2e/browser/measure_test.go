package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

const (
	// framesFor is how long frames are counted, idleFor how long what the page costs.
	framesFor, idleFor = 5 * time.Second, 10 * time.Second
	// stirPause is the time between the deaths of two instances while frames are counted: each is some five entries.
	stirPause = 50 * time.Millisecond
	// stepsWithin is how many entries back the slider is moved, stepsFirst the distance of the first steps.
	stepsWithin, stepsFirst = 10_000, 2_000
	// openPages is how many pages look at one peer.
	openPages = 100
)

// noteContent marks when the first of what a page is for can be seen, and holds what measurements are made of: until
// is there when a test holds and what it looks at was drawn, framesFor returns how long each frame of some time took.
const noteContent = `
window.until = (test) => new Promise((done) => {
	const drawn = () => requestAnimationFrame(() => setTimeout(() => done(performance.now())))
	if (test()) return drawn()
	new MutationObserver((_, all) => test() && (all.disconnect(), drawn())).observe(document,
		{childList: true, subtree: true, characterData: true, attributes: true})
})
window.framesFor = (ms) => new Promise((done) => {
	const all = []
	let last = performance.now()
	const end = last + ms
	const next = (now) => {
		all.push(now - last)
		last = now
		now < end ? requestAnimationFrame(next) : done(all)
	}
	requestAnimationFrame(next)
})
until(() => document.querySelector('.machine, td.name, .cell')).then(() => performance.mark('content'))`

// BenchmarkPage measures what the page takes with 1,000 jobs and 10,000 instances: until something can be seen
// (first-paint) and until what the part is for can be (content); from a move of the slider, and from an input, until
// what follows from it is drawn; how long frames are while instances end and start; and what a hundred open pages cost
// when nothing happens.
func BenchmarkPage(b *testing.B) {
	c := newCrowd(b)
	c.history(stepsWithin + 2_500)
	m := look(b, c.page.Link(0))
	for _, part := range parts {
		b.Run("paint"+part, func(b *testing.B) { m.paint(b, part) })
		b.Run("step"+part, func(b *testing.B) { m.step(b, part) })
	}
	b.Run("input/jobs", func(b *testing.B) { m.input(b, "/jobs", typeName) })
	b.Run("input/job", func(b *testing.B) { m.input(b, "/job/big", chooseOne) })
	for _, part := range parts {
		b.Run("frames"+part, func(b *testing.B) {
			ctx, cancel := context.WithCancel(context.Background())
			stirring := sync.WaitGroup{}
			stirring.Go(func() { c.stir(ctx, stirPause) })
			m.frames(b, part)
			cancel()
			stirring.Wait()
		})
	}
	m.do(chromedp.Navigate("about:blank"))
	b.Run("idle", func(b *testing.B) {
		without, with, n := 0.0, 0.0, 0
		for b.Loop() {
			n++
			without += cost(idleFor)
			with += c.watched(openPages, idleFor)
		}
		b.ReportMetric(100*without/float64(n), "%-of-a-core-without")
		b.ReportMetric(100*(with-without)/float64(n), "%-of-a-core-more")
		b.ReportMetric(0, "ns/op")
	})
}

// parts are those that are measured: machines, jobs, and a job of nearly all instances.
var parts = []string{"/", "/jobs", "/job/big"}

// measured is a tab in which something is measured.
type measured struct{ *tab }

// look opens the page.
func look(b *testing.B, link string) measured {
	m := measured{open(b)}
	note := page.AddScriptToEvaluateOnNewDocumentParams{Source: noteContent}
	if _, err := chromedp.Call(m.ctx, page.AddScriptToEvaluateOnNewDocument, note); err != nil {
		b.Fatal(err)
	}
	m.do(chromedp.Navigate(link))
	m.see(fmt.Sprintf(`%d instances running`, crowdInstances))
	return m
}

// load loads the page anew, at a part of it, until all is there.
func (m measured) load(part string) {
	m.visit(part)
	m.do(chromedp.Reload())
	m.see(`^‹$`) // how far the past goes is known
	m.see(`big`)
	evaluate[float64](m.tab, `until(() => document.querySelector('.machine, td.name, .cell'))`)
}

func (m measured) paint(b *testing.B, part string) {
	first, content, n := 0.0, 0.0, 0
	for b.Loop() {
		n++
		m.load(part)
		times := evaluate[[]float64](m.tab, `['first-contentful-paint', 'content'].map((name) =>
			performance.getEntriesByName(name)[0].startTime)`)
		first, content = first+times[0], content+times[1]
	}
	b.ReportMetric(first/float64(n), "first-paint-ms")
	b.ReportMetric(content/float64(n), "content-ms")
	b.ReportMetric(0, "ns/op")
}

// step moves the slider within the last entries, by ten each time and then over half of them, until all that the page
// shows is of that moment. The first steps are told apart: a peer folds a stretch when it is first asked about it.
func (m measured) step(b *testing.B, part string) {
	m.load(part)
	newest, n := m.index(), 0
	if newest < stepsWithin {
		b.Fatalf("there are %d entries, want %d", newest, stepsWithin)
	}
	move := func(index int) float64 {
		return evaluate[float64](m.tab, fmt.Sprintf(`(async () => {
			await new Promise((done) => setTimeout(done, 300))
			const slider = document.querySelector('input[type=range]')
			const begin = performance.now()
			slider.value = %[1]d
			slider.dispatchEvent(new Event('input', {bubbles: true}))
			return await until(() => document.querySelector('.line.past')?.textContent.includes('index %[1]d,') &&
				document.querySelector('main').ariaBusy === 'false') - begin
		})()`, index))
	}
	// Somebody comes to the slider, and waits as long as that takes.
	evaluate[bool](m.tab, `new Promise((done) => setTimeout(() => done(true), 1000,
		document.querySelector('footer').dispatchEvent(new Event('pointerenter'))))`)
	var took [3]struct{ sum, longest float64 } // by half, by tens, and the first
	add := func(i, to int) {
		ms := move(to)
		took[i].sum, took[i].longest = took[i].sum+ms, max(took[i].longest, ms)
	}
	const firsts = stepsWithin / stepsFirst
	for back := range firsts {
		add(2, newest-1-stepsFirst*back)
	}
	for b.Loop() {
		n++
		for i, to := range []int{newest - 10*n, newest - 10*n - 10, newest - stepsWithin + 10*n} {
			add(i%2, to)
		}
	}
	b.ReportMetric(took[2].sum/firsts, "first-step-ms")
	b.ReportMetric(took[2].longest, "longest-first-ms")
	b.ReportMetric(took[1].sum/float64(n), "step-of-10-ms")
	b.ReportMetric(took[0].sum/float64(2*n), "jump-ms")
	b.ReportMetric(max(took[0].longest, took[1].longest), "longest-ms")
	b.ReportMetric(0, "ns/op")
}

// typeName searches for a job, chooseOne chooses an instance; each returns a promise that follows from it.
const (
	typeName = `(i) => {
		const box = document.querySelector('input[type=search]')
		box.value = 'service-' + String(100 + i)
		box.dispatchEvent(new Event('input', {bubbles: true}))
		return until(() => document.querySelectorAll('td.name').length === 1 &&
			document.querySelector('td.name').textContent === box.value)
	}`
	chooseOne = `(i) => {
		document.querySelectorAll('.cell')[i].click()
		return until(() => [...document.querySelectorAll('.card h2')].some((h) => h.textContent === 'big.main[' + i + ']'))
	}`
)

// input measures how long it takes until what follows from an input is drawn.
func (m measured) input(b *testing.B, part, act string) {
	m.load(part)
	total, n := 0.0, 0
	for b.Loop() {
		n++
		total += evaluate[float64](m.tab, fmt.Sprintf(`(async () => {
			await new Promise((done) => setTimeout(done, 100))
			const begin = performance.now()
			return await (%s)(%d) - begin
		})()`, act, n%100))
	}
	b.ReportMetric(total/float64(n), "input-ms")
	b.ReportMetric(0, "ns/op")
}

// frames reports the frames, and those that take long.
func (m measured) frames(b *testing.B, part string) {
	m.load(part)
	var all []float64
	for b.Loop() {
		all = append(all, evaluate[[]float64](m.tab, fmt.Sprintf(`framesFor(%d)`, framesFor.Milliseconds()))...)
	}
	slow, longest, sum := 0, 0.0, 0.0
	for _, took := range all {
		sum, longest = sum+took, max(longest, took)
		if took > 50 {
			slow++
		}
	}
	b.ReportMetric(1000*float64(len(all))/sum, "frames/s")
	b.ReportMetric(longest, "longest-ms")
	b.ReportMetric(100*float64(slow)/float64(len(all)), "%-over-50ms")
	b.ReportMetric(0, "ns/op")
}

// cost returns the cores that this process takes.
func cost(during time.Duration) float64 {
	used := func() time.Duration {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			return 0
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	before := used()
	<-time.After(during)
	return (used() - before).Seconds() / during.Seconds()
}

// watched returns what cost is while pages are open: each has a stream of all changes, and asks nothing while there are
// none.
func (c *crowd) watched(pages int, during time.Duration) float64 {
	ctx, cancel := context.WithCancel(context.Background())
	streams := sync.WaitGroup{}
	defer streams.Wait()
	defer cancel()
	origin, key, _ := strings.Cut(c.page.Link(0), "/#key=")
	post := func(path, kind string, body []byte, more http.Header) *http.Response {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, origin+path, bytes.NewReader(body))
		if err != nil {
			c.Fatal(err)
		}
		for name, values := range more {
			request.Header[name] = values
		}
		request.Header.Set("Origin", origin)
		request.Header.Set("Content-Type", kind)
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil || answer.StatusCode != http.StatusOK {
			c.Fatal(answer, err)
		}
		return answer
	}
	signed := post("/session", "application/json", []byte(`{"key":"`+key+`"}`), nil)
	told := struct{ Page string }{}
	if err := json.NewDecoder(signed.Body).Decode(&told); err != nil {
		c.Fatal(err)
	}
	shows := http.Header{"Cookie": {signed.Cookies()[0].String()}, "Starling-Page": {told.Page}}
	signed.Body.Close()
	info := post("/starling.v1.Starling/Info", "application/json", []byte(`{}`), shows)
	head := struct{ Index string }{}
	if err := json.NewDecoder(info.Body).Decode(&head); err != nil {
		c.Fatal(err)
	}
	info.Body.Close()
	question := []byte(`{"after":"` + head.Index + `"}`)
	framed := append([]byte{0, 0, 0, 0, byte(len(question))}, question...)
	for range pages {
		answer := post("/starling.v1.Starling/Watch", "application/connect+json", framed, shows)
		streams.Go(func() {
			_, _ = io.Copy(io.Discard, answer.Body) // it ends with the context
			answer.Body.Close()
		})
	}
	<-time.After(time.Second) // all are synced
	return cost(during)
}
