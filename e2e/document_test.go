package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"starling/api/wire"
	"starling/docs"
)

const (
	// storyTimeout bounds what the commands of one document take together.
	storyTimeout = 4 * time.Minute
	// unrunMax is how many blocks of all documents may say that they cannot run here.
	unrunMax = 12
)

// notRun stands for what a block would have written that needs what is not here.
const notRun = "\x00"

// hour are the documents that TestHour follows on machines that have more than this one does.
var hour = map[string]bool{"first-steps": true, "operating": true}

// hourHas is what they have.
var hourHas = []string{"needs-package", "needs-network"}

// block is a fenced block of a document.
type block struct {
	line  int
	words []string // behind the fence: "sh", perhaps on which machine, perhaps needs-SOMETHING that is not here
	text  string
}

// blocksOf returns the blocks of a document in their order.
func blocksOf(text string) (all []block) {
	open := false
	for i, line := range strings.Split(text, "\n") {
		fence, found := strings.CutPrefix(line, "```")
		switch {
		case found && !open:
			all = append(all, block{line: i + 1, words: strings.Fields(fence)})
			open = true
		case found:
			open = false
		case open:
			all[len(all)-1].text += line + "\n"
		}
	}
	return all
}

// is tells what kind of block it is.
func (b block) is(kind string) bool { return len(b.words) > 0 && b.words[0] == kind }

// machines are where a block runs, needs what it needs that is not everywhere.
func (b block) machines() (machines []string, needs string) {
	for _, word := range b.words[1:] {
		if strings.HasPrefix(word, "needs-") {
			needs = word
		} else {
			machines = append(machines, word)
		}
	}
	if len(machines) == 0 {
		machines = []string{"a"}
	}
	return machines, needs
}

// TestDocuments runs the commands of each document from its beginning to its end, in one terminal or in one for each
// machine. A block of text behind one of commands is what that must have written; "…" stands for anything in it.
func TestDocuments(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the machines of the documents are addresses of the loopback, of which Linux has many")
	}
	unrun := 0
	for _, d := range docs.Topics() {
		blocks := blocksOf(d.Text)
		for _, b := range blocks {
			if b.is("sh") {
				if _, needs := b.machines(); needs != "" && !(hour[d.Name] && slices.Contains(hourHas, needs)) {
					unrun++
				}
			}
		}
		checkExcerpts(t, d, blocks)
		for i, line := range strings.Split(d.Text, "\n") {
			if regexp.MustCompile(`^(    |\t)\$? ?(sudo )?(starling|curl) `).MatchString(line) {
				t.Errorf("docs/%s.md:%d: write commands between lines ```sh and ```, so that they are run here", d.Name, i+1)
			}
		}
		if !slices.ContainsFunc(blocks, func(b block) bool { return b.is("sh") }) {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && strings.Contains(d.Text, "/etc/starling") {
				t.Skip("agents keep their journal on disk")
			}
			play(t, d.Name, blocks)
		})
	}
	if unrun > unrunMax {
		t.Errorf("%d blocks say that they cannot run here, at most %d may", unrun, unrunMax)
	}
}

// checkExcerpts wants code that a document quotes from a file to stand there.
func checkExcerpts(t *testing.T, d docs.Topic, blocks []block) {
	t.Helper()
	for _, b := range blocks {
		if !b.is("go") {
			continue
		}
		code, err := os.ReadFile(filepath.Join("..", append(b.words, "?")[1]))
		if err != nil || !strings.Contains(string(code), b.text) {
			t.Errorf("docs/%s.md:%d: this is not in the file that stands behind ```go (%v)", d.Name, b.line, err)
		}
	}
}

// TestDocumentsCatchBreaches plays blocks that must not pass.
func TestDocumentsCatchBreaches(t *testing.T) {
	for name, text := range map[string]string{
		"a command fails": "```sh\ntrue\nfalse\ntrue\n```\n",
		"in a pipe":       "```sh\nfalse | cat\n```\n",
		"other output":    "```sh\necho one two\n```\n```text\none … three\n```\n",
		"missing line":    "```sh\necho one\n```\n```text\none\ntwo\n```\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			defer s.end()
			if err := s.tell(blocksOf(text)); err == nil {
				t.Error("it passed")
			}
		})
	}
	s := newStory(t)
	defer s.end()
	const good = "```sh\nX=1\nsleep 100 >&2 &\n```\n```sh b\necho other $X\n```\n```sh needs-moon\nexit 1\n```\n" +
		"```sh\necho \"one $X two\"\n```\n```text\none … two\n```\n"
	if err := s.tell(blocksOf(strings.ReplaceAll(good, "$X\n```", "${X-none}\n```"))); err != nil {
		t.Error(err)
	}
}

