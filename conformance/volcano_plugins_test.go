package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"starling/plugin"
	"starling/terms"
	"starling/terms/rules"
)

// The differences from Volcano in what plugins give. Each holds for every file.
var (
	hcclRank = &difference{name: "same rank",
		reason: "there is no plugin hcclrank, which writes an annotation for the devices of one maker: " +
			"compared is the rank that pytorch gives"}
	portNotTold = &difference{name: "port not told",
		reason: "the case expects a port that none of its arguments names: it is passed as one"}
	ownPort = &difference{name: "own port",
		reason: "ports are asked for in the job file and given by the scheduler: no plugin opens any, " +
			"so none has to keep what is open already"}
	toldAtOnce = &difference{name: "told at once",
		reason: "a job without the task that its plugin needs is refused when it is submitted; " +
			"there it runs, and gets nothing"}
	mpirunTold = &difference{name: "mpirun told",
		reason: "where mpirun finds the workers and how it logs in to them is told by variables of Open MPI; " +
			"there each user passes it as arguments: these variables are not compared"}
	refusedArgument = &difference{name: "refused argument",
		reason: "what is no port is refused, and not replaced by the default in silence"}
	countsStay = &difference{name: "counts stay",
		reason: "how many members a task has is given in any case: what can be left out are the lists, which may be long"}
	ownFolder = &difference{name: "own folder",
		reason: "keys are below the instance's folder and not in the home of root, which is the machine's own"}
)

// pluginCase is a job with plugins, and what one of its instances gets.
type pluginCase struct {
	ID, Kind, Title, Source, Basis, Note string
	Given                                struct {
		Job    *pluginJob
		Params []string
	}
	When struct {
		Instance *struct {
			Group string
			Index uint32
			// Port and Env are what the instance has already.
			Port *struct {
				Name string
				Port int
			} `yaml:"containerPort"`
			Env map[string]string
			// CreatedWhen says how many instances tasks had when this one was created.
			CreatedWhen map[string]int `yaml:"createdWhen"`
			// Rank is what an annotation says already.
			Rank *string `yaml:"rankAnnotation"`
		}
	}
	Then struct {
		Env map[string]string
		// Absent are variables that must not be given, FilesPresent tells that the lists are there as files.
		Absent       []string       `yaml:"envAbsent"`
		FilesPresent bool           `yaml:"filesPresent"`
		JSON         map[string]any `yaml:"envJson"`
		Files        map[string][]string
		// Hosts are the files and variables of svc by their keys.
		Hosts   map[string]any
		Port    *int
		KeyPath string `yaml:"keyPath"`
		Rank    *int
		// Ports and Role are told by the arguments that ray starts with.
		Ports            []int
		Role             string
		Service, Command any
	}
	// svc tells that the lists of names are asked for by name.
	svc bool
}

// pluginJob is a job; Plugins are names, or lead from names to arguments.
type pluginJob struct {
	Name, Queue  string
	UID          any
	Plugins      any
	Groups       []pluginGroup
	MinAvailable *int `yaml:"minAvailable"`
	MinSuccess   *int `yaml:"minSuccess"`
}

type pluginGroup struct {
	Name, Hostname, Subdomain string
	Replicas                  int
	Request                   quantities
	Priority                  int
	MinAvailable              *int `yaml:"minAvailable"`
}

// plugins runs a file of cases about plugins.
func plugins(f *sheet) {
	f.runScenarios(func(t *trial, s *scenario, differences tally) {
		c := &pluginCase{}
		s.read(t, c)
		switch c.Kind {
		case "plugin-env", "hosts", "plugin-ssh", "plugin-ray":
			c.run(t, differences)
		default:
			t.Fatalf("no rule for kind %s", c.Kind)
		}
	})
}

// keyPathDefault is where upstream puts keys (in two parts: it looks like a path of one machine), folder where it puts
// lists.
const keyPathDefault, folder = "/" + "root/.ssh", "/etc/volcano"

