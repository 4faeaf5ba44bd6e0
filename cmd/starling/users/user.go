package users

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/door"
	"starling/api/wire"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/terms/access"
	"starling/trust"
)

// signInLife is for people.
var signInLife = fmt.Sprintf("%d hours", int(door.SignInLife.Hours()))

func newUser(r *remote.Remote) *cobra.Command {
	command := usage.Group("user", "Let people and programs use the cluster", newUserAdd(r), newUserList(r), newUserRemove(r))
	command.Long = `Let people and programs use the cluster. On a machine that runs a peer, root, the peer's own user and the members of
its admin_group are admins without anything; everyone else needs credentials, which name one of the roles:

  viewer      sees everything: jobs, nodes, pools, the journal, outputs
  submitter   also runs, changes and stops jobs
  operator    also ends single allocations and drains nodes
  admin       also changes pools and rules, and lets machines and users in

A role holds in the whole cluster. Pools give roles to users, too, for themselves and all below them: name the user in the
viewers, submitters, operators or owners of a pool, see starling pool apply. Who needs no more gets credentials without a
role.`
	return command
}

func newUserAdd(r *remote.Remote) *cobra.Command {
	request := door.UserRequest{}
	life := ""
	command := &cobra.Command{
		Use:   "add NAME",
		Short: "Print credentials for a user",
		Long: `Print a line of credentials, which its user keeps with "starling login". The key in it is made here and goes nowhere
else. Credentials count until they expire, or until the user is removed.

With --oidc the user signs in with the cluster's OpenID Connect provider instead, "starling login --oidc": NAME is what the
provider calls the user in the claim that the agents' setting oidc.claim names. What is printed then tells where the cluster
is and how to know it; it is the same for all users, and no secret.

A lower role than a user has is that of all credentials of the name from then on; a higher one lasts as long as they do.`,
		Example: `  (umask 077; starling user add alice --role submitter > alice.credentials)
  starling login alice.credentials           # as alice, on her machine
  starling user add bob@example.org --role operator --oidc`,
		Args: usage.OneArgument("user's name"),
		RunE: func(command *cobra.Command, args []string) error {
			lasts, err := duration(command, "life", life)
			if err != nil {
				return err
			}
			if _, err := access.ParseRole(request.Role); err != nil && request.Role != "" {
				return usage.Error(command, fmt.Errorf("--role: %w", err))
			}
			if request.OIDC && command.Flags().Changed("life") {
				return usage.Error(command, fmt.Errorf("--life is for credentials: who signs in has some for %s each time", signInLife))
			}
			request.Name, request.LifeSeconds = args[0], int64(lasts.Seconds())
			if request.OIDC {
				return letSignIn(r, request)(command, args)
			}
			return r.Asking(func(ctx context.Context, peer *client.Client, _ []string) error {
				made, err := peer.AddUser(ctx, request)
				if err != nil {
					return notKept(err)
				}
				made.Addresses = addressesFirst(ctx, peer, made.Addresses[0])
				line, err := made.Line()
				if err != nil {
					return err
				}
				fmt.Fprintln(r.Out, line)
				r.Hint("good for %s; %s keeps it with: starling login LINE, or a file with it", life, request.Name)
				return nil
			})(command, args)
		},
	}
	command.Flags().StringVar(&request.Role, "role", "",
		"what the user may do in the whole cluster: `ROLE` is "+strings.Join(access.RoleNames(), ", ")+
			" (default: only what pools give)")
	command.Flags().StringVar(&life, "life", fmt.Sprintf("%dh", int(door.UserLife.Hours())),
		"how long the credentials are good for, a `DURATION`")
	command.Flags().BoolVar(&request.OIDC, "oidc", false, "let the user sign in, and print no credentials")
	return command
}

