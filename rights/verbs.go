package rights

import (
	"fmt"
	"slices"
	"strings"

	"starling/cluster"
	"starling/command"
	"starling/terms"
	"starling/terms/access"
)

// Verb is a word for what can be asked for, and what it is done to.
type Verb struct {
	Name, Object string
	// needs is what it asks for, given the object.
	needs func(object string) []Need
}

// Objects of verbs.
const (
	ofAJob  = "JOB"
	ofANode = "NODE"
	ofAPool = "POOL"
	ofNone  = ""
)

// Verbs lists all there are. What a verb needs is what its command needs.
func Verbs() []Verb {
	job := func(c func(job terms.JobName) command.Command) func(string) []Need {
		return func(object string) []Need { return needs(c(terms.JobName(object))) }
	}
	all := func(c command.Command) func(string) []Need { return func(string) []Need { return needs(c) } }
	return []Verb{
		{"see", ofAJob, func(object string) []Need { return ofJob(access.Viewer, terms.JobName(object)) }},
		{"see-cluster", ofNone, func(string) []Need { return []Need{{access.Viewer, ""}} }},
		{"run", ofAJob, job(func(job terms.JobName) command.Command {
			return &command.SubmitJob{Spec: terms.Job{Name: job}}
		})},
		{"stop", ofAJob, job(func(job terms.JobName) command.Command { return &command.KillJob{Job: job} })},
		{"restart", ofAJob, job(func(job terms.JobName) command.Command { return &command.RestartJob{Job: job} })},
		{"suspend", ofAJob, job(func(job terms.JobName) command.Command { return &command.SuspendJob{Job: job} })},
		{"rollback", ofAJob, job(func(job terms.JobName) command.Command { return &command.RevertJob{Job: job} })},
		{"steer-update", ofAJob, job(func(job terms.JobName) command.Command { return &command.SteerUpdate{Job: job} })},
		{"stop-instance", ofAJob, job(func(job terms.JobName) command.Command {
			return &command.EndAllocation{Slot: terms.SlotName{Job: job}}
		})},
		{"exec", ofAJob, func(object string) []Need { return ofJob(access.Operator, terms.JobName(object)) }},
		{"change-pool", ofAPool, func(object string) []Need {
			return needs(&command.ChangePools{Pools: []terms.Pool{{Path: terms.PoolPath(object)}}})
		}},
		{"drain", ofANode, all(&command.DrainNode{})},
		{"remove-node", ofANode, all(&command.RemoveNode{})},
		{"let-in", ofNone, all(&command.AddUser{})},
		{"raise-rules", ofNone, all(&command.RaiseRules{})},
	}
}

// Answer says whether somebody may do something, and why.
type Answer struct {
	May bool   `json:"may"`
	Why string `json:"why"`
}

// Can answers whether somebody may do something to an object, by the rule by which commands are refused. What is no
// question is an error.
func Can(s *cluster.State, who access.Subject, verb, object string) (Answer, error) {
	verbs := Verbs()
	at := slices.IndexFunc(verbs, func(v Verb) bool { return v.Name == verb })
	if at < 0 {
		var names []string
		for _, v := range verbs {
			names = append(names, v.Name)
		}
		return Answer{}, fmt.Errorf("nothing is known of %q: ask for %s", verb, strings.Join(names, ", "))
	}
	if v := verbs[at]; (v.Object == ofNone) != (object == "") {
		return Answer{}, fmt.Errorf("%q is asked %s", verb, question(v.Object))
	}
	all := verbs[at].needs(object)
	for _, need := range all {
		if refusal := Refusal(s, who, need); refusal != "" {
			return Answer{false, refusal}, nil
		}
	}
	return Answer{true, needed(who, all[0], RoleIn(s, who, all[0].Pool))}, nil
}

func question(object string) string {
	if object == ofNone {
		return "of the whole cluster, without an object"
	}
	return "of one " + object
}
