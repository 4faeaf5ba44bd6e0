package browser

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestAxe lets axe-core look at each part of the page, in the present and in the past, light and dark: it finds nothing
// that would keep somebody from using it.
func TestAxe(t *testing.T) {
	b := open(t)
	link := starling(t, `page: (\S+)`, "", "dev", "--demo", "--address", "127.0.0.1:0")[1]
	b.do(chromedp.Navigate(link))
	b.see(`20 machines`)
	b.see(`shop/front/web`)
	b.axe("cluster")
	for _, part := range evaluate[[]string](b, `[...document.querySelectorAll('nav a')].map((a) => a.hash.slice(1))`) {
		b.visit(part)
		b.see(`live index`)
		b.axe(part)
	}
	for _, one := range []struct{ part, shows string }{
		{"/job/shop%2Ffront%2Fweb?instance=server%5B0%5D", `listening on`},
		{"/job/research%2Flanguage%2Ffinetune", `Why it waits`},
		{"/job/data%2Freports%2Fnightly", `report`},
		{"/job/none", `none`},
		{"/jobs?state=all&q=none", `No job is like that`},
		{"/pools?of=research", `Pool research`},
		{"/compare?from=1", `from index 1`},
		{"/?at=60", `as of index 60,`},
		{"/jobs?at=1", `There are no jobs at this moment`},
		{"/nowhere", `There is no page`},
	} {
		b.visit(one.part)
		b.see(one.shows)
		b.axe(one.part)
	}
	b.visit("/")
	b.see(`\d+ machines`)
	b.press("Drain dev-1")
	b.see(`Drain dev-1: its`)
	b.axe("question")
	b.press("No")

	other := open(t)
	other.do(chromedp.Navigate(link))
	other.see(`this link was used already`)
	other.axe("signed out")
}

// finding is what axe-core has against a page.
type finding struct{ Rule, Help, Element, Failure string }

// axe lets axe-core look at what is shown.
func (b *tab) axe(part string) {
	b.Helper()
	if !evaluate[bool](b, `typeof axe === 'object'`) {
		source, err := os.ReadFile("axe/axe.min.js")
		if err != nil {
			b.Fatal(err)
		}
		evaluate[bool](b, string(source)+"\n;true")
	}
	for _, scheme := range schemes {
		b.scheme(scheme)
		found := evaluate[[]finding](b, `document.fonts.ready.then(() => axe.run(document, {resultTypes: ['violations']})).then((all) =>
			all.violations.flatMap((v) => v.nodes.map((n) =>
				({Rule: v.id, Help: v.help, Element: n.html, Failure: n.failureSummary}))))`)
		for _, f := range found {
			b.Errorf("%s, %s: %s: %s: %s: %s", part, scheme, f.Rule, f.Help, f.Element, f.Failure)
		}
	}
	b.scheme(schemes[0])
}
