// Package words says commands and effects in one line of English each, for people who read the journal.
package words

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"starling/cluster/facts"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/access"
)

// Command says what a command asks for: "submit job web: 1 task, 3 instances".
func Command(c command.Command) string {
	switch c := c.(type) {
	case *command.PrepareJoin:
		return fmt.Sprintf("%s prepares to join (attempt %d)", c.Joiner, c.Attempt)
	case *command.NotifyJoin:
		return fmt.Sprintf("notify %s that it is watched (attempt %d)", c.Joiner, c.Attempt)
	case *command.AcceptJoin:
		return fmt.Sprintf("%s accepts %s as its observer (attempt %d)", c.Joiner, c.Observer, c.Attempt)
	case *command.AbortJoin:
		return fmt.Sprintf("%s gives up attempt %d to join", c.Joiner, c.Attempt)
	case *command.Leave:
		return fmt.Sprintf("%s leaves", c.Peer)
	case *command.Volunteer:
		return fmt.Sprintf("%s %s", c.Peer, offer(&c.Offer))
	case *command.SubmitJob:
		return "submit job " + job(&c.Spec)
	case *command.KillJob:
		return fmt.Sprintf("kill job %s", c.Job) + atOnce(c.Now)
	case *command.ReportTasks:
		return fmt.Sprintf("%s reports %s", c.Peer, reports(c.Reports))
	case *command.TellTime:
		return "tell the time"
	case *command.RaiseRules:
		return fmt.Sprintf("raise the rules to version %d", c.Version)
	}
	return request(c)
}

// request says the commands of users about what is there.
func request(c command.Command) string {
	switch c := c.(type) {
	case *command.SteerUpdate:
		return fmt.Sprintf("%s the update of job %s to version %d", c.Steering, c.Job, c.Version)
	case *command.RevertJob:
		return fmt.Sprintf("revert job %s to version %d", c.Job, c.To)
	case *command.RestartJob:
		if c.Task != "" {
			return fmt.Sprintf("restart task %s of job %s", c.Task, c.Job)
		}
		return fmt.Sprintf("restart job %s", c.Job)
	case *command.SuspendJob:
		if c.Resume {
			return fmt.Sprintf("resume job %s", c.Job)
		}
		return fmt.Sprintf("suspend job %s", c.Job)
	case *command.SealTask:
		return fmt.Sprintf("seal task %s of job %s by %s", c.Slot.Task, c.Slot.Job,
			terms.AllocationID{Slot: c.Slot, Order: c.Order})
	case *command.RemoveVolumes:
		return fmt.Sprintf("remove the volumes %s", c.Volumes)
	case *command.MoveVolumes:
		return fmt.Sprintf("have the volumes %s, copied as %s left them, from now on", c.Volumes,
			terms.AllocationID{Slot: c.Volumes.Slot, Order: c.Order})
	case *command.EndAllocation:
		if c.WithoutVolumes {
			return fmt.Sprintf("give up the volumes of %s", terms.AllocationID{Slot: c.Slot, Order: c.Order}) + atOnce(c.Now)
		}
		if c.Elsewhere {
			return fmt.Sprintf("stop %s, to be replaced elsewhere", terms.AllocationID{Slot: c.Slot, Order: c.Order}) +
				atOnce(c.Now)
		}
		return fmt.Sprintf("restart %s", terms.AllocationID{Slot: c.Slot, Order: c.Order}) + atOnce(c.Now)
	case *command.DrainNode:
		if !c.Drain {
			return fmt.Sprintf("end the drain of node %s", c.Node)
		}
		return fmt.Sprintf("drain node %s within %s", c.Node, time.Duration(c.DeadlineMillis)*time.Millisecond)
	}
	return other(c)
}

func other(c command.Command) string {
	switch c := c.(type) {
	case *command.ChangePools:
		return pools(c)
	case *command.VouchSnapshot:
		return fmt.Sprintf("vouch for the snapshot of entry %d, %d chunks, digest %016x", c.Snapshot.Index, c.Snapshot.Chunks,
			c.Snapshot.Digest)
	case *command.PassTime:
		return fmt.Sprintf("let %d ms pass", c.Millis)
	case *command.Unreadable:
		return "refused unread: " + c.Problem
	}
	return known(c)
}

// known says the commands about who is known.
func known(c command.Command) string {
	switch c := c.(type) {
	case *command.As:
		return fmt.Sprintf("%s, asked by %s", Command(c.Command), c.Subject)
	case *command.AddUser:
		if c.Credential.Key == access.SignInKey(c.Credential.Name) {
			return fmt.Sprintf("let user %s sign in, as %s", c.Credential.Name, c.Credential.Role)
		}
		return fmt.Sprintf("let user %s in with key %s, as %s", c.Credential.Name, c.Credential.Key, c.Credential.Role)
	case *command.RemoveUser:
		return fmt.Sprintf("end the credentials of user %s", c.Name)
	case *command.AddAuthority:
		return fmt.Sprintf("let authority %s sign", access.Authority{Certificate: c.Certificate}.ID())
	case *command.RemoveAuthority:
		return fmt.Sprintf("end authority %s", c.ID)
	case *command.AddToken:
		return fmt.Sprintf("let %d machines join by token %s", c.Token.Uses, c.Token.ID)
	case *command.RemoveToken:
		return fmt.Sprintf("end token %s", c.ID)
	case *command.AdmitNode:
		if c.Token == "" {
			return fmt.Sprintf("node %s has key %s", c.Node, c.Key)
		}
		return fmt.Sprintf("admit node %s with key %s by token %s", c.Node, c.Key, c.Token)
	case *command.RemoveNode:
		return fmt.Sprintf("remove node %s%s", c.Node, map[bool]string{true: ", which is off"}[c.IsOff])
	case *command.TakeSnapshot:
		return "ask for a snapshot"
	}
	return secret(c)
}

