package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// write puts a text into a field, as somebody who types it.
func (b *tab) write(field, text string) {
	b.Helper()
	evaluate[bool](b, fmt.Sprintf(`(() => {
		const field = document.querySelector(%q)
		field.value = %q
		return field.dispatchEvent(new Event('input', {bubbles: true}))
	})()`, field, text))
}

// TestPlan plans what is pasted, in the words of the command line: with errors, of jobs, of pools; and has it done.
func TestPlan(t *testing.T) {
	b := open(t)
	found := starling(t, `(?s)API at (\S+).*page: (\S+)`, "", "dev", "--peers", "2", "--address", "127.0.0.1:0")
	address := found[1]
	b.do(chromedp.Navigate(found[2]))
	b.see(`2 machines`)
	b.visit("/plan")
	b.see(`nothing is done`)
	b.shoot("plan-empty")
	b.write("textarea", strings.Replace(work, "type: stateless", "type: <b>stateless</b>", 1))
	b.press("Plan it")
	b.see(`1 error; nothing was planned`)
	b.see(`line 3, column 7 type: `)
	b.shoot("plan-errors")
	b.press("line 3, column 7")
	if got := evaluate[string](b, `(() => {
		const box = document.activeElement
		return box.value.slice(box.selectionStart, box.selectionEnd)
	})()`); got != "<b>stateless</b>" {
		t.Errorf("the error leads to %q", got)
	}

	b.write("textarea", work)
	b.unsee(`nothing was planned`) // it was about another text
	b.press("Plan it")
	b.see(`^web: a new job$`)
	b.see(`^task server: 6 placed$`)
	b.see(`in the end, 3 instances of worker: `)
	b.shoot("plan")
	if said := ask(t, address, "", "ps"); strings.Contains(said, "web") {
		t.Errorf("a plan has brought a job:\n%s", said)
	}
	b.press("Submit")
	b.see(`Submit 2 jobs: web, train\?`)
	b.submit()
	b.answered()
	b.see(`submitted web`)
	b.see(`submitted train`)
	b.visit("/job/web")
	b.see(`Update to version 1`)

	b.visit("/plan")
	b.press("Plan it")
	b.see(`web: nothing would change, it keeps version 1`)
	b.write("textarea", strings.Replace(work, "10Mi", "11Mi", 1))
	b.press("Plan it")
	b.see(`^web: version 1 to 2$`)
	ask(t, address, strings.Replace(work, "10Mi", "12Mi", 1), "run", "--detach", "-") // somebody else is faster
	b.press("Submit")
	b.submit()
	b.see(`✕ .*version 2`)
	b.press("No")
	b.answered()

	b.write("textarea", "pools:\n  - path: ml\n    owners: [alice]\n    cpu: {reservation: 1}\n")
	b.press("Plan it")
	b.see(`^pools: version \d+ to \d+$`)
	b.see(`created +ml`)
	b.shoot("plan-pools")
	b.press("Apply")
	b.see(`Make this file the tree of pools\?`)
	b.submit()
	b.answered()
	b.see(`done: the tree has version`)
	b.visit("/pools")
	b.see(`^ml`)
	b.slide(1)
	b.visit("/plan?at=1")
	b.see(`go back to live`)
}
