package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// busy is a service that asks for more than two machines have.
const busy = `
job: busy
type: stateless
tasks: [{name: server, instances: 60, command: sleep 6000, resources: {cpu: 100m, memory: 10Mi}, stop_grace: 1s}]
`

// TestChart draws what pools used over the past: as much as is told beside it, in the colours that are wanted, and a
// click leads to a moment.
func TestChart(t *testing.T) {
	b := open(t)
	found := starling(t, `(?s)API at (\S+).*page: (\S+)`, "", "dev", "--peers", "2", "--address", "127.0.0.1:0")
	ask(t, found[1], work, "run", "--detach", "-")
	b.do(chromedp.Navigate(found[2]))
	b.visit("/pools")
	b.see(`All pools over time`)
	b.see(`allocated 60m`)
	ask(t, found[1], busy, "run", "--detach", "-")
	b.see(`allocated and asked for 6060m`) // it came by itself; what no machine could run asks for nothing
	b.wait(b.drawn())
	b.shoot("chart")
	b.axe("chart")
	b.choose("of", "entries a second")
	b.see(`entries a second [0-9.]+`)
	b.wait(b.drawn())
	b.shoot("chart-entries")
	b.press("default")
	b.see(`Pool default over time`)
	b.see(`From index \d+, .*, to \d+\. Click to go to a moment`)
	b.choose("of", "memory")
	b.see(`allocated and asked for 660Mi`)
	b.wait(b.drawn())

	// A click in the middle leads into the past, and the chart stays what it is.
	evaluate[bool](b, `(document.querySelector('.chart').scrollIntoView({block: 'center'}), true)`)
	where := evaluate[[]float64](b, `(() => {
		const over = document.querySelector('.chart .u-over').getBoundingClientRect()
		return [over.x + over.width / 2, over.y + over.height / 2]
	})()`)
	b.do(chromedp.MouseClickXY(where[0], where[1]))
	b.see(`as of index \d+`)
	b.see(`now at \d+`)
	b.shoot("chart-past")
	b.press("Back to live")
	b.unsee(`as of index`)
	if said := ask(t, found[1], "", "journal", "tail", "-n", "5"); strings.Contains(said, "series") {
		t.Errorf("looking writes: %s", said)
	}
}

// drawn is true when the chart has pixels of its own.
func (b *tab) drawn() string {
	return `(() => {
		const canvas = document.querySelector('.chart canvas')
		if (!canvas || !canvas.width) return false
		const all = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data
		return all.some((x) => x > 0)
	})()`
}