// secret says what a command about a secret does; of another it says the name.
func secret(c command.Command) string {
	switch c := c.(type) {
	case *command.PutSecret:
		return fmt.Sprintf("put secret %s/%s", c.Secret.Pool, c.Secret.Name)
	case *command.SealSecret:
		return fmt.Sprintf("seal version %d of secret %s/%s with the newest key", c.Secret.Version, c.Secret.Pool,
			c.Secret.Name)
	case *command.RemoveSecret:
		if c.Version != 0 {
			return fmt.Sprintf("remove version %d of secret %s/%s", c.Version, c.Pool, c.Name)
		}
		return fmt.Sprintf("remove secret %s/%s", c.Pool, c.Name)
	}
	return c.Kind().String()
}

// pools says "change pools a, b and delete c".
func pools(c *command.ChangePools) string {
	var put []terms.PoolPath
	for i := range c.Pools {
		put = append(put, c.Pools[i].Path)
	}
	var parts []string
	if len(put) > 0 {
		parts = append(parts, "change pools "+some(put))
	}
	if len(c.Gone) > 0 {
		parts = append(parts, "delete pools "+some(c.Gone))
	}
	return strings.Join(parts, " and ")
}

// some lists the first few.
func some(paths []terms.PoolPath) string {
	const most = 3
	text := ""
	for i, path := range paths {
		if i == most {
			return fmt.Sprintf("%s, %d more", text, len(paths)-i)
		}
		if i > 0 {
			text += ", "
		}
		text += string(path)
	}
	return text
}

// Effect says what an entry brought about: "placed web.server[2] on node b".
func Effect(e *report.Effect) string {
	text, name := "", e.Slot.String()
	if e.Seat == facts.CanarySeat {
		name += " canary"
	}
	switch e.Kind {
	case report.Joined:
		text = fmt.Sprintf("%s joined", e.Peer)
	case report.Left:
		text = fmt.Sprintf("%s left", e.Peer)
	case report.Placed:
		text = fmt.Sprintf("placed %s on node %s", name, e.Node)
	case report.Started:
		text = fmt.Sprintf("%s runs on node %s", name, e.Node)
	case report.Ended:
		text = fmt.Sprintf("%s ended on node %s", name, e.Node)
	case report.Lost:
		text = fmt.Sprintf("lost %s on node %s", name, e.Node)
	case report.BackingOff:
		text = fmt.Sprintf("%s waits on node %s to start again", name, e.Node)
	case report.Stopping:
		text = fmt.Sprintf("stopping %s on node %s", name, e.Node)
	case report.JobFinished:
		text = fmt.Sprintf("job %s finished", e.Slot.Job)
	case report.Unhealthy:
		text = fmt.Sprintf("%s on node %s counts as failed", name, e.Node)
	case report.Unready:
		text = fmt.Sprintf("%s on node %s is not ready any more", name, e.Node)
	case report.GaveWay:
		return fmt.Sprintf("%s on node %s gives way to %s: %s", name, e.Node, cmp.Or(string(e.By), "a job of another pool"),
			e.Reason)
	case report.Decided:
		return fmt.Sprintf("job %s: %s", e.Slot.Job, e.Reason)
	case report.Updating:
		return fmt.Sprintf("update of job %s %s", e.Slot.Job, e.Reason)
	case report.More:
		text = "and more that is not listed"
	default:
		text = e.Kind.String()
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Count says a number of things: "1 task", "3 tasks".
func Count(n uint64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatUint(n, 10) + " " + one + "s"
}

func job(spec *terms.Job) string {
	instances := uint64(0)
	for i := range spec.Tasks {
		instances += uint64(spec.Tasks[i].Instances)
	}
	return fmt.Sprintf("%s: %s, %s", spec.Name, Count(uint64(len(spec.Tasks)), "task"), Count(instances, "instance"))
}

func offer(o *terms.Offer) string {
	if o.Equal(&terms.Offer{}) {
		return "withdraws its offer"
	}
	var parts []string
	for k, amount := range o.Capacity {
		parts = append(parts, terms.Kind(k).Round(amount)+" "+terms.Kind(k).String())
	}
	for _, d := range o.Devices {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%d %s %s", d.Count, d.Kind, d.Model)))
	}
	if !o.Open() {
		return "is away until " + time.UnixMilli(int64(o.AwayUntil)).UTC().Format(time.RFC3339)
	}
	return "offers " + strings.Join(parts, ", ")
}

func atOnce(now bool) string {
	if now {
		return ", at once"
	}
	return ""
}

// reports says how many allocations run and how many ended in which way.
func reports(all []command.Report) string {
	var counts [facts.EndingCount]uint64
	for _, one := range all {
		counts[one.Ended]++
	}
	parts := []string{}
	for ending, n := range counts {
		if n == 0 {
			continue
		}
		what := facts.Ending(ending).String()
		if facts.Ending(ending) == facts.NotEnded {
			what = "running"
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, what))
	}
	return fmt.Sprintf("%s: %s", Count(uint64(len(all)), "allocation"), strings.Join(parts, ", "))
}

// Counted writes "1 job" or "2 jobs".
func Counted[N ~uint32 | ~int](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
