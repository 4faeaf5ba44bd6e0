package remote

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// completeWithin bounds how long a shell waits for names.
const completeWithin = 200 * time.Millisecond

// CompletionContext bounds a request on behalf of a shell, which may come without a context.
func CompletionContext(command *cobra.Command) (context.Context, context.CancelFunc) {
	ctx := command.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	return context.WithTimeout(ctx, completeWithin)
}