func play(t *testing.T, name string, blocks []block) {
	s := newStory(t)
	defer s.end()
	if err := s.tell(blocks); err != nil {
		t.Errorf("docs/%s.md:%v", name, err)
	}
}

// story is a document that is followed.
type story struct {
	t        *testing.T
	folder   string
	network  string // begins the addresses of its machines
	machines map[string]*terminal
	late     <-chan time.Time
	// place says where the terminal of a machine is, has what the machines have of what blocks may need.
	place func(machine string, number int) place
	has   []string
}

// stories counts those of this run, so that each has addresses and ports of its own.
var stories atomic.Int32

func newStory(t *testing.T) *story {
	folder, err := os.MkdirTemp("", "story-") // short: sockets live below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	s := &story{t: t, folder: folder, machines: map[string]*terminal{}, late: time.After(storyTimeout),
		network: fmt.Sprintf("127.%d.%d.", 16+os.Getpid()%200, 1+stories.Add(1)%250)}
	s.place = s.onLoopback
	return s
}

// tell runs the blocks. The error begins with the line of what went wrong.
func (s *story) tell(blocks []block) error {
	wrote := ""
	for _, b := range blocks {
		switch {
		case b.is("text") && wrote != notRun:
			if err := matches(wrote, b.text); err != nil {
				return fmt.Errorf("%d: %w\nit wrote:\n%s", b.line, err, wrote)
			}
		case b.is("sh"):
			machines, needs := b.machines()
			if needs != "" && !slices.Contains(s.has, needs) {
				wrote = notRun
				continue
			}
			var err error
			if wrote, err = s.on(machines, b.text); err != nil {
				return fmt.Errorf("%d: %w\nit wrote:\n%s", b.line, err, wrote)
			}
		}
	}
	return nil
}

// on runs a block on all these machines at the same time.
func (s *story) on(machines []string, text string) (wrote string, err error) {
	var running sync.WaitGroup
	said, errs := make([]string, len(machines)), make([]error, len(machines))
	for i, machine := range machines {
		terminal := s.terminal(machine)
		running.Go(func() { said[i], errs[i] = terminal.run(text) })
	}
	running.Wait()
	return strings.Join(said, "\n"), errors.Join(errs...)
}

// matches wants each line of a pattern in the text, in their order; "…" is anything, and a space any number of them.
func matches(text, pattern string) error {
	lines := strings.Split(text, "\n")
	for want := range strings.Lines(pattern) {
		want = strings.TrimSpace(want)
		parts := strings.Split(want, "…")
		for i, part := range parts {
			parts[i] = strings.Join(strings.Fields(regexp.QuoteMeta(" "+part+" ")), ` +`)
		}
		wanted := regexp.MustCompile(`^ *` + strings.Join(parts, `.*`) + ` *$`)
		at := slices.IndexFunc(lines, wanted.MatchString)
		if at < 0 {
			return fmt.Errorf("no line, behind those before, is %q", want)
		}
		lines = lines[at+1:]
	}
	return nil
}

func (s *story) end() {
	for _, m := range s.machines {
		m.end()
	}
}

// terminal is the shell of one machine, in which one block runs after another.
type terminal struct {
	place
	s       *story
	name    string
	input   *os.File
	done    *bufio.Scanner
	doneEnd *os.File
	blocks  int
	ended   chan struct{}
}

// place is where a terminal is.
type place struct {
	command  *exec.Cmd // the shell
	root     string    // where this machine finds that one's files
	folder   string    // what blocks write goes to files there
	prologue string    // what the shell does first
	// swap turns what a document says of real machines into what is of this one.
	swap *strings.Replacer
}

// prologue gives the shell what a machine has and this one has not: systemctl does as the unit says, and scp copies to
// another machine, to the same place.
const prologue = `
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
member() { until grep -q "is a member" agent.out; do kill -0 $agent || { cat agent.out; return 1; }; sleep 0.05; done; }
systemctl() {
	case "$*" in *stop*|*restart*) kill $agent; wait $agent || true;; esac
	case "$*" in *start*|*now*) : >agent.out; starling agent --config "$CONFIG" >>agent.out 2>&1 & agent=$!; member;; esac
}
scp() {
	local to=${2#*:}
	to=$FLOCK/${2%%:*}/${to#$PWD/}
	mkdir -p "$(dirname "$to")" && cp "$1" "$to"
}
`

