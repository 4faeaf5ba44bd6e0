// Package pools has the commands that look at resource pools and change their tree.
package pools

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/draft"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/terms"
	"starling/terms/pool"
)

// New returns "starling pool" with all below it.
func New(r *remote.Remote) *cobra.Command {
	command := &cobra.Command{
		Use:   "pool",
		Short: "Look at resource pools, and change their tree",
		Long: `Look at resource pools, and change their tree. A pool has a reservation, which it is promised, a limit, and a share in
what is left; jobs live in pools with none below, and are named by them: AVMaps/AV-Build/nightly. What a pool may use now,
its entitlement, is computed from these and from what all jobs hold and ask for.`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(remote.Past(newList(r)), remote.Past(newShow(r)), remote.Past(newExplain(r)), r.Writes(newApply(r)),
		remote.Past(newDump(r)), r.Writes(newRemove(r)))
	return command
}

func newList(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "ls [PATH]",
		Short: "List the pools, with what they use, may use and reserve",
		Long: "List the pools, all or those whose paths begin with PATH, with what they use, may use now and reserve of each kind. Of cpu, what\n" +
			"revocable work uses beyond that stands behind a +, as in 1+7.",
		Args:              usage.AtMostOne("PATH"),
		ValidArgsFunction: completePool(r),
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
			answer, err := peer.AllPools(ctx, append(args, "")[0])
			if err != nil {
				return err
			}
			for _, w := range answer.GetWarnings() {
				r.Hint("warning: %s: %s", w.GetPath(), w.GetReason())
			}
			return r.Show(answer, func() *console.Table { return poolTable(answer, len(args) == 0) })
		}),
	}
}

// poolTable draws the tree, with the cluster above it if it is whole.
func poolTable(answer *starlingv1.ListPoolsResponse, whole bool) *console.Table {
	kinds := kindsOf(answer)
	headings := []string{"POOL", "JOBS"}
	for i, k := range kinds {
		heading := strings.ToUpper(k.String())
		if i == 0 {
			heading += " used/entitled/reserved"
		}
		headings = append(headings, heading)
	}
	t := console.NewTable(headings...)
	jobs, used, reserved := uint32(0), [terms.AmountCount]starlingv1.PoolUse{}, terms.Amounts{}
	var rows [][]string
	for _, p := range answer.GetPools() {
		path := terms.PoolPath(p.GetSpec().GetPath())
		parent, name := pool.Split(path)
		spec := draft.PoolSpec(p)
		if whole {
			name = strings.Repeat("  ", strings.Count(string(path), "/")+1) + name
		} else {
			name = string(path)
		}
		row := []string{name, fmt.Sprint(p.GetJobs())}
		for _, k := range kinds {
			u := p.GetUses()[k]
			row = append(row, uses(k, u, spec.Quotas[k].Reservation))
			if parent == "" {
				used[k].Allocated += u.GetAllocated()
				used[k].SlackAllocated += u.GetSlackAllocated()
				reserved[k] += spec.Quotas[k].Reservation
			}
		}
		if parent == "" {
			jobs += p.GetJobs()
		}
		rows = append(rows, row)
	}
	if whole && answer.GetCapacity()[terms.CPU].GetAmount() > 0 { // it is not told to who sees only some pools
		row := []string{"cluster", fmt.Sprint(jobs)}
		for _, k := range kinds {
			used[k].Entitlement = answer.GetCapacity()[k].GetAmount()
			row = append(row, uses(k, &used[k], reserved[k]))
		}
		t.Row(row...)
	}
	t.Rows = append(t.Rows, rows...)
	return t
}

// uses writes what is used, entitled and reserved of a kind. What revocable work uses is a part of the first, but for a
// kind that it uses beyond every entitlement.
func uses(k terms.Kind, u *starlingv1.PoolUse, reserved int64) string {
	used := k.Round(u.GetAllocated())
	if k.Overcommitted() && u.GetSlackAllocated() > 0 {
		used += "+" + k.Round(u.GetSlackAllocated())
	}
	return used + "/" + k.Round(u.GetEntitlement()) + "/" + k.Round(reserved)
}

