package browser

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"starling/e2e/agents"
)

const (
	// programTimeout bounds how long a program may take to say what it is waited for, seeTimeout how long the page.
	programTimeout, seeTimeout = 2 * time.Minute, 30 * time.Second
	// testTimeout bounds a whole test.
	testTimeout = 5 * time.Minute
	// shotsVariable names the folder for pictures.
	shotsVariable = "STARLING_SHOTS"
)

// binary is the program under test, built once.
var binary = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "starling-browser-")
	if err != nil {
		return "", err
	}
	return agents.Build(context.Background(), folder)
})

func TestMain(m *testing.M) {
	status := m.Run()
	if made, err := filepath.Glob(filepath.Join(os.TempDir(), "starling-browser-*")); err == nil {
		for _, folder := range made {
			os.RemoveAll(folder)
		}
	}
	os.Exit(status)
}

// starling starts the program, and returns what the expression finds in what it prints. It ends with the test.
func starling(t testing.TB, wanted string, address string, args ...string) []string {
	t.Helper()
	return starlingWith(t, wanted, []string{"STARLING_ADDRESS=" + address}, args...)
}

// starlingWith does so with more variables.
func starlingWith(t testing.TB, wanted string, variables []string, args ...string) []string {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, args...)
	command.Env = append(os.Environ(), variables...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		_ = command.Wait()
	})
	timer := time.AfterFunc(programTimeout, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	said := strings.Builder{}
	lines := bufio.NewScanner(out)
	expression := regexp.MustCompile(wanted)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if found := expression.FindStringSubmatch(said.String()); found != nil {
			return found
		}
	}
	t.Fatalf("starling %s: did not print %s but:\n%s", strings.Join(args, " "), wanted, said.String())
	return nil
}

// ask runs a command to its end.
func ask(t testing.TB, address, input string, args ...string) string {
	t.Helper()
	return askWith(t, []string{"STARLING_ADDRESS=" + address}, input, args...)
}

// askWith does so with more variables.
func askWith(t testing.TB, variables []string, input string, args ...string) string {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, args...)
	command.Env = append(os.Environ(), variables...)
	command.Stdin = strings.NewReader(input)
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("starling %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return string(said)
}

// tab is one tab of a browser.
type tab struct {
	testing.TB
	ctx context.Context
	// complaints are what the browser says against the page. Those that nobody has taken at the end fail the test.
	complaints chan string
}

// open starts a browser with one tab. What the browser logs, the content policy stops, or the console says against the
// page fails the test, unless it is about a request that did not come through.
func open(t testing.TB) *tab {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser and processes")
	}
	path, err := exec.LookPath("chromium")
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatal("no chromium is here: apt-get install chromium")
	default:
		t.Skip("no chromium is here: apt-get install chromium")
	}
	bounded, stop := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(stop)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()), chromedp.Env("HOME="+t.TempDir()))
	all, end := chromedp.NewExecAllocator(bounded, options...)
	t.Cleanup(end)
	b := &tab{TB: t, complaints: make(chan string, 100)}
	t.Cleanup(func() {
		for len(b.complaints) > 0 {
			t.Error(<-b.complaints)
		}
	})
	complain := func(what string) {
		select {
		case b.complaints <- what:
		default: // there are enough
		}
	}
	ctx, leave := chromedp.NewContext(all, chromedp.WithListener(func(event any) {
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Source != "network" {
				complain("the browser logs: " + e.Entry.Text)
			}
		case *runtime.EventExceptionThrown:
			what := e.ExceptionDetails.Text
			if e.ExceptionDetails.Exception != nil {
				what = e.ExceptionDetails.Exception.Description
			}
			complain("the page failed: " + what)
		case *runtime.EventConsoleAPICalled:
			complain(fmt.Sprintf("the console says: %s", e.Args[0].Value))
		}
	}))
	t.Cleanup(leave)
	b.ctx = ctx
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1400, 900)); err != nil {
		t.Fatal(err)
	}
	return b
}

// do does something within the time in which the page must be able to.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, seeTimeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatalf("%v; the page shows:\n%s", err, b.text())
	}
}

