package remote

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
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

// Complete offers what a peer lists for the only argument of a command; nothing if none answers.
func (r *Remote) Complete(list func(ctx context.Context, peer *client.Client, typed string) ([]cobra.Completion,
	error)) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := CompletionContext(command)
		defer cancel()
		peer, err := r.Dial()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := list(ctx, peer, typed)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}