func (c *pluginCase) run(t *trial, differences tally) {
	requests, excluded := c.requests(t, differences)
	c.complete()
	r, job, fixed := c.Given.Job.roster()
	if form := cmp.Or(c.excluded(fixed), excluded); form != "" {
		t.leaveOut(form)
	}
	set, err := plugin.NewSet(requests, rules.First)
	refused := err
	if err == nil {
		refused = set.OnJobAdd(job)
	}
	switch {
	case refused == nil:
	case c.Kind == "plugin-ssh" && c.Then.Port != nil && *c.Then.Port == 22:
		t.Log(refused)
		differences.state(t, refusedArgument)
		return
	case err != nil:
		t.Fatal(err)
	default:
		t.Log(refused)
		differences.state(t, toldAtOnce)
		for _, line := range c.compare(newGiven(&plugin.Environment{})) { // a job that is refused gets nothing
			t.Error(line)
		}
		return
	}
	self := &plugin.Self{Folder: folder}
	if i := c.When.Instance; i != nil {
		self.Task, self.Index = terms.TaskName(i.Group), i.Index
	} else {
		self.Task = r.Tasks[0].Name
	}
	environment, err := set.OnInstanceCreate(r, self)
	if err != nil {
		t.Fatal(err)
	}
	g := newGiven(&environment)
	c.stateDifferences(t, g, differences)
	for _, line := range c.compare(g) {
		t.Error(line)
	}
}

// complete gives a case without a job one, and tasks the numbers that they had when the instance was created.
func (c *pluginCase) complete() {
	if c.Given.Job == nil {
		c.Given.Job = &pluginJob{Name: "job", Groups: []pluginGroup{{Name: "task", Replicas: 1}}}
		if c.Kind == "plugin-ray" {
			c.Given.Job.Groups = []pluginGroup{{Name: "head", Replicas: 1}, {Name: "worker", Replicas: 1}}
		}
	}
	if i := c.When.Instance; i != nil {
		for k := range c.Given.Job.Groups {
			if count, told := i.CreatedWhen[c.Given.Job.Groups[k].Name]; told {
				c.Given.Job.Groups[k].Replicas = count
			}
		}
	}
}

// excluded returns the form for which the case is left out, "" if it is run.
func (c *pluginCase) excluded(fixed bool) string {
	switch {
	case fixed:
		return "hostname"
	case c.Then.KeyPath != "" && c.Then.KeyPath != keyPathDefault:
		return "path"
	case c.Then.Service != nil:
		return "network"
	case c.Then.Command != nil:
		return "command"
	case c.When.Instance != nil && c.When.Instance.Rank != nil:
		return "own rank"
	}
	return ""
}

// isCount tells whether a variable holds how many members a task has.
func isCount(name string) bool { return strings.HasSuffix(name, "_NUM") }

// stateDifferences says what is not compared of a case that is run.
func (c *pluginCase) stateDifferences(t *trial, g *given, differences tally) {
	if len(g.mpirun) > 0 {
		differences.state(t, mpirunTold)
	}
	if c.Then.KeyPath == keyPathDefault {
		differences.state(t, ownFolder)
	}
	if slices.ContainsFunc(c.Then.Absent, isCount) {
		differences.state(t, countsStay)
	}
	if i := c.When.Instance; c.Then.Port != nil && i != nil && i.Port != nil {
		differences.state(t, ownPort)
	}
}

// roster returns the members of the job and the job itself; fixed tells that several instances would have one name.
func (j *pluginJob) roster() (r *plugin.Roster, job *terms.Job, fixed bool) {
	r, job = &plugin.Roster{Job: terms.JobName(j.Name), Version: 1}, &terms.Job{Name: terms.JobName(j.Name)}
	for _, g := range j.Groups {
		fixed = fixed || g.Hostname != "" && g.Replicas > 1
		task := plugin.Task{Name: terms.TaskName(g.Name)}
		for i := range g.Replicas {
			host, domain := g.Hostname, g.Subdomain
			if host == "" {
				host = fmt.Sprintf("%s-%s-%d", j.Name, g.Name, i)
			}
			if domain == "" {
				domain = j.Name
			}
			task.Members = append(task.Members, plugin.Member{Index: uint32(i), Name: host + "." + domain, Address: "10.0.0.1"})
		}
		r.Tasks = append(r.Tasks, task)
		job.Tasks = append(job.Tasks, terms.Task{Name: task.Name, Instances: uint32(g.Replicas)})
	}
	return r, job, fixed
}

// requests returns what the case asks for; excluded is why it cannot be run, if so.
func (c *pluginCase) requests(t *trial, differences tally) (all []terms.PluginRequest, excluded string) {
	asked := map[string][]terms.EnvVar{}
	if c.When.Instance != nil && len(c.When.Instance.Env) > 0 {
		return nil, "own env"
	}
	switch {
	case c.Kind == "plugin-ssh":
		asked["ssh"] = argumentsOf(t, c.Given.Params)
	case c.Kind == "plugin-ray":
		asked["ray"] = argumentsOf(t, c.Given.Params)
	case c.Given.Job != nil && c.Given.Job.Plugins != nil:
		asked = pluginsOf(t, c.Given.Job.Plugins)
	case c.Kind == "hosts":
		asked["svc"] = argumentsOf(t, c.Given.Params)
	}
	for _, name := range sortedKeys(asked) {
		arguments, why := c.translate(t, name, asked[name], differences)
		if why != "" {
			return nil, why
		}
		c.svc = c.svc || name == "svc"
		if name == "hcclrank" {
			name = "pytorch"
			differences.state(t, hcclRank)
		}
		all = append(all, terms.PluginRequest{Name: name, Arguments: arguments})
	}
	return all, ""
}

