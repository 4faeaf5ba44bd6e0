package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
)

func newJobGraph(r *remote.Remote) *cobra.Command {
	watch := false
	command := &cobra.Command{
		Use:   "graph NAME",
		Short: "Draw the tasks of a job in their order, with how far each is",
		Long: `Draw the tasks of a job, each below one that it comes after, with how far it is: how many of its instances have
succeeded, and for a service how many run. Other tasks that it comes after stand behind it, and the jobs before and after
it behind the job.`,
		Args:              usage.OneArgument("job's NAME"),
		ValidArgsFunction: target.CompleteJob(r),
		RunE: func(command *cobra.Command, args []string) error {
			question := &starlingv1.JobStatusRequest{Job: target.JobName(args[0]), PageSize: 1, Followers: true}
			if watch {
				return watchGraph(command, r, question)
			}
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			answer, err := peer.JobStatus(ctx, question)
			if err != nil {
				return err
			}
			answer.Slots, answer.NextPageToken = nil, ""
			return r.Show(answer, func() *console.Table { return graph(answer, r.Columns()) })
		},
	}
	command.Flags().BoolVarP(&watch, "watch", "w", false, "draw it again whenever it changes, until the job has ended")
	return command
}

// watchGraph draws a job again and again, in place where the terminal can.
func watchGraph(command *cobra.Command, r *remote.Remote, question *starlingv1.JobStatusRequest) error {
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	following, interrupted, release := console.Attached(command.Context(), 0)
	defer release()
	p, last := console.NewProgress(r.Console, nil), ""
	err = peer.FollowJob(following, question, func(answer *starlingv1.JobStatusResponse) (done bool, err error) {
		answer.Slots, answer.NextPageToken = nil, ""
		if !r.ForPeople() {
			return answer.GetJob().GetFinal(), r.ShowNext(answer, nil)
		}
		t, text, final := graph(answer, r.Columns()), strings.Builder{}, answer.GetJob().GetFinal()
		t.Colour = r.OutColour
		if err := t.Write(&text); err != nil || text.String() == last {
			return final, err
		}
		last = text.String()
		return final, p.Draw(last+"\n", foremost(t), final)
	})
	if interrupted() {
		return exit.Silent(exit.Detached)
	}
	return err
}

// foremost returns the row of the first task that is not complete, 0 if all are.
func foremost(t *console.Table) int {
	return 1 + slices.IndexFunc(t.Rows[1:], func(row []string) bool { return row[1] != "complete" })
}

// What a drawing is made of where it has room.
const (
	barCells = 20
	// barCellsMin is the width below which a bar tells nothing.
	barCellsMin = 4
	// flatDepth is from which depth on a tree grows less to the right.
	flatDepth = 10
)

// extent is how much room a drawing has: the cells of a bar, and the characters of a name and of a state, 0 for as many
// as they have.
type extent struct {
	bar, name, state int
}

// graph draws the tasks as trees: each below the one that it comes after which comes last itself, and so likely holds
// it longest. In columns that are too few it has shorter bars, or none, and then shorter texts; 0 columns are enough
// for all.
func graph(answer *starlingv1.JobStatusResponse, columns int) *console.Table {
	g := newGrove(answer)
	t := g.draw(extent{bar: barCells})
	over := t.Width() - columns
	if columns == 0 || over <= 0 {
		return t
	}
	e := extent{bar: barCells - over}
	if e.bar < barCellsMin {
		e.bar = 0
	}
	if t = g.draw(e); t.Width() > columns {
		t = g.draw(extent{bar: e.bar, name: max(columns*2/5, 1), state: max(columns*3/10, 1)})
	}
	return t
}

// draw draws the tasks in some room.
func (g *grove) draw(e extent) *console.Table {
	head := []string{shortened(g.job.GetName(), e.name), g.job.GetStatus()}
	if len(g.jobs) > 0 {
		head = append(head, "after "+strings.Join(g.jobs, ", "))
	}
	if len(g.followers) > 0 {
		head = append(head, "before "+strings.Join(g.followers, ", "))
	}
	t := console.NewTable(head...)
	var draw func(tasks []*starlingv1.TaskSpec, indent string, depth int)
	draw = func(tasks []*starlingv1.TaskSpec, indent string, depth int) {
		for i, spec := range tasks {
			branch, below := g.branch(i == len(tasks)-1, depth)
			task := g.tasks[spec.GetName()]
			cells := []string{shortened(indent+branch+spec.GetName(), e.name), shortened(stateText(task), e.state),
				bar(g.job, spec, task, e.bar)}
			if others := g.others(spec); others != "" {
				cells = append(cells, "also after "+others)
			}
			t.Row(cells...)
			draw(g.below[spec.GetName()], indent+below, depth+1)
		}
	}
	draw(g.below[""], "", 0)
	return t
}

