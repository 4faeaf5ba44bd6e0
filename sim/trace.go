package sim

import (
	"fmt"
	"io"
	"strings"

	"starling/command"
	"starling/replica/report"
)

// Trace plays one seed and tells its story: a line for everything that happens, with the milliseconds since the
// beginning, and every entry with its commands and effects.
func Trace(seed uint64, o Options, to io.Writer) Report {
	o.trace = to
	return Run(seed, o)
}

// tell writes a line of the story, if it is told.
func (w *World) tell(who, format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%8d  %-6s %s\n", w.now-epoch, who, fmt.Sprintf(format, args...))
	}
}

// tellEntry writes what an entry said and did.
func (w *World) tellEntry(folded *report.Folded) {
	if w.trace == nil {
		return
	}
	e := folded.Entry
	if e == nil {
		w.tell("", "entry %d passed over: %s", folded.Index, folded.Outcome.Dropped)
		return
	}
	w.tell("", "entry %d: number %d of %s, who knew %d", folded.Index, e.Seq, e.Writer, e.Cause)
	if folded.Outcome.Dropped != "" {
		w.tell("", "    passed over: %s", folded.Outcome.Dropped)
		return
	}
	for i, c := range e.Commands {
		refusal := ""
		if r := folded.Outcome.Results[i].Refusal; r.Code != 0 {
			refusal = ": refused: " + r.Reason
		}
		w.tell("", "    %s%s", words(c), refusal)
	}
	for _, effect := range folded.Outcome.Effects {
		what := string(effect.Peer)
		if effect.Slot.Job != "" {
			what = fmt.Sprintf("%s#%d %s", effect.Slot, effect.Order, effect.Node)
		}
		w.tell("", "      -> %s %s %s", what, effect.Kind, strings.TrimSpace(string(effect.By)+" "+effect.Reason))
	}
}

// words returns a command in one line.
func words(c command.Command) string {
	switch c := c.(type) {
	case *command.SubmitJob:
		text := strings.Builder{}
		fmt.Fprintf(&text, "%s %s %s %s:", c.Kind(), c.RequestID, c.Spec.Type, c.Spec.Name)
		for _, t := range c.Spec.Tasks {
			fmt.Fprintf(&text, " %d %s", t.Instances, t.Name)
		}
		return text.String()
	case *command.ReportTasks:
		text := strings.Builder{}
		fmt.Fprintf(&text, "%s of %s:", c.Kind(), c.Peer)
		for _, r := range c.Reports {
			fmt.Fprintf(&text, " job %d task %d [%d]#%d %s %d", r.Slot.Job, r.Slot.Task, r.Slot.Index, r.Order, r.Ended,
				r.ExitCode)
		}
		return text.String()
	case *command.ChangePools:
		text := strings.Builder{}
		fmt.Fprintf(&text, "%s %s against %d: without %q", c.Kind(), c.RequestID, c.Against, c.Gone)
		for _, p := range c.Pools {
			fmt.Fprintf(&text, ", %s %v", p.Path, p.Quotas)
		}
		return text.String()
	case *command.As:
		return fmt.Sprintf("as %s: %s", c.Subject, words(c.Command))
	case *command.Volunteer:
		return fmt.Sprintf("%s of %s: %v", c.Kind(), c.Peer, c.Offer.Capacity)
	}
	return c.Kind().String() + strings.TrimPrefix(fmt.Sprintf(" %+v", c), " &")
}