// argumentNames leads from upstream's arguments to ours; those that begin with "!" are excluded.
var argumentNames = map[string]string{
	"ssh ssh-port": "port", "ssh ssh-key-file-path": "!path", "ssh no-root": "!path",
	"ssh ssh-private-key": "!keys", "ssh ssh-public-key": "!keys",
	"svc inject-hosts-env": "hosts_env", "svc publish-not-ready-addresses": "!network",
	"svc disable-network-policy":  "!network",
	"svc network-policy-strategy": "!network",
	"ray dashboardPort":           "dashboard_port", "ray clientPort": "client_port",
	"ray headContainer": "!command", "ray workerContainer": "!command",
}

func (c *pluginCase) translate(t *trial, name string, given []terms.EnvVar, differences tally) (all []terms.EnvVar,
	why string) {
	told := false
	for _, a := range given {
		if ours, other := argumentNames[name+" "+a.Name]; other {
			a.Name = ours
		}
		if reason, out := strings.CutPrefix(a.Name, "!"); out {
			return nil, reason
		}
		told = told || a.Name == "port"
		all = append(all, a)
	}
	if port := c.expectedPort(); name == "tensorflow" && !told && port != "" && port != "2222" {
		differences.state(t, portNotTold)
		all = append(all, terms.EnvVar{Name: "port", Value: port})
	}
	return all, ""
}

var portInText = regexp.MustCompile(`[\w.-]:(\d+)\b`)

// expectedPort returns the port that all hosts in the expected JSON have, or "".
func (c *pluginCase) expectedPort() string {
	text, _ := json.Marshal(c.Then.JSON)
	var ports []string
	for _, match := range portInText.FindAllStringSubmatch(string(text), -1) {
		ports = append(ports, match[1])
	}
	if ports = slices.Compact(ports); len(ports) == 1 {
		return ports[0]
	}
	return ""
}

// pluginsOf reads plugins in each of the forms of the files.
func pluginsOf(t *trial, told any) map[string][]terms.EnvVar {
	all := map[string][]terms.EnvVar{}
	switch told := told.(type) {
	case []any:
		for _, name := range told {
			all[fmt.Sprint(name)] = nil
		}
	case map[string]any:
		for name, arguments := range told {
			all[name] = argumentsOf(t, arguments)
		}
	default:
		t.Fatalf("no rule for plugins %v", told)
	}
	return all
}

// argumentsOf reads flags such as --port=1, or a mapping from names to values.
func argumentsOf(t *trial, told any) (all []terms.EnvVar) {
	switch told := told.(type) {
	case nil:
	case []string:
		for _, flag := range told {
			name, value, stated := strings.Cut(strings.TrimLeft(flag, "-"), "=")
			if !stated {
				value = "true"
			}
			all = append(all, terms.EnvVar{Name: name, Value: value})
		}
	case []any:
		var flags []string
		for _, flag := range told {
			flags = append(flags, fmt.Sprint(flag))
		}
		return argumentsOf(t, flags)
	case map[string]any:
		for _, name := range sortedKeys(told) {
			all = append(all, terms.EnvVar{Name: name, Value: fmt.Sprint(told[name])})
		}
	default:
		t.Fatalf("no rule for arguments %v", told)
	}
	return all
}

// given is what an instance got, under upstream's names.
type given struct {
	env map[string]string
	// ours are the variables that are named after Starling: those of svc and env, which other plugins bring with them.
	ours map[string]string
	// ray is what ray starts with.
	ray string
	// mpirun are the variables of Open MPI.
	mpirun []string
	// files are by path; in those of svc the lines are.
	files map[string][]string
}

