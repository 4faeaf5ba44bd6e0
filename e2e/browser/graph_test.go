package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// flow is a job whose tasks come after each other, and a job that comes after it.
const flow = `
job: flow
type: batch
tasks:
  - {name: split, command: "true", resources: {cpu: 10m, memory: 10Mi}}
  - {name: count, instances: 2, command: sleep 6000, after: [split], resources: {cpu: 10m, memory: 10Mi}}
  - {name: spell-with-a-name-that-is-rather-long, command: sleep 6000, after: [split], resources: {cpu: 10m, memory: 10Mi}}
  - {name: merge, command: "true", after: [count, spell-with-a-name-that-is-rather-long, split]}
  - {name: report, command: "true", after: [merge]}
---
job: publish
type: batch
after: [flow]
tasks: [{name: copy, command: "true"}]
`

// TestWorkflow looks at a graph of tasks and of jobs: where they stand, what a screen reader hears, by keys and in the
// past.
func TestWorkflow(t *testing.T) {
	b := open(t)
	found := starling(t, `(?s)API at (\S+).*page: (\S+)`, "", "dev", "--peers", "2", "--address", "127.0.0.1:0")
	b.do(chromedp.Navigate(found[2]))
	b.see(`2 machines`)
	ask(t, found[1], flow, "run", "--detach", "-")
	b.visit("/job/flow")
	b.see(`^Workflow$`)
	b.see(`^split\s+. complete\s+1 of 1`)
	b.see(`^count\s+. running\s+0 of 2`)
	b.see(`^publish\s+. pending\s+job`)
	b.shoot("workflow")

	heard := evaluate[[]string](b, `[...document.querySelectorAll('.graph li')].map((li) => li.firstChild.ariaLabel)`)
	const long = "spell-with-a-name-that-is-rather-long"
	for i, want := range []string{"split, complete, 1 of 1", "count, running, 0 of 2, comes after split",
		long + ", running, 0 of 1, comes after split",
		"merge, waiting, 0 of 1, waiting for count, " + long + ", comes after count, " + long + ", split",
		"report, waiting, 0 of 1, waiting for merge, comes after merge",
		"publish, pending, job, 1 waiting, comes after report"} {
		if i >= len(heard) || heard[i] != want {
			t.Errorf("a screen reader hears %q, want as number %d %q", heard, i, want)
		}
	}
	// Each to the right of what it comes after, none on another, all within the drawing.
	if wrong := evaluate[string](b, `(() => {
		const boxes = [...document.querySelectorAll('.graph li')].map((li) => li.getBoundingClientRect())
		const [split, count, spell, merge, report, publish] = boxes
		if (!(split.right < count.left && count.right < merge.left && merge.right < report.left && report.right < publish.left)) return 'not in order'
		if (count.left !== spell.left) return 'count and spell are not below each other'
		for (const a of boxes) for (const o of boxes)
			if (a !== o && a.left < o.right && o.left < a.right && a.top < o.bottom && o.top < a.bottom) return 'overlap'
		return document.querySelectorAll('.graph svg > path').length === 7 ? '' : 'not 7 edges'
	})()`); wrong != "" {
		t.Error(wrong)
	}

	evaluate[bool](b, `(document.querySelectorAll('.graph button')[1].focus(), true)`)
	b.do(chromedp.KeyEvent(kb.Enter))
	if got := evaluate[string](b, `document.activeElement.id`); got != "task count" {
		t.Errorf("Enter on count leads to %q", got)
	}

	b.slide(evaluate[int](b, `Number(/submitted .* in (\d+)/.exec(document.body.innerText)[1])`))
	b.see(`as of index`)
	b.see(`^split\s+. (waiting|running)\s+0 of 1`) // in the past it was not complete yet
	b.see(`^count\s+. waiting\s+0 of 2`)
	b.press("Back to live")
	b.see(`^split\s+. complete\s+1 of 1`)

	b.visit("/job/publish")
	b.see(`^flow\s+. running\s+job`)
	b.shoot("workflow-jobs")
	evaluate[bool](b, `(document.querySelector('.graph a').click(), true)`)
	b.see(`^report\s+. waiting`)
}