// onLoopback is a folder and an address of this machine.
func (s *story) onLoopback(machine string, number int) place {
	folder := filepath.Join(s.folder, machine)
	for _, below := range []string{"etc", "home", "tmp"} {
		if err := os.MkdirAll(filepath.Join(folder, below), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	ports := storyPorts.ports()
	at := place{command: exec.Command("bash", "-s"), folder: folder, prologue: prologue,
		swap: strings.NewReplacer("sudo ", "", "/run/starling", wire.OwnSocketFolder(), "/etc/starling", folder+"/etc",
			"/var/lib/starling", folder+"/data", "10.0.0.", s.network, "starling dev", "starling dev --ports "+ports)}
	at.command.Dir = folder
	at.command.Env = []string{"PATH=" + binaryFolder() + ":/usr/sbin:" + os.Getenv("PATH"), "HOME=" + folder + "/home",
		"TMPDIR=" + folder + "/tmp", "STARLING_ADDRESS=" + fmt.Sprintf("%s%d:7460", s.network, number),
		"STARLING_PORTS=" + ports, "STARLING_DATA=" + folder + "/data", "CONFIG=" + folder + "/etc/agent.yaml",
		"FLOCK=" + s.folder}
	return at
}

// terminal returns the shell of a machine, which it starts if it is the first time.
func (s *story) terminal(name string) *terminal {
	if m := s.machines[name]; m != nil {
		return m
	}
	m := &terminal{place: s.place(name, len(s.machines)+1), s: s, name: name, ended: make(chan struct{})}
	script, input, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	done, said, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	m.command.Stdin, m.input, m.doneEnd = script, input, done
	m.command.ExtraFiles = []*os.File{said}
	m.done = bufio.NewScanner(done)
	if err := m.command.Start(); err != nil {
		s.t.Fatal(err)
	}
	script.Close()
	said.Close()
	go func() {
		_ = m.command.Wait() // run sees what it said before
		close(m.ended)
	}()
	s.machines[name] = m
	if wrote, err := m.run(m.prologue); err != nil {
		s.t.Fatal(err, wrote)
	}
	return m
}

// storyPorts are those of tasks.
var storyPorts clusters

// peersFlag is how many peers a cluster to try things has.
var peersFlag = regexp.MustCompile(`--peers (\d+)`)

// run runs a block, and returns what it wrote. What it leaves in the background is waited for until all are members.
func (m *terminal) run(text string) (wrote string, err error) {
	m.blocks++
	out := filepath.Join(m.folder, fmt.Sprintf("block-%d.out", m.blocks))
	text = m.swap.Replace(text)
	if strings.Contains(text, "starling") && strings.HasSuffix(strings.TrimSpace(text), "&") {
		peers := "1"
		if said := peersFlag.FindStringSubmatch(text); said != nil {
			peers = said[1]
		}
		text += "until [ $(starling peers 2>/dev/null | grep -c ' member ') -ge " + peers + " ]; do sleep 0.05; done\n"
	}
	script := fmt.Sprintf("exec >%s 2>&1\nset -euo pipefail\n{\n%s\n} </dev/null\nset +e; echo done >&3\n", out, text)
	if _, err := m.input.WriteString(script); err != nil {
		return "", err
	}
	answered := make(chan error, 1)
	go func() {
		if m.done.Scan() {
			answered <- nil
			return
		}
		answered <- errors.New("a command failed")
	}()
	select {
	case err = <-answered:
	case <-m.ended:
		if err = errors.New("a command failed"); len(answered) > 0 {
			err = <-answered
		}
	case <-m.s.late:
		err = fmt.Errorf("this takes too long: all together more than %s", storyTimeout)
	}
	data, readErr := os.ReadFile(m.root + out)
	return string(bytes.TrimSpace(data)), errors.Join(err, readErr)
}

// end ends the shell, and with it what it left in the background.
func (m *terminal) end() {
	m.input.Close()
	select {
	case <-m.ended:
	case <-time.After(timeout):
		_ = m.command.Process.Kill()
		m.s.t.Errorf("what runs on %s has not ended", m.name)
	}
	m.doneEnd.Close()
}