func newGiven(o *plugin.Environment) *given {
	g := &given{env: map[string]string{}, ours: map[string]string{}, files: map[string][]string{}}
	for _, v := range o.Env {
		task, hosts := strings.CutPrefix(v.Name, "STARLING_HOSTS_")
		counted, count := strings.CutPrefix(v.Name, "STARLING_COUNT_")
		switch {
		case hosts:
			g.ours["VC_"+task+"_HOSTS"] = v.Value
		case count:
			g.ours["VC_"+counted+"_NUM"] = v.Value
		case v.Name == "STARLING_RAY_START":
			g.ray = v.Value
		case v.Name == "STARLING_INDEX":
			g.ours["VC_TASK_INDEX"], g.ours["VK_TASK_INDEX"] = v.Value, v.Value
		case strings.HasPrefix(v.Name, "OMPI_MCA_"):
			g.mpirun = append(g.mpirun, v.Name)
		case !strings.HasPrefix(v.Name, "STARLING_"):
			g.env[v.Name] = v.Value
		}
	}
	for _, f := range o.Files {
		path := f.Path
		if task, list := strings.CutSuffix(path, ".hosts"); list {
			path = strings.ReplaceAll(task, "-", "_") + ".host"
		}
		if f.Key != plugin.NoKey {
			f.Content = append(f.Content, "key"...) // who writes the file knows it
		}
		g.files[folder+"/"+path] = strings.FieldsFunc(string(f.Content), func(r rune) bool { return r == '\n' })
	}
	return g
}

// compare lists where what was given is not what is expected, and what a framework gives beside it.
func (c *pluginCase) compare(g *given) (wrong []string) {
	all := maps.Clone(g.ours)
	maps.Copy(all, g.env)
	for name, want := range c.Then.Env {
		if got, there := all[name]; !there || got != want {
			wrong = append(wrong, fmt.Sprintf("%s is %q (given: %v), want %q", name, got, there, want))
		}
	}
	wrong = append(wrong, c.unwanted(g, all)...)
	return slices.Concat(wrong, c.compareJSON(g), c.compareFiles(g), c.comparePort(g), c.compareRay(g))
}

// unwanted lists what was given and is not expected.
func (c *pluginCase) unwanted(g *given, all map[string]string) (wrong []string) {
	for _, name := range sortedKeys(g.ours) {
		if _, expected := c.Then.Env[name]; c.svc && c.Then.Env != nil && !expected && strings.HasSuffix(name, "_HOSTS") {
			wrong = append(wrong, fmt.Sprintf("%s is %q, want that it is not given", name, g.ours[name]))
		}
	}
	for _, name := range sortedKeys(g.env) {
		_, expected := c.Then.Env[name]
		if _, inJSON := c.Then.JSON[name]; c.Then.Env != nil && !expected && !inJSON {
			wrong = append(wrong, fmt.Sprintf("%s is %q, want that it is not given", name, g.env[name]))
		}
	}
	for _, name := range c.Then.Absent {
		if value, given := all[name]; given && !isCount(name) {
			wrong = append(wrong, fmt.Sprintf("%s is %q, want that it is not given", name, value))
		}
	}
	return wrong
}

func (c *pluginCase) compareJSON(g *given) (wrong []string) {
	for name, want := range c.Then.JSON {
		var got, wanted any
		text, err := json.Marshal(want)
		if err != nil || json.Unmarshal([]byte(g.env[name]), &got) != nil || json.Unmarshal(text, &wanted) != nil ||
			!reflect.DeepEqual(got, wanted) {
			wrong = append(wrong, fmt.Sprintf("%s is %s, want %s", name, g.env[name], text))
		}
	}
	if c.Then.Rank != nil && g.env["RANK"] != fmt.Sprint(*c.Then.Rank) {
		wrong = append(wrong, fmt.Sprintf("RANK is %q, want %d", g.env["RANK"], *c.Then.Rank))
	}
	return wrong
}

func (c *pluginCase) compareFiles(g *given) (wrong []string) {
	for path, want := range c.Then.Files {
		if got, there := g.files[path]; !there || !slices.Equal(got, want) {
			wrong = append(wrong, fmt.Sprintf("%s has the lines %q (given: %v), want %q", path, got, there, want))
		}
	}
	for key, want := range c.Then.Hosts {
		got := g.ours[key]
		if strings.HasSuffix(key, ".host") {
			got = strings.Join(g.files[folder+"/"+key], "\n")
		}
		if list, many := want.([]any); many {
			var lines []string
			for _, line := range list {
				lines = append(lines, fmt.Sprint(line))
			}
			want = strings.Join(lines, "\n")
		}
		if got != fmt.Sprint(want) {
			wrong = append(wrong, fmt.Sprintf("%s is %q, want %q", key, got, want))
		}
	}
	if c.Then.FilesPresent && !slices.ContainsFunc(sortedKeys(g.files),
		func(path string) bool { return strings.HasSuffix(path, ".host") }) {
		wrong = append(wrong, "there is no list of hosts")
	}
	if c.Then.KeyPath == keyPathDefault && len(g.files[folder+"/ssh/id"]) == 0 {
		wrong = append(wrong, "there is no key")
	}
	return wrong
}

