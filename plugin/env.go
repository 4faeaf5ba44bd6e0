package plugin

import (
	"strconv"
	"strings"

	"starling/terms"
)

// env tells an instance who it is, and where the others of its task are.
type env struct{ bare }

func newEnv(*arguments) Plugin { return &env{} }

// Name returns env.
func (*env) Name() string { return "env" }

// OnInstanceCreate returns the variables. The addresses are in the order of the members, empty for those that wait, and
// left out where they would not fit.
func (*env) OnInstanceCreate(r *Roster, self *Self) (Environment, error) {
	members := r.members(self.Task)
	var addresses []string
	for i := range members {
		addresses = append(addresses, members[i].Address)
	}
	all := []terms.EnvVar{
		{Name: "STARLING_INDEX", Value: strconv.FormatUint(uint64(self.Index), 10)},
		{Name: "STARLING_INSTANCES", Value: strconv.Itoa(len(members))},
		{Name: "STARLING_JOB", Value: string(r.Job)},
		{Name: "STARLING_TASK", Value: string(self.Task)},
	}
	if list := strings.Join(addresses, ","); len(list) <= hostsBytesMax {
		all = append(all, terms.EnvVar{Name: "STARLING_ADDRESSES", Value: list})
	}
	return Environment{Env: all}, nil
}
