package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// seeIn waits until the terminal shows a text that matches.
func (b *tab) seeIn(expression string) {
	b.Helper()
	b.wait(fmt.Sprintf(`new RegExp(%q, 'm').test([...document.querySelectorAll('.xterm-rows > div')].map((row) =>
		row.textContent).join('\n'))`, expression))
}

// TestShell opens a shell beside an instance, types into it, makes it smaller, interrupts what runs, and ends it: by
// exit, by the button and by leaving the page.
func TestShell(t *testing.T) {
	b := open(t)
	found := starling(t, `(?s)API at (\S+).*page: (\S+)`, "", "dev", "--address", "127.0.0.1:0")
	address := found[1]
	ask(t, address, work, "run", "--detach", "-")
	b.do(chromedp.Navigate(found[2]))
	b.visit("/job/web?instance=server%5B0%5D")
	b.see(`attempt\s+web.server\[0\]#\d+`)
	if loaded := evaluate[bool](b, `performance.getEntriesByType('resource').some((e) => /terminal/.test(e.name))`); loaded {
		t.Error("the terminal is loaded before a shell is opened")
	}
	b.press("Shell beside web.server[0]")
	b.see(`F6 leaves the terminal`)
	b.wait(`document.activeElement?.className === 'xterm-helper-textarea'`)
	b.do(chromedp.KeyEvent("echo $((6*7))-$STARLING_TASK; tty" + kb.Enter))
	b.seeIn(`^42-server`)
	b.seeIn(`^/dev/pts/`)
	b.do(chromedp.KeyEvent(`printf '\033[38;2;200;30;30mred\033[0m and \033[44mblue\033[0m\n'` + kb.Enter))
	b.seeIn(`^red and blue`)
	b.wait(`[...document.querySelectorAll('.xterm-rows span')].some((e) => getComputedStyle(e).color === 'rgb(200, 30, 30)')`)
	b.shoot("shell")
	b.axe("shell")

	b.do(chromedp.EmulateViewport(600, 900))
	b.do(chromedp.KeyEvent("stty size" + kb.Enter))
	b.seeIn(`^\d+\s[5-7]\d\s*$`) // fewer columns than before
	b.do(chromedp.EmulateViewport(1400, 900))
	argument := fmt.Sprintf("%d.471", os.Getpid())
	b.do(chromedp.KeyEvent("sleep " + argument + kb.Enter))
	b.runs(argument, true)
	b.do(chromedp.KeyEvent("c", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	b.runs(argument, false)
	b.do(chromedp.KeyEvent("echo slept-$?" + kb.Enter))
	b.seeIn(`^slept-130`)
	b.do(chromedp.KeyEvent(kb.F6))
	b.wait(`document.activeElement?.textContent === 'End the shell'`)
	evaluate[bool](b, `(document.querySelector('.xterm-helper-textarea').focus(), true)`)
	b.do(chromedp.KeyEvent("exit 7" + kb.Enter))
	b.see(`ended with exit code 7`)
	b.press("Close the shell")
	b.wait(`!document.querySelector('.xterm')`)

	// A page that goes away ends its program.
	for i, leave := range []func(){
		func() { b.press("End the shell") },
		func() { b.visit("/jobs") },
		func() { b.do(chromedp.Navigate("about:blank")) },
	} {
		argument := fmt.Sprintf("%d.4711", os.Getpid()+i)
		b.press("Shell beside web.server[0]")
		b.see(`F6 leaves the terminal`)
		b.do(chromedp.KeyEvent("exec sleep " + argument + kb.Enter))
		b.runs(argument, true)
		leave()
		b.runs(argument, false)
		if evaluate[string](b, `location.href`) != "about:blank" {
			b.visit("/job/web?instance=server%5B0%5D")
		}
	}
}

// runs waits until a program with this argument runs on this machine, or does not.
func (b *tab) runs(argument string, is bool) {
	b.Helper()
	end := time.Now().Add(seeTimeout)
	for time.Now().Before(end) {
		all, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			b.Fatal(err)
		}
		if is == slices.ContainsFunc(all, func(path string) bool {
			line, err := os.ReadFile(path) // it may have ended
			return err == nil && string(line) == "sleep\x00"+argument+"\x00"
		}) {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	b.Fatalf("sleep %s runs: want %t; the page shows:\n%s", argument, is, b.text())
}
