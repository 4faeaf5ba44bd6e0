package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestActions stops, restarts and drains from the page, each after a question, the last by keys alone.
func TestActions(t *testing.T) {
	b := open(t)
	found := starling(t, `(?s)API at (\S+).*page: (\S+)`, "", "dev", "--peers", "2", "--address", "127.0.0.1:0")
	address := found[1]
	ask(t, address, work, "run", "--detach", "-")
	b.do(chromedp.Navigate(found[2]))
	b.see(`web\s+6`)
	b.visit("/job/web")
	b.see(`succeeded`)
	b.press("Restart")
	b.see(`Restart web: its instances are replaced`)
	b.shoot("question")
	b.submit()
	b.answered()
	b.see(`version 2|Update to version 2`)

	b.visit("/")
	b.see(`2 machines`)
	b.press("Drain dev-1")
	b.see(`Drain dev-1: its`)
	b.press("No")
	b.answered()
	b.press("Drain dev-1")
	b.see(`Drain dev-1: its`)
	b.submit()
	b.see(`dev-1 . draining`)

	b.visit("/job/train")
	b.see(`Why it waits`)
	b.wait(`document.querySelector('main .title button:last-of-type')`)
	evaluate[bool](b, `(document.querySelector('main .title button:last-of-type').focus(), true)`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.see(`Stop train for good`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.answered()
	evaluate[bool](b, `(document.querySelector('main .title button:last-of-type').focus(), true)`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.see(`Stop train for good`)
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter)) // from No to Stop
	b.answered()
	b.see(`train\s+. stopped`)
}

// TestKeys goes from part to part and over the past with the keyboard alone.
func TestKeys(t *testing.T) {
	b := open(t)
	found := starling(t, `(?s)API at (\S+).*page: (\S+)`, "", "dev", "--peers", "2", "--address", "127.0.0.1:0")
	b.do(chromedp.Navigate(found[2]))
	b.see(`2 machines`)
	for range 4 { // to the content, Starling, Cluster, Jobs
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.see(`There are no jobs`)
	for range 20 {
		if evaluate[bool](b, `document.activeElement.type === 'range'`) {
			break
		}
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	b.do(chromedp.KeyEvent(kb.Home))
	b.see(`as of index 1[,\s]`)
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	b.see(`as of index 2[,\s]`)
	b.do(chromedp.KeyEvent(kb.End))
	b.see(`live index`)
}

// TestSignedOut opens a link that was used, and the page without one.
func TestSignedOut(t *testing.T) {
	b := open(t)
	link := starling(t, `page: (\S+)`, "", "dev", "--address", "127.0.0.1:0")[1]
	b.do(chromedp.Navigate(link))
	b.see(`1 machine`)
	other := open(t)
	other.do(chromedp.Navigate(link))
	other.see(`this link was used already`)
	other.shoot("signed-out")
	other.do(chromedp.Reload())
	other.see(`not signed in`)
	b.do(chromedp.Reload())
	b.see(`1 machine`)
}

// TestReadAgain breaks the first reading of a part of the page, as a peer does that goes away: it reads again.
func TestReadAgain(t *testing.T) {
	b := open(t)
	found := starling(t, `(?s)API at (\S+).*page: (\S+)`, "", "dev", "--peers", "2", "--address", "127.0.0.1:0")
	ask(t, found[1], work, "run", "--detach", "-")
	b.do(chromedp.Navigate(found[2]))
	b.see(`6 instances running`)
	evaluate[bool](b, `(() => {
		const through = window.fetch
		window.fetch = (path, asked) => {
			if (!path.endsWith('/Watch')) return through(path, asked)
			window.fetch = through
			return Promise.reject(new TypeError('no way'))
		}
		return true
	})()`)
	b.visit("/jobs")
	b.see(`web\s+. running`)
}

// submit says yes to the question that is open.
func (b *tab) submit() {
	b.Helper()
	evaluate[bool](b, `(document.querySelector('dialog button[type=submit]').click(), true)`)
}

// TestPolicy holds that the browser obeys the content policy, and that the tests would hear of what is against it.
func TestPolicy(t *testing.T) {
	b := open(t)
	b.do(chromedp.Navigate(starling(t, `page: (\S+)`, "", "dev", "--address", "127.0.0.1:0")[1]))
	b.see(`1 machine`)
	evaluate[bool](b, `(() => {
		const planted = document.createElement('div')
		planted.innerHTML = '<img src=x onerror="document.title = 1">'
		document.body.append(planted)
		const script = document.createElement('script')
		script.textContent = 'document.title = 2'
		document.body.append(script)
		return true
	})()`)
	select {
	case said := <-b.complaints:
		if !strings.Contains(said, "Content Security Policy") {
			t.Errorf("got %s", said)
		}
	case <-time.After(seeTimeout):
		t.Error("nobody complains about a script in the page")
	}
	if title := evaluate[string](b, `document.title`); title != "Starling" {
		t.Errorf("a script in the page was run: the title is %q", title)
	}
	for len(b.complaints) > 0 {
		<-b.complaints
	}
}

// answered waits until no question is left.
func (b *tab) answered() {
	b.Helper()
	b.wait(`!document.querySelector('dialog')`)
}
