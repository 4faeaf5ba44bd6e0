package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// team is a pool with an operator of its own, and others with it.
const team = `
pools:
  - path: default
  - {path: team, operators: [olga]}
`

// stuck is a service of the pool whose update waits for its user.
const stuck = `
job: stuck
pool: team
type: stateless
update: {batch_size: 1, canaries: 1, min_healthy: 10ms}
tasks:
  - {name: server, instances: 2, command: sleep 6000, resources: {cpu: 10m, memory: 10Mi}, stop_grace: 1s}
`

// plain is a service of no team.
const plain = `
job: plain
type: stateless
tasks: [{name: server, command: sleep 6000, resources: {cpu: 10m, memory: 10Mi}, stop_grace: 1s}]
`

// act is what can be done with a job: the button, what is asked then, and the request that the page would send.
type act struct{ button, question, procedure, request string }

// actsOf are all acts on a job.
func actsOf(job string) []act {
	steer := func(button, how string) act {
		return act{button, button + ` the update of`, "SteerUpdate",
			fmt.Sprintf(`{"job": %q, "version": 2, "steering": %q}`, job, how)}
	}
	of := func(button, procedure, more string) act {
		return act{button, button + " " + job, procedure, fmt.Sprintf(`{"job": %q%s}`, job, more)}
	}
	revert := of("Revert to version 1", "RevertJob", `, "against": 2, "to": 1`)
	revert.question = "Revert " + job + " to version 1"
	spec := fmt.Sprintf(`{"spec": {"name": %q, "type": "stateless", "tasks": [{"name": "server", "instances": 3, `+
		`"command": ["sleep", "6000"], "placement": "pack"}]}}`, job)
	return []act{of("Suspend", "SuspendJob", ""), of("Restart", "RestartJob", ""), of("Stop", "KillJob", ""),
		{"Scale server", "Scale " + job + ".server", "SubmitJob", spec}, steer("Pause", "pause"), steer("Promote", "promote"),
		steer("Fail", "fail"), steer("Abort", "abort"), revert}
}

// enter opens the page as a user who is let in with a role, "" for none in the whole cluster.
func (b *tab) enter(t *testing.T, address, name, role string) {
	t.Helper()
	home := t.TempDir()
	args := []string{"user", "add", name}
	if role != "" {
		args = append(args, "--role", role)
	}
	line := filepath.Join(home, "line")
	told := regexp.MustCompile(`starling-credentials-1:\S+`).FindString(ask(t, address, "", args...))
	if err := os.WriteFile(line, []byte(told), 0o600); err != nil {
		t.Fatal(err)
	}
	own := []string{"STARLING_ADDRESS=", "STARLING_API=" + address,
		"STARLING_CREDENTIALS=" + filepath.Join(home, "credentials")}
	askWith(t, own, "", "login", line)
	b.do(chromedp.Navigate(strings.TrimSpace(starlingWith(t, `(?m)^http://\S+$`, own, "ui", "--print")[0])))
	b.see(name)
}

// offered lists which buttons of acts the page shows.
func (b *tab) offered(acts []act) (all []string) {
	b.Helper()
	shown := evaluate[[]string](b, `[...document.querySelectorAll('main button')].map((e) => e.ariaLabel || e.textContent.trim())`)
	for _, one := range acts {
		if slices.Contains(shown, one.button) {
			all = append(all, one.button)
		}
	}
	return all
}

// demand asks for something as the page would, and returns what a peer says to that.
func (b *tab) demand(procedure, request string) string {
	b.Helper()
	return evaluate[string](b, fmt.Sprintf(`fetch('/starling.v1.Starling/%s', {method: 'POST', body: %q, headers: {
		'Content-Type': 'application/json', 'Starling-Page': localStorage.getItem('starling-page')}}).then((a) => a.text())`,
		procedure, request))
}