// kindsOf returns the kinds that there is something of, or that somebody reserves, holds or asks for.
func kindsOf(answer *starlingv1.ListPoolsResponse) (kinds []terms.Kind) {
	for k := range terms.AmountCount {
		matters := answer.GetCapacity()[k].GetAmount() > 0
		for _, p := range answer.GetPools() {
			u := p.GetUses()[k]
			matters = matters || u.GetAllocated()+u.GetDemand()+u.GetSlackDemand() > 0 ||
				draft.PoolSpec(p).Quotas[k].Reservation > 0
		}
		if matters {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

func newShow(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:               "show PATH",
		Short:             "Show a pool: its quotas, and what it uses, waits for, borrows and lends",
		Args:              usage.OneArgument("pool's PATH"),
		ValidArgsFunction: completePool(r),
		RunE: func(command *cobra.Command, args []string) error {
			answer, err := poolStatus(r, command, args[0])
			if err != nil {
				return err
			}
			if !r.ForPeople() {
				return r.Show(answer, nil)
			}
			return drawPool(r, answer)
		},
	}
}

func poolStatus(r *remote.Remote, command *cobra.Command, path string) (*starlingv1.PoolStatusResponse, error) {
	ctx, cancel := remote.AnswerContext(command)
	defer cancel()
	peer, err := r.Dial()
	if err != nil {
		return nil, err
	}
	answer, err := peer.PoolStatus(ctx, terms.PoolPath(path))
	if err == nil {
		r.TellMoment(answer)
	}
	return answer, err
}

// drawPool shows a pool to people.
func drawPool(r *remote.Remote, answer *starlingv1.PoolStatusResponse) error {
	p, spec := answer.GetPool(), draft.PoolSpec(answer.GetPool())
	head := console.NewTable("pool", string(spec.Path))
	head.Row("jobs", fmt.Sprint(p.GetJobs()))
	head.Row("specs", fmt.Sprintf("%d take %s of %s", p.GetSpecs(), terms.Disk.Round(p.GetSpecBytes()),
		terms.Disk.Text(spec.SpecBytesMost())))
	head.Row("owners", console.Dash(strings.Join(spec.Owners, ", ")))
	head.Row("operators", console.Dash(strings.Join(spec.Operators, ", ")))
	head.Row("submitters", console.Dash(strings.Join(spec.Submitters, ", ")))
	head.Row("viewers", console.Dash(strings.Join(spec.Viewers, ", ")))
	head.Row("run as", console.Dash(strings.Join(spec.RunAs, ", ")))
	head.Row("host paths", console.Dash(strings.Join(spec.HostPaths, ", ")))
	head.Row("capabilities", console.Dash(strings.Join(spec.Capabilities, ", ")))
	head.Row("devices", cmp.Or(strings.Join(spec.DeviceKinds, ", "), "all"))
	head.Row("preemption delay", terms.FormatDuration(int64(spec.PreemptionDelayMillis)))
	head.Row("job scheduler", spec.JobScheduler.String())
	head.Row("slack limit", percentText(spec.SlackLimit))
	head.Row("controller limit", percentText(spec.ControllerLimit))
	quotas := console.NewTable("KIND", "RESERVED", "LIMIT", "SHARE", "USED", "WAITS FOR", "ENTITLED", "BORROWED", "LENT")
	slack := console.NewTable("REVOCABLE", "USED", "WAITS FOR", "ENTITLED")
	for k := range terms.AmountCount {
		q, u := spec.Quotas[k], p.GetUses()[k]
		reserved := k.Round(q.Reservation)
		if q.Static {
			reserved += " static"
		}
		quotas.Row(k.String(), reserved, k.Round(q.Limit), fmt.Sprint(q.Share), k.Round(u.GetAllocated()),
			k.Round(u.GetDemand()),
			k.Round(u.GetEntitlement()), k.Round(u.GetBorrowed()), k.Round(u.GetLent()))
		if u.GetSlackAllocated()+u.GetSlackDemand() > 0 {
			slack.Row(k.String(), k.Round(u.GetSlackAllocated()), k.Round(u.GetSlackDemand()), k.Round(u.GetSlackEntitlement()))
		}
	}
	tables := []*console.Table{head, quotas}
	if len(slack.Rows) > 1 {
		tables = append(tables, slack)
	}
	head.Whole = true
	if err := r.Tables(tables...); err != nil {
		return err
	}
	r.Hint("why not more: starling pool explain %s", spec.Path)
	return nil
}

func percentText(p terms.Percent) string {
	if p == terms.NoPercent {
		return "unlimited"
	}
	return fmt.Sprintf("%d %% of the reservation", p)
}

func newExplain(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "explain PATH [KIND]",
		Short: "Tell how a pool's entitlement came about, and what would change it",
		Long: `Tell how a pool's entitlement came about: what its parent has to divide, what the pool and its siblings ask for, what the
reservation and the share gave, what is left over, what keeps the pool from more, and what would help. KIND is cpu, memory,
disk, gpu or peers; without it all is told of those of which the pool gets less than it asks for.`,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usage.Error(command, fmt.Errorf("%s needs a pool's PATH, and takes a KIND", command.CommandPath()))
			}
			if len(args) == 2 {
				if _, known := pool.Kind(args[1]); !known {
					return usage.Error(command, fmt.Errorf("%q is not a KIND: write cpu, memory, disk, gpu or peers", args[1]))
				}
			}
			return nil
		},
		ValidArgsFunction: completePool(r),
		RunE: func(command *cobra.Command, args []string) error {
			answer, err := poolStatus(r, command, args[0])
			if err != nil {
				return err
			}
			if !r.ForPeople() {
				return r.Show(answer, nil)
			}
			return explainPool(r.Out, answer, append(args, "")[1])
		},
	}
}

