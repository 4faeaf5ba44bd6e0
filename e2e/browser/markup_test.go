package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// markup is what runs a script where a page takes text for markup.
const markup = `<img src=x onerror=document.title=1>`

// marked is a job with markup wherever a job may have any text, which waits for a machine that there is not.
const marked = `
job: marked
type: stateless
tasks:
  - name: server
    env: {WHAT: '` + markup + `%d'}
    labels: {what: '` + markup + `'}
    command: ["sleep", "6000", "` + markup + `"]
    constraints: [{attribute: kind, operator: "=", value: '` + markup + `'}]
    resources: {cpu: 10m, memory: 10Mi}
`

// TestMarkup holds that a job may not be named like markup, and that what may hold markup is shown as what it is.
func TestMarkup(t *testing.T) {
	b := open(t)
	found := starling(t, `(?s)API at (\S+).*page: (\S+)`, "", "dev", "--peers", "2", "--address", "127.0.0.1:0")
	address := found[1]
	b.do(chromedp.Navigate(found[2]))
	b.see(`2 machines`)
	plain := func(where string) {
		t.Helper()
		if got := evaluate[string](b, `document.title + document.querySelectorAll('main img, main script, main b img').length`); got != "Starling0" {
			t.Errorf("%s: the title and how many images there are: %s", where, got)
		}
	}

	// A peer refuses it as a name; what it says about it is text.
	said := evaluate[string](b, fmt.Sprintf(`fetch('/starling.v1.Starling/SubmitJob', {method: 'POST',
		headers: {'Content-Type': 'application/json', 'Starling-Page': localStorage.getItem('starling-page')},
		body: JSON.stringify({request_id: 'markup', spec: {name: %q, type: 'batch', tasks: [{name: 'a', instances: 1,
			command: ['true'], resources: {cpu_millicores: 10, memory_bytes: 1 << 20}}]}})}).then((r) => r.text())`, markup))
	if !strings.Contains(said, "job must be of letters, digits") {
		t.Errorf("a peer takes %s as a name: %s", markup, said)
	}
	b.visit("/plan")
	b.see(`nothing is done`)
	b.write("textarea", fmt.Sprintf("job: %q\ntype: batch\ntasks: [{name: a, command: x}]\n", markup))
	b.press("Plan it")
	b.see(`line 1, column 6 job: .*'<' is not allowed`)
	plain("a plan with errors")
	b.visit("/job/" + markup)
	b.see(`<img src=x onerror=document.title=1>`)
	plain("a job that cannot be")

	ask(t, address, fmt.Sprintf(marked, 1), "run", "--detach", "-")
	b.visit("/job/marked")
	b.see(`Why it waits`)
	b.see(`<img src=x`)
	plain("a job")
	first := b.index()
	ask(t, address, fmt.Sprintf(marked, 2), "run", "--detach", "-")
	b.see(`WHAT: <img src=x onerror=document.title=1>1 → <img src=x onerror=document.title=1>2`)
	b.shoot("markup")
	plain("its versions")
	compare := fmt.Sprintf("/compare?from=%d", first)
	for _, part := range []string{"/", "/jobs?q=%3Cimg", "/jobs", "/why", "/journal", compare} {
		b.visit(part)
		b.see(`marked|No job is like that|2 machines`)
		plain(part)
	}
	b.visit("/plan")
	b.write("textarea", fmt.Sprintf(marked, 3))
	b.press("Plan it")
	b.see(`marked: version 2 to 3`)
	b.see(`<img src=x onerror=document.title=1>3`)
	plain("a plan")
}
