package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"starling/api/draft"
)

// careful is a service whose update tries one instance of the new version first, and waits for its user.
const careful = `
job: careful
type: stateless
update: {batch_size: 1, canaries: 1, min_healthy: 10ms, rollback: true}
tasks:
  - {name: server, instances: 2, command: sleep 6000, resources: {cpu: 10m, memory: 10Mi}, stop_grace: 1s}
`

// begin shows the job in a cluster of its own, and returns the address of its API.
func (b *tab) begin(t *testing.T) (address string) {
	t.Helper()
	found := starling(t, `(?s)API at (\S+).*page: (\S+)`, "", "dev", "--peers", "2", "--address", "127.0.0.1:0")
	ask(t, found[1], careful, "run", "--detach", "-")
	b.do(chromedp.Navigate(found[2]))
	b.visit("/job/careful")
	b.see(`Update to version 1 . succeeded`)
	return found[1]
}

// agree presses a button, sees a question that says something, and says yes.
func (b *tab) agree(button, says string) {
	b.Helper()
	b.press(button)
	b.see(says)
	b.submit()
	b.answered()
}

// TestScale gives a job another number of instances, goes back to the version before, suspends it and lets it go on.
func TestScale(t *testing.T) {
	b := open(t)
	b.begin(t)
	b.press("Scale server")
	b.see(`Scale careful.server\?`)
	b.see(`nothing has changed, it keeps version 1`)
	b.write("dialog input", "3")
	b.see(`careful: version 1 to 2`)
	b.see(`starts  tasks.server.instances: 2 -> 3`)
	b.shoot("scale")
	b.submit()
	b.answered()
	b.see(`Update to version 2 . succeeded`)
	b.see(`3 running`)
	b.press("Scale server")
	b.write("dialog input", "99999999")
	b.see(`must be from 0 to 1000000`)
	b.press("No")
	b.answered()

	b.agree("Revert to version 1", `Revert careful to version 1: go back to an earlier version of a job`)
	b.see(`^3\s+reverted of 1`)
	b.see(`2 running`)
	b.agree("Suspend", `Suspend careful: end all instances of a job, and start none until it is resumed`)
	b.see(`careful\s+. suspended`)
	b.agree("Resume", `Resume careful: let a suspended job go on`)
	b.see(`careful\s+. running`)
}

// TestSteering steers updates from the page, each time after a question in the words of the command line.
func TestSteering(t *testing.T) {
	b := open(t)
	address := b.begin(t)
	said := map[string]string{}
	for _, one := range draft.Steerings() {
		said[one.How.String()] = strings.ToLower(one.Words[:1]) + one.Words[1:]
	}
	update := func(program string) {
		t.Helper()
		ask(t, address, strings.ReplaceAll(careful, "sleep 6000", program), "run", "--detach", "-")
	}
	update("sleep 6001")
	b.see(`Update to version 2 . rolling forward`)
	b.press("Pause")
	b.see(said["pause"])
	b.shoot("steering")
	b.submit()
	b.answered()
	b.see(`Update to version 2 . paused`)
	b.unsee(`^Pause$`)
	b.agree("Resume", said["resume"])
	b.see(`Update to version 2 . rolling forward`)
	b.see(`1 canary`)
	b.agree("Promote", said["promote"])
	b.see(`Update to version 2 . succeeded`)
	b.unsee(`^Promote$`)

	update("sleep 6002")
	b.see(`Update to version 3 . rolling forward`)
	b.agree("Fail", said["fail"])
	b.see(`Update to version \d . rolled back`)
	update("sleep 6003")
	b.see(`Update to version \d . rolling forward`)
	b.agree("Abort", said["abort"])
	b.see(`Update to version \d . aborted`)
}
