package jobspec

import (
	"go.yaml.in/yaml/v4"

	"starling/cluster"
)

// Command returns the job that runs one program once: batch, one task "main", one instance, no second try here or
// elsewhere, and the defaults of job files for the rest. What is wrong with it, cluster.JobSpec.Problems tells.
func Command(name string, argv []string) cluster.JobSpec {
	var task cluster.TaskSpec
	taskForm().read(&reader{places: map[string]place{}}, place{node: &yaml.Node{Kind: yaml.MappingNode}}, &task)
	task.Name, task.Command, task.Restart.AttemptsMax, task.Reschedule.AttemptsMax = "main", argv, 0, 0
	return cluster.JobSpec{
		Name: cluster.JobName(name), Type: cluster.Batch, Priority: cluster.PriorityDefault, Tasks: []cluster.TaskSpec{task},
	}
}