// evaluate returns what an expression, or the promise that it is, comes to.
func evaluate[V any](b *tab, expression string) V {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, seeTimeout)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[V](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return value
}

// text is what the page shows.
func (b *tab) text() string {
	b.Helper()
	return evaluate[string](b, `document.body.innerText`)
}

// see waits until the page shows a text that matches; unsee until it shows none.
func (b *tab) see(expression string)   { b.Helper(); b.await(expression, true) }
func (b *tab) unsee(expression string) { b.Helper(); b.await(expression, false) }

func (b *tab) await(expression string, is bool) {
	b.Helper()
	b.wait(fmt.Sprintf(`new RegExp(%q, 'm').test(document.body.innerText) === %t`, expression, is))
}

// wait waits until an expression is true.
func (b *tab) wait(expression string) {
	b.Helper()
	if !evaluate[bool](b, fmt.Sprintf(`new Promise((done) => {
		const end = Date.now() + %d
		const look = () => {
			if (%s) done(true)
			else if (Date.now() > end) done(false)
			else setTimeout(look, 30)
		}
		look()
	})`, (seeTimeout-5*time.Second).Milliseconds(), expression)) {
		b.Fatalf("waiting for %s the page shows:\n%s", expression, b.text())
	}
}

// visit leads the tab to a part of the page.
func (b *tab) visit(part string) {
	b.Helper()
	evaluate[string](b, fmt.Sprintf(`location.hash = %q`, part))
}

// press clicks the button or link with a text, or a label, as soon as there is one.
func (b *tab) press(text string) {
	b.Helper()
	b.wait(fmt.Sprintf(`(() => {
		const found = [...document.querySelectorAll('button, a, summary')].find((e) =>
			e.textContent.trim() === %[1]q || e.getAttribute('aria-label') === %[1]q)
		found?.click()
		return found !== undefined
	})()`, text))
}

// choose takes an option of the list with a label.
func (b *tab) choose(label, option string) {
	b.Helper()
	if !evaluate[bool](b, fmt.Sprintf(`(() => {
		const list = [...document.querySelectorAll('label')].find((e) => e.textContent.startsWith(%q))?.querySelector('select')
		const found = [...list?.options || []].find((o) => o.text === %q)
		if (found) list.value = found.value
		return found !== undefined && list.dispatchEvent(new Event('change', {bubbles: true}))
	})()`, label, option)) {
		b.Fatalf("nothing to choose is called %q in %q; the page shows:\n%s", option, label, b.text())
	}
}

// slide moves the slider to an index.
func (b *tab) slide(index int) {
	b.Helper()
	evaluate[bool](b, fmt.Sprintf(`(() => {
		const slider = document.querySelector('input[type=range]')
		slider.value = %d
		return slider.dispatchEvent(new Event('input', {bubbles: true}))
	})()`, index))
}

// widths at which pictures are made.
var widths = []int64{390, 800, 1400}

// schemes are the colours that a user may want.
var schemes = []string{"light", "dark"}

// scheme makes the user want light or dark colours.
func (b *tab) scheme(name string) {
	b.Helper()
	media := emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.Fatal(err)
	}
}

// shoot holds that nothing is wider than the window, and makes pictures, at all widths, light and dark.
func (b *tab) shoot(name string) {
	b.Helper()
	folder := os.Getenv(shotsVariable)
	for _, width := range widths {
		for _, scheme := range schemes {
			b.scheme(scheme)
			b.do(chromedp.EmulateViewport(width, 900))
			if wide := evaluate[int64](b, `document.documentElement.scrollWidth`); wide > width {
				b.Errorf("%s: the page is %d wide in a window of %d", name, wide, width)
			}
			if folder != "" {
				b.picture(filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)))
			}
		}
	}
	b.scheme(schemes[0])
	b.do(chromedp.EmulateViewport(1400, 900))
}

// picture writes what the window shows into a file.
func (b *tab) picture(path string) {
	b.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, picture, 0o644); err != nil {
		b.Fatal(err)
	}
}
