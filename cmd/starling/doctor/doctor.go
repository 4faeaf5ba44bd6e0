// Package doctor has the command that looks whether a machine, and the cluster that it is in, are as they should be:
// before the first start, and at any time.
package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/structpb"

	"starling/api/words"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/settings"
)

// grade is how good what was found is.
type grade string

// The grades. With wrong something does not work, or soon will not; with weak it works, and something is missing.
const (
	fine  grade = "ok"
	weak  grade = "weak"
	wrong grade = "wrong"
)

// finding is what a check came to.
type finding struct {
	grade grade
	// check names what was looked at, found says how it is.
	check, found string
	// remedy says what to do; it is empty if nothing is to be done.
	remedy string
}

// New returns "starling doctor". The version is that of this program.
func New(r *remote.Remote, version string) *cobra.Command {
	file := ""
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Look what is wrong with this machine and the cluster, and say what to do",
		Long: `Look at this machine as its agent would find it: what its kernel lets tasks be limited by and contained in, its clock,
ports, disk and limits, containers and certificates. If a peer answers, look at the cluster, too: versions, the quorum, and
whether all peers have the same value. It takes the settings of "starling agent", and may be run before that has ever been
started, and at any time; it changes nothing.

Each line is ok, weak (it works, and something is missing) or wrong. The exit status is 1 if anything is wrong.`,
		Example: "  starling doctor\n  starling doctor --config /etc/starling/agent.yaml",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			config, err := configured(command, r, file)
			if err != nil {
				return err
			}
			return show(r, append(machine(config), cluster(ctx, r, config, version)...))
		},
	}
	command.Flags().StringVar(&file, "config", "", "read the agent's settings from a YAML `FILE`; also STARLING_CONFIG")
	settings.Declare(command)
	return command
}

// configured returns the settings of the agent, and lets its peer be asked: at what the command line or the environment
// say, where nobody may be able to listen, or else at the address of the file.
func configured(command *cobra.Command, r *remote.Remote, file string) (*settings.Agent, error) {
	file = cmp.Or(file, os.Getenv("STARLING_CONFIG"))
	asked := cmp.Or(r.Address, os.Getenv("STARLING_ADDRESS"))
	if flag := command.Flag("address"); !settings.Listens(r.Address) {
		if err := flag.Value.Set(""); err != nil {
			return nil, err
		}
		flag.Changed = false
	}
	config, err := settings.Read(command, file)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "%w", err)
	}
	if asked == "" && file != "" {
		asked = config.Address
	}
	r.Address = asked
	return config, nil
}

// show prints what was found, and fails if something is wrong.
func show(r *remote.Remote, all []finding) error {
	bad := 0
	var rows []any
	for _, f := range all {
		if f.grade == wrong {
			bad++
		}
		rows = append(rows, map[string]any{"grade": string(f.grade), "check": f.check, "found": f.found, "remedy": f.remedy})
	}
	answer, err := structpb.NewStruct(map[string]any{"findings": rows})
	if err != nil {
		return err
	}
	if !r.ForPeople() {
		err = r.Show(answer, nil)
	} else {
		for _, f := range all {
			line := fmt.Sprintf("%-5s  %-12s  %s\n", f.grade, f.check, f.found)
			if f.remedy != "" {
				line += fmt.Sprintf("%-5s  %-12s  → %s\n", "", "", f.remedy)
			}
			err = errors.Join(err, r.Print(line))
		}
	}
	if bad > 0 && err == nil {
		return exit.Fail(exit.Failed, "%s wrong", words.Counted(bad, "thing")+isOrAre(bad))
	}
	return err
}

func isOrAre(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

// unknown is the finding of a check that could not be made.
func unknown(check string, err error) finding {
	return finding{weak, check, "not known: " + err.Error(), ""}
}