// explainPool tells the arithmetic of one kind, or of all of which the pool has or wants some.
func explainPool(w io.Writer, answer *starlingv1.PoolStatusResponse, only string) error {
	first := true
	for _, one := range answer.GetExplanations() {
		k, known := pool.Kind(one.GetKind())
		if !known || only != "" && only != one.GetKind() {
			continue
		}
		u := answer.GetPool().GetUses()[k]
		if !first {
			fmt.Fprintln(w)
		}
		first = false
		fmt.Fprintf(w, "%s: %s is entitled to %s\n", one.GetKind(), answer.GetPool().GetSpec().GetPath(),
			k.Round(u.GetEntitlement()))
		if only == "" && !isCut(one, answer.GetPool().GetSpec().GetPath()) && u.GetSlackAllocated()+u.GetSlackDemand() == 0 {
			fmt.Fprintf(w, "  %s, and nothing cuts it\n", one.GetSentences()[0])
			continue
		}
		for _, sentence := range one.GetSentences() {
			fmt.Fprintf(w, "  %s\n", sentence)
		}
		if len(one.GetParts()) > 1 {
			fmt.Fprintln(w)
			if err := partTable(k, one, answer.GetPool().GetSpec().GetPath()).Write(w); err != nil {
				return err
			}
		}
	}
	if first && only != "" {
		fmt.Fprintf(w, "the cluster has no %s, and nothing here asks for any\n", only)
	}
	return nil
}

// isCut tells whether a pool gets less than it asks for.
func isCut(one *starlingv1.PoolExplanation, path string) bool {
	for _, p := range one.GetParts() {
		if p.GetPath() == path {
			return p.GetCut() != ""
		}
	}
	return true // of so many siblings not all are told
}

// partTable lists what each of the pools got that divide what their parent has.
func partTable(k terms.Kind, one *starlingv1.PoolExplanation, self string) *console.Table {
	t := console.NewTable("  POOL", "ASKS FOR", "RESERVED", "GETS", "SHARE", "GETS", "LEFT OVER", "ENTITLED", "CUT BY")
	for _, p := range one.GetParts() {
		name := "  " + p.GetPath()
		if p.GetPath() == self {
			name += " *"
		}
		t.Row(name, k.Round(p.GetAsked()), k.Round(p.GetReservation()), k.Round(p.GetReserved()), fmt.Sprint(p.GetShare()),
			k.Round(p.GetShared()), k.Round(p.GetLeftOver()), k.Round(p.GetEntitlement()), console.Dash(p.GetCut()))
	}
	return t
}

// completePool offers the paths of pools.
func completePool(r *remote.Remote) cobra.CompletionFunc {
	return r.Complete(func(ctx context.Context, peer *client.Client, typed string) (paths []cobra.Completion, err error) {
		answer, err := peer.AllPools(ctx, typed)
		for _, p := range answer.GetPools() {
			paths = append(paths, p.GetSpec().GetPath())
		}
		return paths, err
	})
}
