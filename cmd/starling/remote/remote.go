// Package remote is the way of a command to a peer: where it answers, for how long it is asked, and how answers are
// printed.
package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/wire"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/usage"
	"starling/trust"
)

// AnswerWithin bounds how long a peer may take to answer what needs no waiting.
const AnswerWithin = 30 * time.Second

// The output formats.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// Remote is what a command that talks to a peer works with.
type Remote struct {
	*console.Console
	// Address is where the peer answers, if the command line says so.
	Address string
	// peer is who was asked last.
	peer *client.Client
	// at is the moment of the past that is asked about, "" for the present; told tells that it was told.
	at   moment
	told bool
	// toldEnds tells that people were told of credentials that end.
	toldEnds bool
	// requestID is what the ids of writes follow from; again tells that an earlier command had it.
	requestID string
	again     bool
	// format is how answers are printed, documents how many have been.
	format    string
	documents int
}

// Declare gives a command, and all below it, the flags that say where and how.
func (r *Remote) Declare(root *cobra.Command) {
	formats := []string{formatTable, formatWide, formatJSON, formatYAML}
	root.PersistentFlags().StringVar(&r.Address, "address", "",
		"`HOST:PORT` of a peer's API, or unix:PATH of its socket, to ask (several: with commas) or to listen on; also STARLING_ADDRESS, or in an instance STARLING_API (default "+client.DefaultAddress+")")
	root.PersistentFlags().StringVarP(&r.format, "output", "o", formatTable,
		"print answers as `FORMAT`: table, wide (a table of all columns), json or yaml")
	root.PersistentFlags().Var(&r.at, "at",
		"ask about the past, at an index, a time, HH:MM, or so long ago: `MOMENT` such as 4711, 2006-01-02T15:04:05Z, 14:30 or -10m")
	root.PersistentPreRunE = func(command *cobra.Command, _ []string) error {
		if !slices.Contains(formats, r.format) {
			return usage.Error(command, fmt.Errorf("unknown output format %q: use %s", r.format, strings.Join(formats, ", ")))
		}
		if r.at.text != "" && command.Annotations[ofThePast] == "" {
			return usage.Error(command, fmt.Errorf("%s has no past: --at is for ps, job status, job history, why, pool ls, "+
				"pool explain, peers, what-if and others that only read", command.CommandPath()))
		}
		r.again = r.requestID != ""
		return nil
	}
	complete := cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)
	if err := root.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err) // the flag was declared above
	}
}

// Dial returns a client of the peers at the address: the flag's, the environment's, that of the only peer of this
// machine, those of the only cluster that the user has credentials for, or the default. On this machine a peer is
// asked by its socket, and knows who calls, unless STARLING_CREDENTIALS says as whom; elsewhere, and from inside an
// instance, with credentials.
func (r *Remote) Dial() (*client.Client, error) {
	file, err := trust.DefaultFile()
	if err != nil {
		return nil, exit.Fail(exit.Failed, "%w", err)
	}
	credentials, err := trust.ReadFile(file)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "%w", err)
	}
	asked := cmp.Or(r.Address, os.Getenv("STARLING_ADDRESS"))
	inside := os.Getenv("STARLING_API")
	if asked == "" && inside != "" {
		addresses, err := client.Addresses(inside)
		if err != nil {
			return nil, exit.Fail(exit.Usage, "%w", err)
		}
		return r.client(addresses, credentials), nil
	}
	addresses, err := client.Addresses(asked)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "%w", err)
	}
	r.tellEnds(credentials)
	chosen := os.Getenv("STARLING_CREDENTIALS") != ""
	if chosen && len(credentials) == 0 {
		return nil, exit.Fail(exit.Usage, "STARLING_CREDENTIALS names %s, and there are no credentials\nhint: `starling login` keeps "+
			"some there", file)
	}
	if asked == "" && len(credentials) == 1 {
		if local, _ := localPeer(client.DefaultAddress, true); local == "" || chosen {
			return r.client(credentials[0].Addresses, credentials), nil
		}
	}
	if !chosen {
		err = useSockets(addresses, asked == "", len(credentials) > 0)
	}
	if err != nil {
		return nil, err
	}
	return r.client(addresses, credentials), nil
}

// useSockets puts the sockets of peers of this machine in the place of their addresses, or that of the only peer here
// if that will do. Whoever is not let in there needs credentials.
func useSockets(addresses []string, orOnly, known bool) error {
	for i, address := range addresses {
		local, denied := localPeer(address, orOnly)
		switch {
		case local != "":
			addresses[i] = local
		case denied != "" && !known:
			return exit.Fail(exit.Denied, "the peer of this machine answers root, its own user and its admin_group, not you "+
				"(%s)\nhint: use sudo, or ask an admin for `starling user add NAME --role ROLE` and keep what it prints with "+
				"`starling login`", denied)
		}
	}
	return nil
}

// tellEnds tells people of credentials that will not count much longer.
func (r *Remote) tellEnds(credentials []*trust.Credentials) {
	for _, one := range credentials {
		if end := one.EndSoon(time.Now()); !end.IsZero() && time.Now().Before(end) && r.ForPeople() && !r.toldEnds {
			r.toldEnds = true
			r.Hint("warning: the credentials of %s end on %s: sign in again, or an admin makes new ones with `starling user add`", one.Identity(),
				console.Time(end))
		}
	}
}

// client asks about the present, or about the moment of the past that was told.
func (r *Remote) client(addresses []string, credentials []*trust.Credentials) *client.Client {
	if r.at.text != "" {
		r.peer = client.NewAt(addresses, r.at.text, credentials...)
		return r.peer
	}
	r.peer = client.New(addresses, credentials...)
	r.peer.Repeatable(r.RequestID(), r.again)
	return r.peer
}

// RequestID returns what the ids of writes follow from.
func (r *Remote) RequestID() string {
	if r.requestID == "" {
		r.requestID = rand.Text()
	}
	return r.requestID
}

// Writes returns the command as one that changes something, and can be repeated when nobody knows whether it did.
func (r *Remote) Writes(command *cobra.Command) *cobra.Command {
	command.Flags().StringVar(&r.requestID, "request-id", "",
		"repeat the command that ended with status 8 and named this `ID`: what it did is not done again")
	return command
}

// localPeer returns the socket of the peer at an address, or of the only peer here if that will do.
func localPeer(address string, orOnly bool) (local, denied string) {
	if strings.HasPrefix(address, wire.UnixPrefix) {
		return address, ""
	}
	if local, denied = wire.LocalPeer(address); local == "" && orOnly {
		only, alsoDenied := wire.LocalPeer("")
		return only, cmp.Or(denied, alsoDenied)
	}
	return local, denied
}

// AnswerContext bounds a request that needs no waiting.
func AnswerContext(command *cobra.Command) (context.Context, context.CancelFunc) {
	return context.WithTimeout(command.Context(), AnswerWithin)
}

// Asking returns a command that asks a peer for what needs no waiting.
func (r *Remote) Asking(ask func(ctx context.Context, peer *client.Client, args []string) error) func(*cobra.Command,
	[]string) error {
	return func(command *cobra.Command, args []string) error {
		ctx, cancel := AnswerContext(command)
		defer cancel()
		peer, err := r.Dial()
		if err != nil {
			return err
		}
		defer peer.Close()
		return ask(ctx, peer, args)
	}
}
