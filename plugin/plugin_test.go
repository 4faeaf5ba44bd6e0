package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"starling/terms"
	"starling/terms/rules"
)

// TestPlugins plays the files below testdata. A roster is a line for each member: task, number, name, address ("-"
// while it waits) and ports. In the other commands each line of the input is a plugin with its arguments.
//
//	roster job=a/b version=7   the list from here on
//	check                      what is wrong with the requests, or with a job of these tasks
//	create self=worker[1]      what a new instance gets
//	update self=worker[1]      the files after a change
//	delete                     the files with secrets
//
// With of=pytorch only what this plugin gives is shown.
func TestPlugins(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		r := &Roster{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "roster" {
				r = rosterOf(t, d)
				return ""
			}
			set, err := NewSet(requestsOf(d.Input), rules.First)
			if err != nil {
				return err.Error() + "\n"
			}
			if d.HasArg("of") {
				var only string
				d.ScanArgs(t, "of", &only)
				set = slices.DeleteFunc(set, func(p Plugin) bool { return p.Name() != only })
			}
			self := &Self{Folder: "/run/members"}
			if d.HasArg("folder") {
				d.ScanArgs(t, "folder", &self.Folder)
			}
			if d.HasArg("self") {
				var who string
				d.ScanArgs(t, "self", &who)
				task, number, _ := strings.Cut(strings.TrimSuffix(who, "]"), "[")
				self.Task, self.Index = terms.TaskName(task), numberOf(t, number)
			}
			var environment Environment
			switch d.Cmd {
			case "check":
				if err = set.OnJobAdd(specOf(r)); err == nil {
					return "sound\n"
				}
			case "create":
				environment, err = set.OnInstanceCreate(r, self)
			case "update":
				environment.Files, err = set.OnJobUpdate(r, self)
			default:
				t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			}
			if err != nil {
				return err.Error() + "\n"
			}
			return environment.String()
		})
	})
}

// keyNames stand for the keys.
var keyNames = [...]string{
	NoKey: "", LoginPrivate: "(login, private)\n", LoginPublic: "(login, public)\n", HostPrivate: "(host, private)\n",
	HostPublic: "(host, public)\n",
}

// String returns the environment as a text for people.
func (o Environment) String() string {
	var out strings.Builder
	for _, v := range o.Env {
		fmt.Fprintf(&out, "%s=%s\n", v.Name, v.Value)
	}
	for _, f := range o.Files {
		secret := ""
		if f.Secret {
			secret = " (secret)"
		}
		fmt.Fprintf(&out, "-- %s%s\n%s%s", f.Path, secret, f.Content, keyNames[f.Key])
	}
	return out.String()
}

func numberOf(t *testing.T, text string) uint32 {
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(number)
}

func rosterOf(t *testing.T, d *datadriven.TestData) *Roster {
	var job, version string
	d.ScanArgs(t, "job", &job)
	d.ScanArgs(t, "version", &version)
	r := &Roster{Job: terms.JobName(job), Version: terms.Index(numberOf(t, version))}
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		name := terms.TaskName(words[0])
		if r.task(name) == nil {
			r.Tasks = append(r.Tasks, Task{Name: name})
		}
		if len(words) == 1 {
			continue // a task without members
		}
		m := Member{Index: numberOf(t, words[1]), Name: words[2], Address: strings.TrimPrefix(words[3], "-")}
		for _, word := range words[4:] {
			port, number, _ := strings.Cut(word, "=")
			m.Ports = append(m.Ports, Port{Name: port, Number: uint16(numberOf(t, number))})
		}
		r.task(name).Members = append(r.task(name).Members, m)
	}
	return r
}

// specOf returns a job of which the roster may be one: each task asks for the ports of its first member.
func specOf(r *Roster) *terms.Job {
	job := &terms.Job{Name: r.Job}
	for _, t := range r.Tasks {
		spec := terms.Task{Name: t.Name, Instances: uint32(len(t.Members))}
		for i := 0; i < len(t.Members) && i == 0; i++ {
			for _, p := range t.Members[i].Ports {
				spec.Ports = append(spec.Ports, terms.PortRequest{Name: p.Name})
			}
		}
		job.Tasks = append(job.Tasks, spec)
	}
	return job
}

func requestsOf(input string) (all []terms.PluginRequest) {
	for line := range strings.Lines(input) {
		words := strings.Fields(line)
		request := terms.PluginRequest{Name: words[0]}
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			request.Arguments = append(request.Arguments, terms.EnvVar{Name: name, Value: value})
		}
		all = append(all, request)
	}
	return all
}

