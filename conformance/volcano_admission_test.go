package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/jobspec"
	"starling/terms"
)

// The differences from Volcano in what is admitted. Each holds for every file.
var (
	anyField = &difference{name: "any field",
		reason: "a new version may change every field but the type, the pool and how the job shares it, and may " +
			"have other tasks: what that means for instances is told before"}
)

// admittanceCase asks whether a job, or a change of it, is admitted.
type admittanceCase struct {
	ID, Kind, Title, Source, Basis, Note string
	Given                                struct {
		Queues   any
		MaxDepth any `yaml:"maxDepth"`
		Job      yaml.Node
	}
	When struct {
		Job       yaml.Node
		Update    map[string]any
		Create    any
		Delete    any
		DependsOn map[string][]string `yaml:"dependsOn"`
	}
	Then struct {
		Allowed     *bool
		Error, Code string
		Job         map[string]any
		DAG         *bool `yaml:"dag"`
		Order       []string
	}
}

// admittance runs a file of cases about what is admitted.
func admittance(f *sheet) {
	f.runScenarios(func(t *trial, s *scenario, differences tally) {
		c := &admittanceCase{}
		s.read(t, c)
		switch c.Kind {
		case "admit-queue":
			t.leaveOut("pools")
		case "admit-create":
			c.create(t)
		case "admit-update":
			c.update(t, differences)
		case "default":
			c.defaults(t)
		case "topo-sort":
			c.sort(t)
		default:
			t.Fatalf("no rule for kind %s", c.Kind)
		}
	})
}

// document writes a job of a case as a job file.
func (c *admittanceCase) document(t *trial, node *yaml.Node) []byte {
	job := map[string]any{}
	if err := node.Load(&job); err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{"plugins": "plugins", "volumes": "parts", "topology": "parts", "priorityClass": "parts"}
	for _, key := range slices.Sorted(maps.Keys(job)) {
		if reason := reasons[key]; reason != "" {
			t.leaveOut(reason)
		}
	}
	if queue, _ := job["queue"].(string); c.Given.Queues != nil || queue != "" && queue != "default" {
		t.leaveOut("pools")
	}
	file := map[string]any{"job": cmp.Or(fmt.Sprint(job["name"]), "j"), "tasks": c.tasks(t, job["groups"])}
	if job["name"] == nil {
		file["job"] = "j"
	}
	for theirs, ours := range map[string]string{"minAvailable": "min_available", "minSuccess": "min_success",
		"maxRetry": "max_restarts"} {
		if job[theirs] != nil {
			file[ours] = job[theirs]
		}
	}
	if ttl := job["ttlSecondsAfterFinished"]; ttl != nil {
		file["keep"] = fmt.Sprintf("%vs", ttl)
	}
	if job["policies"] != nil {
		file["policies"] = c.policies(t, job["policies"])
	}
	data, err := yaml.Dump(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (c *admittanceCase) tasks(t *trial, groups any) (tasks []any) {
	list, _ := groups.([]any)
	for _, one := range list {
		g, task := one.(map[string]any), map[string]any{"command": "work"}
		for _, key := range slices.Sorted(maps.Keys(g)) {
			switch value := g[key]; key {
			case "name", "policies":
			case "replicas":
				task["instances"] = value
			case "minAvailable":
				task["min_available"] = value
			case "maxRetry":
				task["max_restarts"] = value
			case "dependsOn":
				// A gang excludes an order here, so that the minimum of the whole job is left out.
				task["after"] = value.(map[string]any)["names"]
			default:
				t.leaveOut("parts")
			}
		}
		if name, _ := g["name"].(string); name != "" {
			task["name"] = name
		}
		if g["policies"] != nil {
			task["policies"] = c.policies(t, g["policies"])
		}
		tasks = append(tasks, task)
	}
	return tasks
}

func (c *admittanceCase) policies(t *trial, policies any) (all []any) {
	word := func(theirs any) any {
		text := fmt.Sprint(theirs)
		if slices.Contains([]string{"PodPending", "Unknown", "JobUpdated"}, text) {
			t.leaveOut("waiting")
		}
		if e, known := lifeEvents[text]; known {
			return e.String()
		}
		return text
	}
	list, _ := policies.([]any)
	for _, one := range list {
		policy := map[string]any{}
		for key, value := range one.(map[string]any) {
			switch key {
			case "event":
				policy["on"] = word(value)
			case "events":
				var words []any
				for _, e := range value.([]any) {
					words = append(words, word(e))
				}
				policy["on"] = words
			case "exitCode":
				policy["exit_codes"] = value
			case "timeout":
				policy["delay"] = value
			case "action":
				policy["action"] = fmt.Sprint(value)
				if a, known := lifeActions[fmt.Sprint(value)]; known {
					policy["action"] = a.String()
				}
			default:
				t.Fatalf("no rule for key %s of a policy", key)
			}
		}
		all = append(all, policy)
	}
	return all
}

func (c *admittanceCase) create(t *trial) {
	data := c.document(t, &c.When.Job)
	if strings.Contains(string(data), "after:") {
		data = []byte(lackingKey(string(data), "min_available:"))
	}
	_, err := jobspec.Parse("job.yaml", data)
	if (err == nil) != *c.Then.Allowed {
		t.Errorf("got %v, want allowed: %v\n%s", err, *c.Then.Allowed, data)
	}
}

// lackingKey leaves out the lines of a key of the whole job.
func lackingKey(text, key string) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, key) }), "")
}