// comparePort looks for the port in what was given.
func (c *pluginCase) comparePort(g *given) (wrong []string) {
	if i := c.When.Instance; c.Then.Port == nil || i != nil && i.Port != nil {
		return nil
	}
	text := fmt.Sprintf(":%s\n%s\n%s", g.env["MASTER_PORT"], g.env["TF_CONFIG"],
		strings.Join(g.files[folder+"/ssh/config"], "\n"))
	if !regexp.MustCompile(fmt.Sprintf(`(:| Port )%d\b`, *c.Then.Port)).MatchString(text) {
		wrong = append(wrong, fmt.Sprintf("port %d is nowhere in %s", *c.Then.Port, text))
	}
	return wrong
}

// compareRay looks for the ports and the role in what ray starts with.
func (c *pluginCase) compareRay(g *given) (wrong []string) {
	for _, port := range c.Then.Ports {
		if !regexp.MustCompile(fmt.Sprintf(`[=:]%d\b`, port)).MatchString(g.ray) {
			wrong = append(wrong, fmt.Sprintf("port %d is nowhere in %q", port, g.ray))
		}
	}
	if leads := strings.HasPrefix(g.ray, "--head "); c.Then.Role != "" && leads != (c.Then.Role == "head") ||
		c.Then.Role != "" && g.ray == "" {
		wrong = append(wrong, fmt.Sprintf("ray starts with %q, want the role %s", g.ray, c.Then.Role))
	}
	return wrong
}

// TestPluginFaults spoils what is expected of an instance, one after the other: each is found.
func TestPluginFaults(t *testing.T) {
	g := &given{
		env:   map[string]string{"RANK": "1", "MASTER_PORT": "23456", "TF_CONFIG": `{"a": ["b:1"]}`},
		ray:   "--head --port=6379",
		ours:  map[string]string{"VC_W_NUM": "1", "VC_W_HOSTS": "a"},
		files: map[string][]string{folder + "/w.host": {"a", "b"}},
	}
	port, rank := 23456, 1
	sound := func() *pluginCase {
		c := &pluginCase{}
		c.Then.Env = map[string]string{"RANK": "1", "MASTER_PORT": "23456", "VC_W_NUM": "1"}
		c.Then.JSON = map[string]any{"TF_CONFIG": map[string]any{"a": []string{"b:1"}}}
		c.Then.Files, c.Then.Hosts = map[string][]string{folder + "/w.host": {"a", "b"}},
			map[string]any{"w.host": []any{"a", "b"}}
		c.Then.Port, c.Then.Rank, c.Then.Ports, c.Then.Role = &port, &rank, []int{6379}, "head"
		return c
	}
	if wrong := sound().compare(g); len(wrong) > 0 {
		t.Fatalf("a sound case: %v", wrong)
	}
	other := 2
	for name, spoil := range map[string]func(c *pluginCase){
		"another value":       func(c *pluginCase) { c.Then.Env["RANK"] = "2" },
		"a missing value":     func(c *pluginCase) { c.Then.Env["WORLD_SIZE"] = "2" },
		"a value too many":    func(c *pluginCase) { delete(c.Then.Env, "RANK") },
		"another structure":   func(c *pluginCase) { c.Then.JSON["TF_CONFIG"] = map[string]any{"a": []string{"b:2"}} },
		"another file":        func(c *pluginCase) { c.Then.Files[folder+"/w.host"] = []string{"a"} },
		"another host":        func(c *pluginCase) { c.Then.Hosts["w.host"] = []any{"a", "c"} },
		"another list":        func(c *pluginCase) { c.Then.Hosts["VC_W_NUM"] = "2" },
		"a list too many":     func(c *pluginCase) { c.svc = true },
		"another port":        func(c *pluginCase) { c.Then.Port = &other },
		"another port of ray": func(c *pluginCase) { c.Then.Ports = []int{637} },
		"another role":        func(c *pluginCase) { c.Then.Role = "worker" },
		"another rank":        func(c *pluginCase) { c.Then.Rank = &other },
		"a variable there":    func(c *pluginCase) { c.Then.Absent = []string{"RANK"} },
		"keys where none is":  func(c *pluginCase) { c.Then.KeyPath = keyPathDefault },
	} {
		c := sound()
		if spoil(c); len(c.compare(g)) != 1 {
			t.Errorf("%s: %v, want one fault", name, c.compare(g))
		}
	}
}
