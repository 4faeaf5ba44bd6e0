package jobspec

import (
	"go.yaml.in/yaml/v4"

	"starling/terms"
)

// Command returns the job that runs one program once: batch, one task "main", one instance, no second try here or
// elsewhere, and the defaults of job files for the rest.
func Command(name string, argv []string) terms.Job {
	var task terms.Task
	taskForm().read(&reader{places: map[string]place{}}, place{node: &yaml.Node{Kind: yaml.MappingNode}}, &task)
	task.Name, task.Command, task.Restart.AttemptsMax, task.Reschedule.AttemptsMax = "main", argv, 0, 0
	return terms.Job{
		Name: terms.JobName(name), Type: terms.Batch, Priority: terms.PriorityDefault, Tasks: []terms.Task{task},
	}
}
