// Package past has the commands about what is not now: what would be, and what was.
package past

import (
	"github.com/spf13/cobra"

	"starling/cmd/starling/remote"
)

// Commands returns those of the root.
func Commands(r *remote.Remote) []*cobra.Command {
	return []*cobra.Command{remote.Past(newWhatIf(r))}
}