// TestRoles looks for each action as a viewer, an operator of one pool and an admin: users who may do it are asked
// before; others are shown why not, and a peer refuses it with the same words.
func TestRoles(t *testing.T) {
	b := open(t)
	address := starling(t, `API at (\S+)`, "", "dev", "--peers", "2", "--address", "127.0.0.1:0")[1]
	ask(t, address, team, "pool", "apply", "-")
	ask(t, address, stuck+"---"+plain, "run", "-")
	ask(t, address, strings.ReplaceAll(stuck, "6000", "6001"), "run", "--detach", "-")
	inTeam, inDefault := actsOf("team/stuck"), actsOf("plain")[:4]

	b.enter(t, address, "vera", "viewer")
	b.see(`vera viewer`)
	needs := `this needs the role %s in %s, and user %s is %s there`
	drain := fmt.Sprintf(needs, "operator", "the whole cluster", "vera", "viewer")
	b.see(`You may not drain machines: ` + drain)
	b.refuses([]act{{"Drain dev-1", "", "DrainNode", `{"node": "dev-1", "drain": true}`}}, "it needs the role operator")
	b.visit("/job/team/stuck")
	why := fmt.Sprintf(needs, "submitter", "pool team", "vera", "viewer")
	b.see(`You may not change it: ` + why)
	b.see(`Update to version 2 . rolling forward`)
	b.shoot("viewer")
	b.axe("viewer")
	b.refuses(inTeam, why)
	b.visit("/job/team/stuck?instance=server%5B0%5D")
	b.see(`You may not open a shell in it: this needs the role operator in pool team`)
	b.visit("/job/team/stuck")
	b.planned(stuck, `You may not submit this: `+why, "")
	b.planned(team+"  - path: new\n", `You may not apply this: this needs the role admin in the whole cluster`, "")

	b.enter(t, address, "olga", "")
	b.see(`olga operator in team`)
	b.see(`You may not see the whole cluster: ` + fmt.Sprintf(needs, "viewer", "the whole cluster", "olga", "nobody"))
	b.unsee(`^Journal$`)
	b.shoot("operator")
	b.axe("operator")
	b.press("Show the jobs of your pools")
	b.see(`team/stuck`)
	b.unsee(`plain`)
	b.visit("/job/team/stuck")
	b.asks(inTeam)
	b.visit("/job/plain")
	why = fmt.Sprintf(needs, "viewer", "pool default", "olga", "nobody")
	b.see(why)
	b.refuses(inDefault, "and user olga is nobody there")
	b.planned(strings.ReplaceAll(stuck, "6000", "6002"), `version 2`, "Submit")
	b.visit("/job/team/stuck")
	b.see(`Update to version 2 . rolling forward`)
	b.agree("Promote", `Promote the update`)
	b.see(`Update to version 2 . succeeded`)

	b.enter(t, address, "ada", "admin")
	b.see(`ada admin`)
	b.see(`2 machines`)
	b.agree("Drain dev-1", `Drain dev-1: its`)
	b.see(`dev-1 . draining`)
	b.visit("/job/plain")
	b.asks(inDefault)
	b.planned(team+"  - path: new\n", `created +new`, "Apply")
	b.visit("/job/team/stuck")
	b.agree("Stop", `Stop team/stuck for good`)
	b.see(`team/stuck . stopped`)
}

// refuses holds that the page shows none of the acts, and that a peer refuses each with those words.
func (b *tab) refuses(acts []act, words string) {
	b.Helper()
	if shown := b.offered(acts); len(shown) > 0 {
		b.Errorf("the page shows %v", shown)
	}
	for _, one := range acts {
		if said := b.demand(one.procedure, one.request); !strings.Contains(said, words) {
			b.Errorf("%s: a peer says %s, want %q", one.button, said, words)
		}
	}
}

// asks holds that the page shows all of the acts, and asks before each.
func (b *tab) asks(acts []act) {
	b.Helper()
	for _, one := range acts {
		b.press(one.button)
		b.see(one.question)
		b.press("No")
		b.answered()
	}
}

// planned plans a text, sees what is said of it, and whether there is a button to have it done.
func (b *tab) planned(text, says, button string) {
	b.Helper()
	b.visit("/plan")
	b.see(`^Plan it$`)
	b.write("textarea", text)
	b.press("Plan it")
	b.see(says)
	has := evaluate[bool](b, `[...document.querySelectorAll('main button')].some((e) => /^(Submit|Apply)$/.test(e.textContent))`)
	if has != (button != "") {
		b.Errorf("there is a button to have it done (%t), want %q; the page shows:\n%s", has, button, b.text())
	}
}
