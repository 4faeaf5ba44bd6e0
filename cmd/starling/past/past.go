// Package past has the commands about what is not now: what would be, and what was.
package past

import (
	"github.com/spf13/cobra"

	"starling/cmd/starling/remote"
)

// Commands returns those of the root. The version is that of this program.
func Commands(r *remote.Remote, version string) []*cobra.Command {
	return []*cobra.Command{remote.Past(newWhatIf(r)), newDiff(r), newBlame(r), newReport(r), newBackup(r),
		newReplay(r, version),
		newUpgrade(r, version)}
}
