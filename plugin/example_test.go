package plugin_test

import (
	"fmt"

	"starling/plugin"
	"starling/terms"
	"starling/terms/domain"
	"starling/terms/rules"
)

// A job is checked when it is submitted. Whoever starts an instance asks for its environment, and for its files again
// with every newer roster.
func Example() {
	job := &terms.Job{Name: "ml/train", Tasks: []terms.Task{{Name: "worker", Instances: 2}}}
	set, err := plugin.NewSet([]terms.PluginRequest{{Name: "pytorch",
		Arguments: []terms.EnvVar{{Name: "master", Value: "worker"}}}}, rules.First)
	if err == nil {
		err = set.OnJobAdd(job)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	name := func(index uint32) string {
		return domain.DefaultZone.Name(domain.Name{Job: job.Name, Task: "worker", One: true, Index: index})
	}
	roster := &plugin.Roster{Job: job.Name, Version: 4711, Tasks: []plugin.Task{{Name: "worker", Members: []plugin.Member{
		{Index: 0, Name: name(0), Address: "10.0.0.1"}, {Index: 1, Name: name(1), Address: "10.0.0.2"},
	}}}}
	environment, err := set.OnInstanceCreate(roster, &plugin.Self{Task: "worker", Index: 1, Folder: "/run/members"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range environment.Env {
		fmt.Println(v.Name + "=" + v.Value)
	}
	for _, f := range environment.Files {
		fmt.Println(f.Path)
	}
	// Output:
	// MASTER_ADDR=0.worker.train.ml.starling
	// MASTER_PORT=23456
	// RANK=1
	// STARLING_COUNT_WORKER=2
	// STARLING_HOSTS_WORKER=0.worker.train.ml.starling,1.worker.train.ml.starling
	// STARLING_MEMBERS=/run/members
	// STARLING_MEMBERS_VERSION=4711
	// WORLD_SIZE=2
	// hosts
	// members.json
	// worker.hosts
}
