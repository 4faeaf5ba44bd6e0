package peers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"starling/api/difference"
	"starling/api/wire"
	"starling/archive"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/files"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
)

func newJournalBisect(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "bisect PAST [OTHER]",
		Short: "Tell after which entry a peer's value was wrong, and what of it",
		Long: `Tell after which entry the value of a peer was another than it should be, and what of the value differs. PAST is what that
peer has kept: archive/aside in its data directory, where it leaves what it had when it has rebuilt itself, its archive, or a
file of "starling journal export". This program folds the entries anew and compares the digest after each with the one that stands
there.

With OTHER, what another peer has kept, the digests of the two are compared. It asks no peer, and changes nothing.`,
		Example: `  starling journal bisect /var/lib/starling/archive/aside
  starling --address b:7460 journal export other && starling journal bisect /var/lib/starling/archive other`,
		Args: usage.Arguments(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			past, err := files.Past(args[0])
			if err != nil {
				return err
			}
			other := (*archive.Archive)(nil)
			if len(args) == 2 {
				if other, err = files.Past(args[1]); err != nil {
					return err
				}
			}
			p, err := past.Bisect(command.Context(), other)
			if err != nil {
				return files.BadPast(strings.Join(args, ", "), err)
			}
			if err := r.Print(partingText(args, p)); err != nil {
				return err
			}
			if p.Index != 0 {
				return errors.New("a value is not what it should be")
			}
			if damage := damageOf(past, other); damage != nil {
				return exit.Fail(exit.Usage, "%w, and nothing behind that was compared", damage)
			}
			if other == nil {
				r.Hint("if other peers have another value, compare with one: starling --address PEER journal export FILE, and "+
					"starling journal bisect %s FILE", args[0])
			}
			return nil
		},
	}
}

// damageOf says which of two pasts is damaged, and where; other may be nil.
func damageOf(past, other *archive.Archive) error {
	if damage := past.Damage(); damage != nil || other == nil {
		return damage
	}
	return other.Damage()
}

// partingText tells people where a past parts from another, or from what this program makes of its entries.
func partingText(args []string, p *archive.Parting) string {
	b := &strings.Builder{}
	alone := len(args) == 1
	switch {
	case p.Index == 0 && alone:
		fmt.Fprintf(b, "entries %d to %d lead here to what they led to in %s\n", p.First+1, p.Last, args[0])
		return b.String()
	case p.Index == 0:
		fmt.Fprintf(b, "%s and %s have the same values from index %d to %d, as far as both go\n", args[0], args[1], p.First, p.Last)
		return b.String()
	case p.Index == p.First:
		fmt.Fprintf(b, "the values differ already at index %d, the first that can be compared\n", p.Index)
	case p.Folded.Index == 0:
		fmt.Fprintf(b, "the values are the same at index %d, and differ at index %d: what happened between is not told\n", p.Last,
			p.Index)
	default:
		fmt.Fprintf(b, "the values are the same up to entry %d, and differ after entry %d:\n%s", p.Last, p.Index,
			remote.EntryWords(wire.Entry(&p.Folded)))
	}
	fmt.Fprintf(b, "\ndigest %016x  in %s\n", p.Kept, args[0])
	if !alone {
		fmt.Fprintf(b, "digest %016x  in %s\n", p.Other, args[1])
	}
	if p.Here != 0 {
		fmt.Fprintf(b, "digest %016x  as this program folds it: %s\n", p.Here, verdict(args, p))
	}
	if p.Right == nil {
		fmt.Fprintln(b, "\nWhat differs is not told: no value was written down after that.")
		return b.String()
	}
	fmt.Fprintf(b, "\nWhat differs at index %d, from what it should be to what it was:\n", p.Right.Index)
	for _, c := range difference.Between(p.Right, p.Wrong) {
		fmt.Fprintf(b, "  %s %s: %s\n", c.GetKind(), c.GetName(), strings.Join(c.GetDifferences(), ", "))
	}
	for _, line := range difference.Facts(p.Wrong, p.Right) {
		fmt.Fprintf(b, "  %s\n", line)
	}
	return b.String()
}

// verdict says who is wrong.
func verdict(args []string, p *archive.Parting) string {
	switch {
	case p.Altered:
		return "the entry itself is not the same in both, so one of them is of another journal, or was altered"
	case len(args) == 1 || p.Here == p.Other:
		return args[0] + " is wrong; if its peer had this program, suspect its memory or disk"
	case p.Here == p.Kept:
		return args[1] + " is wrong; if its peer had this program, suspect its memory or disk"
	}
	return "neither has that, so this is not the program of either peer: use one of theirs"
}