// branch returns what stands before a task at some depth, and before those below it.
func (g *grove) branch(last bool, depth int) (branch, below string) {
	switch {
	case depth == 0:
		return "", ""
	case last && depth < flatDepth:
		return "└─ ", "   "
	case last:
		return "└ ", " "
	case depth < flatDepth:
		return "├─ ", "│  "
	}
	return "├ ", "│"
}

// shortened returns a text with at most so many characters, 0 for as many as it has. Of the lines of a tree, which
// begin alike, the end is what tells.
func shortened(text string, charactersMax int) string {
	characters := []rune(text)
	if charactersMax == 0 || len(characters) <= charactersMax {
		return text
	}
	if indent := strings.IndexFunc(text,
		func(c rune) bool {
			return !strings.ContainsRune("│├└─ ",
				c)
		}); utf8.RuneCountInString(text[:indent]) > charactersMax/2 {
		return "…" + string(characters[len(characters)-charactersMax+1:])
	}
	return console.Cut(text, charactersMax)
}

// grove is the tasks of a job as trees; below "" are the roots.
type grove struct {
	job  *starlingv1.Job
	jobs []string // that come before it
	// followers are the jobs that come after it.
	followers []string
	tasks     map[string]*starlingv1.Task
	specs     map[string]*starlingv1.TaskSpec
	below     map[string][]*starlingv1.TaskSpec
	depth     map[string]int
}

func newGrove(answer *starlingv1.JobStatusResponse) *grove {
	g := &grove{
		job: answer.GetJob(), jobs: answer.GetSpec().GetAfter(), followers: answer.GetFollowers(),
		tasks: map[string]*starlingv1.Task{},
		specs: map[string]*starlingv1.TaskSpec{},
		below: map[string][]*starlingv1.TaskSpec{}, depth: map[string]int{},
	}
	for _, task := range answer.GetTasks() {
		g.tasks[task.GetName()] = task
	}
	for _, spec := range answer.GetSpec().GetTasks() {
		g.specs[spec.GetName()] = spec
	}
	for _, spec := range answer.GetSpec().GetTasks() {
		parent := g.parent(spec)
		g.below[parent] = append(g.below[parent], spec)
	}
	return g
}

// parent returns the task below which another stands, "" for none.
func (g *grove) parent(spec *starlingv1.TaskSpec) string {
	if len(spec.GetAfter()) == 0 {
		return ""
	}
	return slices.MaxFunc(spec.GetAfter(), func(a, b string) int { return cmp.Compare(g.depthOf(a), g.depthOf(b)) })
}

// depthOf returns how many tasks come before one, in the longest row.
func (g *grove) depthOf(name string) int {
	depth, known := g.depth[name]
	if !known {
		for _, before := range g.specs[name].GetAfter() {
			depth = max(depth, g.depthOf(before)+1)
		}
		g.depth[name] = depth
	}
	return depth
}

// others lists the tasks that one comes after, but for the one above it.
func (g *grove) others(spec *starlingv1.TaskSpec) string {
	parent := g.parent(spec)
	return strings.Join(slices.DeleteFunc(slices.Clone(spec.GetAfter()),
		func(name string) bool { return name == parent }), ", ")
}

// stateText says how far a task is, as in "waiting for split, count", "complete, then restart_job at 06:00:05".
func stateText(task *starlingv1.Task) string {
	if task.GetState() == "held" {
		return "waiting for " + strings.Join(task.GetHeldBy(), ", ")
	}
	if task.GetFollows() != "" {
		return task.GetState() + ", then " + console.Times(task.GetFollows(), time.Now())
	}
	return task.GetState()
}

// bar shows how many of the wanted instances have succeeded, or run if the task has no end: "████······ 4 of 10, 3
// running". A bar without cells leaves only the words.
func bar(job *starlingv1.Job, spec *starlingv1.TaskSpec, task *starlingv1.Task, cells int) string {
	c, wanted := task.GetCounts(), max(task.GetCounts().GetDesired(), spec.GetInstances())
	if task.GetSealedBy() != "" {
		wanted = c.GetDesired()
	}
	done, rest := c.GetSucceeded(), &starlingv1.Counts{
		Running: c.GetRunning(), Assigned: c.GetAssigned(), BackingOff: c.GetBackingOff(), Rescheduling: c.GetRescheduling(),
		Unknown:  c.GetUnknown(),
		Stopping: c.GetStopping(), Failed: c.GetFailed(), Stopped: c.GetStopped(),
	}
	if job.GetType() != "batch" {
		done, rest.Running = c.GetRunning(), 0
	}
	full := 0
	if wanted > 0 {
		full = int(min(uint64(done)*uint64(cells)/uint64(wanted), uint64(cells)))
	}
	text := strings.TrimPrefix(fmt.Sprintf("%s%s %d of %d", strings.Repeat("█", full), strings.Repeat("·", cells-full),
		done, wanted), " ")
	if more := tally(rest); more != noInstances {
		text += ", " + more
	}
	if task.GetSealedBy() != "" {
		text += ", sealed"
	}
	return text
}
