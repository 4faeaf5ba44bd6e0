package jobspec

import "starling/cluster"

// Command returns the job that runs one program once: batch, one task "main", one instance, no restarts.
func Command(name string, argv []string) cluster.JobSpec {
	return cluster.JobSpec{Name: cluster.JobName(name), Type: cluster.Batch, Tasks: []cluster.TaskSpec{{
		Name: "main", Instances: 1, Command: argv,
		Resources: cluster.Resources{cluster.CPU: 100, cluster.Memory: 256 << 20},
		Placement: cluster.Pack, StopGraceMillis: 5000,
		Restart: cluster.Restart{DelayMillis: 1000, DelayMaxMillis: 60000, ResetMillis: 600000},
	}}}
}
