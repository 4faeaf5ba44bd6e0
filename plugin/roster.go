package plugin

import (
	"cmp"
	"slices"

	"starling/terms"
)

// Roster is one version of the list of a job's members.
type Roster struct {
	Job terms.JobName
	// Version is the index of the entry with which the list became what it is.
	Version terms.Index
	// ByAddress tells that members connect to each other by address, as those must whose machines look up no names in DNS.
	ByAddress bool
	// Tasks are in the order of the job file.
	Tasks []Task
}

// Task is a task with its members, all that it is to have, ordered by number. Numbers may have gaps; where a framework
// counts without gaps, what counts is the position here.
type Task struct {
	Name    terms.TaskName
	Members []Member
}

// Member is an instance, as others find it.
type Member struct {
	Index uint32
	// Name is its name in DNS.
	Name string
	// Address is that of its node, "" as long as it waits for one.
	Address string
	// Order is the entry with which its allocation was decided, 0 as long as it waits.
	Order terms.Index
	// Ports are ordered by name; there are none as long as it waits.
	Ports []Port
}

// Port is a TCP port of a member.
type Port struct {
	Name   string
	Number uint16
}

// Self is the member that is to be told about the others.
type Self struct {
	Task  terms.TaskName
	Index uint32
	// Folder is where the member finds its files, as it sees it.
	Folder string
}

// task returns a task by its name, nil if there is none.
func (r *Roster) task(name terms.TaskName) *Task {
	at := slices.IndexFunc(r.Tasks, func(t Task) bool { return t.Name == name })
	if at < 0 {
		return nil
	}
	return &r.Tasks[at]
}

// members returns the members of a task, none if there is no such task.
func (r *Roster) members(name terms.TaskName) []Member {
	if t := r.task(name); t != nil {
		return t.Members
	}
	return nil
}

// position returns where a member stands in its task; ok is false if it is not on the list.
func (r *Roster) position(self *Self) (at int, ok bool) {
	return slices.BinarySearchFunc(r.members(self.Task), self.Index, func(m Member, index uint32) int {
		return cmp.Compare(m.Index, index)
	})
}

// host returns what others connect to; ok is false as long as that is not known.
func (r *Roster) host(m *Member) (host string, ok bool) {
	if r.ByAddress {
		return m.Address, m.Address != ""
	}
	return m.Name, true
}

// hosts returns what others connect to of members, in their order, without those of whom that is not known.
func (r *Roster) hosts(members []Member) []string {
	all := make([]string, 0, len(members))
	for i := range members {
		if host, ok := r.host(&members[i]); ok {
			all = append(all, host)
		}
	}
	return all
}

// reach returns what others connect to of one member, and the port; the error is ErrWaits as long as that is not known.
func (r *Roster) reach(m *Member, c portChoice) (host string, port uint16, err error) {
	port, known := c.of(m)
	host, found := r.host(m)
	if !known || !found {
		return "", 0, c.waits(m)
	}
	return host, port, nil
}