func (c *admittanceCase) update(t *trial, differences tally) {
	job := map[string]any{}
	if err := c.Given.Job.Load(&job); err != nil {
		t.Fatal(err)
	}
	if _, err := jobspec.Parse("job.yaml", c.document(t, &c.Given.Job)); err != nil {
		t.Fatalf("the job before is refused: %v", err)
	}
	others := c.changed(t, job)
	node := yaml.Node{}
	if err := node.Dump(job); err != nil {
		t.Fatal(err)
	}
	data := c.document(t, &node)
	_, err := jobspec.Parse("job.yaml", data)
	switch allowed := err == nil; {
	case allowed == *c.Then.Allowed:
	case allowed && others:
		differences.state(t, anyField)
	default:
		t.Errorf("got %v, want allowed: %v\n%s", err, *c.Then.Allowed, data)
	}
}

// changed changes the job as the case says, and tells whether anything but numbers and minima changes.
func (c *admittanceCase) changed(t *trial, job map[string]any) (others bool) {
	groups, _ := job["groups"].([]any)
	for key, value := range c.When.Update {
		switch key {
		case "groups":
			others = changedGroups(groups, value.(map[string]any)) || others
		case "addGroups":
			others = true
			groups = append(groups, value.([]any)...)
		case "removeGroups":
			others = true
			groups = slices.DeleteFunc(groups, func(g any) bool {
				return slices.Contains(value.([]any), g.(map[string]any)["name"])
			})
		case "queue", "name":
			t.leaveOut("name")
		default:
			others = others || key != "minAvailable"
			job[key] = value
		}
	}
	job["groups"] = groups
	return others
}

// changedGroups changes groups by name. The image of a program is stated by its command here.
func changedGroups(groups []any, changes map[string]any) (others bool) {
	for _, one := range groups {
		g := one.(map[string]any)
		change, _ := changes[fmt.Sprint(g["name"])].(map[string]any)
		for key, value := range change {
			others = others || key != "replicas" && key != "minAvailable"
			if key != "image" {
				g[key] = value
			}
		}
	}
	return others
}

func (c *admittanceCase) defaults(t *trial) {
	want, compared := c.Then.Job, false
	node := c.When.Job
	data := c.document(t, &node)
	if retry, told := want["maxRetry"]; told {
		compared = true
		documents, err := jobspec.Parse("job.yaml", []byte("{job: j, tasks: [{command: work}]}"))
		if err != nil {
			t.Fatal(err)
		}
		spec := &documents[0].Spec
		if spec.MaxRestarts != uint32(retry.(int)) || spec.Name.Pool() != terms.PoolPath(fmt.Sprint(want["queue"])) {
			t.Errorf("got %d restarts in pool %s, want %v in %v", spec.MaxRestarts, spec.Name.Pool(), retry, want["queue"])
		}
	}
	if minimum, told := want["minAvailable"].(int); told {
		if documents, err := jobspec.Parse("job.yaml", data); err == nil && documents[0].Spec.MinAvailable > 0 {
			compared = true
			if got := documents[0].Spec.MinAvailable; got != uint32(minimum) {
				t.Errorf("got a minimum of %d, want %d", got, minimum)
			}
		}
	}
	if !compared {
		t.leaveOut("defaults")
	}
}

// sort asks for an order of tasks.
func (c *admittanceCase) sort(t *trial) {
	spec := &terms.Job{}
	for _, name := range slices.Sorted(maps.Keys(c.When.DependsOn)) {
		task := terms.Task{Name: terms.TaskName(name)}
		for _, before := range c.When.DependsOn[name] {
			task.After = append(task.After, terms.TaskName(before))
		}
		spec.Tasks = append(spec.Tasks, task)
	}
	order, cycle := spec.Order()
	if c.Then.DAG != nil && (len(cycle) == 0) != *c.Then.DAG {
		t.Errorf("goes round in %v, want an order: %v", cycle, *c.Then.DAG)
	}
	var names []string
	for _, number := range order {
		task := &spec.Tasks[number]
		for _, before := range task.After {
			if !slices.Contains(names, string(before)) {
				t.Errorf("%s comes before %s in %v", task.Name, before, names)
			}
		}
		names = append(names, string(task.Name))
	}
	if len(names) != len(c.Then.Order) && len(c.Then.Order) > 0 {
		t.Errorf("got the order %v, want one like %v", names, c.Then.Order)
	}
}
