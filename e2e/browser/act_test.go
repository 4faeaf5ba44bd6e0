package browser

import (
	"testing"

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
	b.unsee(`instances are replaced`)
	b.see(`version 2|Update to version 2`)

	b.visit("/")
	b.see(`2 machines`)
	b.press("Drain dev-1")
	b.see(`Drain dev-1: its`)
	b.press("No")
	b.unsee(`Drain dev-1: its`)
	b.press("Drain dev-1")
	b.see(`Drain dev-1: its`)
	b.submit()
	b.see(`dev-1 . draining`)

	b.visit("/job/train")
	b.see(`Why it waits`)
	evaluate[bool](b, `(document.querySelector('main .title button:last-of-type').focus(), true)`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.see(`Stop train for good`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.unsee(`Stop train for good`)
	evaluate[bool](b, `(document.querySelector('main .title button:last-of-type').focus(), true)`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.see(`Stop train for good`)
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter)) // from No to Stop
	b.unsee(`Stop train for good`)
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

// submit says yes to the question that is open.
func (b *tab) submit() {
	b.Helper()
	evaluate[bool](b, `(document.querySelector('dialog button[type=submit]').click(), true)`)
}