// every returns all plugins, and a job of as many workers.
func every(t *testing.T, workers int) (Set, *Roster) {
	var requests []terms.PluginRequest
	for _, name := range Names(rules.First) {
		requests = append(requests, terms.PluginRequest{Name: name})
	}
	set, err := NewSet(requests, rules.First)
	if err != nil {
		t.Fatal(err)
	}
	r := &Roster{Job: "train", Version: 7, Tasks: []Task{
		{Name: "master", Members: []Member{{Name: "0.master.train.starling", Address: "10.1.0.0"}}}, {Name: "worker"},
	}}
	for i := range workers {
		r.Tasks[1].Members = append(r.Tasks[1].Members, Member{
			Index: uint32(i), Name: fmt.Sprintf("%d.worker.train.starling", i), Address: fmt.Sprintf("10.0.%d.%d", i/256, i%256),
		})
	}
	return set, r
}

// TestNothingTwice asks all plugins at once: no variable and no file is given twice, and what is given at the start is
// what an update gives.
func TestNothingTwice(t *testing.T) {
	set, r := every(t, 3)
	self := &Self{Task: "master", Folder: "/f"}
	environment, err := set.OnInstanceCreate(r, self)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(environment.Env); i++ {
		if environment.Env[i-1].Name >= environment.Env[i].Name {
			t.Errorf("%s comes after %s", environment.Env[i].Name, environment.Env[i-1].Name)
		}
	}
	for i := 1; i < len(environment.Files); i++ {
		if environment.Files[i-1].Path >= environment.Files[i].Path {
			t.Errorf("%s comes after %s", environment.Files[i].Path, environment.Files[i-1].Path)
		}
	}
	files, err := set.OnJobUpdate(r, self)
	if err != nil || !reflect.DeepEqual(files, environment.Files) {
		t.Errorf("an update of the same version gives other files: %v", err)
	}
}

// TestMembersAreJSON compares what is written by hand with the standard library's reading of it.
func TestMembersAreJSON(t *testing.T) {
	odd := "a\"\\\n\x01é\u2028\xff"
	r := &Roster{Job: "a/b", Version: 1<<64 - 1, Tasks: []Task{{Name: "none"}, {Name: "two", Members: []Member{
		{Index: 1<<32 - 1, Name: odd, Address: "::1", Ports: []Port{{"a", 1}, {"b", 65535}}}, {Name: "x"},
	}}}}
	var got struct {
		Job     string
		Version uint64
		Tasks   []struct {
			Name    string
			Members []struct {
				Index         uint32
				Name, Address string
				Ports         map[string]uint16
			}
		}
	}
	if err := json.Unmarshal(r.json(), &got); err != nil {
		t.Fatalf("%v\n%s", err, r.json())
	}
	first := got.Tasks[1].Members[0]
	if got.Job != "a/b" || got.Version != 1<<64-1 || len(got.Tasks[0].Members) != 0 || len(got.Tasks[1].Members) != 2 ||
		first.Index != 1<<32-1 || first.Name != strings.ToValidUTF8(odd, "\uFFFD") || first.Ports["b"] != 65535 {
		t.Errorf("got %+v", got)
	}
}

// TestManyMembers has more members than fit into an environment: their names are in the files alone, and what a
// framework needs in its environment is refused.
func TestManyMembers(t *testing.T) {
	for _, c := range []struct {
		workers int
		hosts   bool
		wrong   string
	}{{1000, true, ""}, {2000, false, ""}, {10000, false, "plugin mpi: MPI_HOST would have "}} {
		set, r := every(t, c.workers)
		environment, err := set.OnInstanceCreate(r, &Self{Task: "master", Folder: "/f"})
		if got := fmt.Sprint(err); c.wrong == "" && err != nil || !strings.Contains(got, c.wrong) {
			t.Errorf("%d workers: %v, want %q", c.workers, err, c.wrong)
		}
		if err == nil && strings.Contains(environment.String(), "STARLING_HOSTS_WORKER=") != c.hosts {
			t.Errorf("%d workers: STARLING_HOSTS_WORKER is there: %v, want %v", c.workers, !c.hosts, c.hosts)
		}
	}
}

func TestErrors(t *testing.T) {
	_, r := every(t, 1)
	set, err := NewSet([]terms.PluginRequest{{Name: "pytorch",
		Arguments: []terms.EnvVar{{Name: "port", Value: "rendezvous"}}}}, rules.First)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.OnInstanceCreate(r, &Self{Task: "worker"}); !errors.Is(err, ErrWaits) {
		t.Errorf("the port of a master without a node: %v, want ErrWaits", err)
	}
}
