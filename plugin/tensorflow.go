package plugin

import (
	"errors"
	"strconv"

	"starling/terms"
)

// tensorflow gives the description of the cluster that TensorFlow reads.
type tensorflow struct {
	bare
	// roles are in the order of their names.
	roles []role
	port  portChoice
}

func newTensorflow(a *arguments) Plugin {
	p := &tensorflow{port: a.port("port", 2222)}
	for _, name := range []string{"chief", "evaluator", "ps", "worker"} {
		p.roles = append(p.roles, a.task(name, terms.TaskName(name)))
	}
	return p
}

// Name returns tensorflow.
func (*tensorflow) Name() string { return "tensorflow" }

// OnJobAdd wants a task in one of the roles at least, and the port in all of them if it is named.
func (p *tensorflow) OnJobAdd(job *terms.Job) error {
	found, wrong := false, []error{}
	for _, role := range p.roles {
		found = found || role.missing(job) == nil
		wrong = append(wrong, p.port.missing(job, role.task))
	}
	if !found {
		wrong = append(wrong, errors.New("no task of the job is chief, evaluator, ps or worker: "+
			"name one so, or say with these arguments which is"))
	}
	return errors.Join(wrong...)
}

// OnInstanceCreate returns the description. A job of one instance needs none.
func (p *tensorflow) OnInstanceCreate(r *Roster, self *Self) (Environment, error) {
	if len(r.Tasks) == 1 && len(r.Tasks[0].Members) == 1 {
		return Environment{}, nil
	}
	text, kind := []byte(`{"cluster": {`), string(self.Task)
	first := true
	for _, role := range p.roles {
		if role.task == self.Task {
			kind = role.argument
		}
		members := r.members(role.task)
		if len(members) == 0 {
			continue
		}
		if !first {
			text = append(text, ", "...)
		}
		first = false
		text = append(quoted(text, role.argument), ": ["...)
		for i := range members {
			host, port, err := r.reach(&members[i], p.port)
			if err != nil {
				return Environment{}, err
			}
			if i > 0 {
				text = append(text, ", "...)
			}
			text = quoted(text, host+":"+strconv.Itoa(int(port)))
		}
		text = append(text, ']')
	}
	position, _ := r.position(self)
	text = append(quoted(append(text, `}, "task": {"type": `...), kind), `, "index": `...)
	text = append(strconv.AppendInt(text, int64(position), 10), "}}"...)
	return Environment{Env: []terms.EnvVar{{Name: "TF_CONFIG", Value: string(text)}}}, nil
}
