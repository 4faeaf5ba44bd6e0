package plugin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"starling/terms"
)

// hostsBytesMax bounds what the lists of names may take in an environment together; the files have them in any case.
const hostsBytesMax = 32 << 10

// svc lets members find each other: the list as files, and in the environment as far as there is room.
type svc struct {
	hosts, dns bool
}

func newSvc(a *arguments) Plugin {
	return &svc{hosts: a.truth("hosts_env", true), dns: a.truth("dns", false)}
}

// ByAddress tells whether members with these plugins connect to each other by address: unless svc is told that machines
// look up their names.
func (s Set) ByAddress() bool {
	return !slices.ContainsFunc(s, func(p Plugin) bool {
		svc, ok := p.(*svc)
		return ok && svc.dns
	})
}

// Name returns svc.
func (*svc) Name() string { return "svc" }

// OnJobAdd refuses tasks that would set the same variables.
func (*svc) OnJobAdd(job *terms.Job) error {
	for i := range job.Tasks {
		variable := terms.VariableName(string(job.Tasks[i].Name))
		for k := range i {
			if terms.VariableName(string(job.Tasks[k].Name)) == variable {
				return fmt.Errorf("tasks %s and %s would set the same variable STARLING_COUNT_%s: rename one",
					job.Tasks[k].Name, job.Tasks[i].Name, variable)
			}
		}
	}
	return nil
}

// OnInstanceCreate returns names and counts by task, and where the files are.
func (s *svc) OnInstanceCreate(r *Roster, self *Self) (Environment, error) {
	env := []terms.EnvVar{
		{Name: "STARLING_MEMBERS", Value: self.Folder},
		{Name: "STARLING_MEMBERS_VERSION", Value: strconv.FormatUint(uint64(r.Version), 10)},
	}
	var hosts []terms.EnvVar
	size := 0
	for i := range r.Tasks {
		t := &r.Tasks[i]
		variable := terms.VariableName(string(t.Name))
		env = append(env, terms.EnvVar{Name: "STARLING_COUNT_" + variable, Value: strconv.Itoa(len(t.Members))})
		list := strings.Join(r.hosts(t.Members), ",")
		hosts = append(hosts, terms.EnvVar{Name: "STARLING_HOSTS_" + variable, Value: list})
		size += len(list)
	}
	if s.hosts && size <= hostsBytesMax {
		env = append(env, hosts...)
	}
	files, err := s.OnJobUpdate(r, self)
	return Environment{Env: env, Files: files}, err
}

// OnJobUpdate returns the list in three forms: hosts for programs that look up names in such a file, the names of each
// task in a file of its own, and all of it in members.json.
func (*svc) OnJobUpdate(r *Roster, _ *Self) ([]File, error) {
	var hosts strings.Builder
	var files []File
	for i := range r.Tasks {
		t := &r.Tasks[i]
		for k := range t.Members {
			if m := &t.Members[k]; m.Address != "" && m.Address != m.Name {
				hosts.WriteString(m.Address + " " + m.Name + "\n")
			}
		}
		files = append(files, File{Path: string(t.Name) + ".hosts", Content: lines(r.hosts(t.Members))})
	}
	return append(files, File{Path: "hosts", Content: []byte(hosts.String())},
		File{Path: "members.json", Content: r.json()}), nil
}

// lines returns texts, each as a line.
func lines(all []string) []byte {
	var text strings.Builder
	for _, line := range all {
		text.WriteString(line + "\n")
	}
	return []byte(text.String())
}