func newLogin(r *remote.Remote) *cobra.Command {
	pem, oidc, here := "", false, false
	command := &cobra.Command{
		Use:   "login FILE|LINE",
		Short: "Keep credentials for a cluster",
		Long: `Keep the credentials that "starling user add" has printed, in a file that nobody else can read: that of
STARLING_CREDENTIALS, or starling/credentials in XDG_CONFIG_HOME or ~/.config. Commands find it there for all addresses of
that cluster; a peer of this machine knows root and its own user without, unless STARLING_CREDENTIALS is set. Credentials for a cluster replace those that were kept for it. FILE "-" is standard input.

With --oidc you sign in with a browser, on this machine or another: LINE is what "starling user add --oidc" has printed, and
without one you sign in again to the cluster that you have credentials for. They are good for ` + signInLife + ` then. With
--here the browser must be on this machine, and there is no code to enter: open the page that is named.

With --pem they are kept as files for programs such as Prometheus and curl instead: ca.pem, cert.pem and key.pem. Peers are
known by ca.pem under the name node.starling, whatever their addresses. The files do not follow a new certificate authority
by themselves: the same command brings them to it, for what the line says is renewed first.`,
		Example: `  starling login alice.credentials
  starling login --oidc cluster.line
  starling login --oidc --here
  starling login prometheus.credentials --pem /etc/starling/prometheus`,
		Args: func(command *cobra.Command, args []string) error {
			if oidc {
				return usage.AtMostOne("line, or file with it")(command, args)
			}
			return usage.OneArgument("file with credentials, or line of them")(command, args)
		},
		RunE: func(command *cobra.Command, args []string) error {
			if here && !oidc {
				return usage.Error(command, errors.New("--here says how to sign in: it needs --oidc"))
			}
			if oidc {
				fresh, err := signIn(command.Context(), r, args, here)
				if err != nil {
					return err
				}
				return keep(r, fresh, pem)
			}
			line, err := lineOf(args[0], trust.CredentialsPrefix, r.In)
			if err != nil {
				return exit.Fail(exit.Usage, "read credentials: %w", err)
			}
			fresh, err := trust.ParseCredentials(line)
			if err != nil {
				return exit.Fail(exit.Usage, "%w", err)
			}
			if pem != "" {
				if fresh, err = renewed(command.Context(), r, fresh); err != nil {
					return err
				}
			}
			return keep(r, fresh, pem)
		},
	}
	command.Flags().StringVar(&pem, "pem", "", "write files for other programs into `FOLDER` instead")
	command.Flags().BoolVar(&oidc, "oidc", false, "sign in with the cluster's OpenID Connect provider")
	command.Flags().BoolVar(&here, "here", false, "with a browser of this machine, which brings the sign-in back by itself")
	return command
}

// renewed returns credentials by the newest authority, which other programs do not ask for by themselves. While no node
// answers that can make them, those that there are may count yet.
func renewed(ctx context.Context, r *remote.Remote, known *trust.Credentials) (*trust.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	fresh, err := client.RenewUser(ctx, known)
	var failure *wire.Failure
	switch {
	case err == nil:
		return fresh, nil
	case errors.As(err, &failure) && failure.Code == wire.Denied:
		return nil, err
	}
	r.Hint("warning: the credentials are as they stand in the line, for they could not be renewed: %v", err)
	return known, nil
}

// renewWithin bounds how long nodes may take to renew credentials.
const renewWithin = 10 * time.Second

// keep keeps credentials for commands, or in a folder for other programs.
func keep(r *remote.Remote, fresh *trust.Credentials, folder string) error {
	if folder != "" {
		if err := fresh.WritePEM(folder); err != nil {
			return err
		}
		r.Hint("%s of cluster %s: ca.pem, cert.pem and key.pem are in %s", fresh.Identity(), fresh.Identity().Cluster, folder)
		return nil
	}
	file, err := trust.DefaultFile()
	if err != nil {
		return err
	}
	if err := trust.Keep(file, fresh); err != nil {
		return err
	}
	r.Hint("%s of cluster %s: kept in %s", fresh.Identity(), fresh.Identity().Cluster, file)
	return nil
}

// lineOf returns a line that an argument is, or that stands in the file that it names.
func lineOf(argument, prefix string, input io.Reader) (string, error) {
	if strings.HasPrefix(argument, prefix) {
		return argument, nil
	}
	return readLine(argument, input)
}

// readLine reads a file with one line of credentials.
func readLine(path string, input io.Reader) (string, error) {
	if path == "-" {
		text, err := io.ReadAll(io.LimitReader(input, 1<<20))
		return string(text), err
	}
	text, err := os.ReadFile(path)
	return string(text), err
}
