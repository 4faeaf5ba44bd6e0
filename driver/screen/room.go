package screen

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"starling/driver"
)

// How many sessions there may be that outlive their callers: of a machine, beside one task, and begun by one user.
const (
	sessionsMax = 100
	besideMax   = 4
	ofUserMax   = 20
	// toldMax bounds the sessions that a refusal names.
	toldMax = 5
)

// Room bounds the sessions of a machine. Its zero value is ready for use.
type Room struct {
	mu        sync.Mutex
	beginning []*driver.SessionStatus // they may not be listed yet
}

// Take makes a folder of sessions if there is none. It is an error if there may not be this session in it, too. That
// counts until begun is called; by then it must be listed.
func (r *Room) Take(folder string, s driver.SessionStatus) (begun func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	if err := problemOf(r.known(List(folder)), s.Task, s.By); err != nil {
		return nil, err
	}
	mine := &s
	r.beginning = append(r.beginning, mine)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.beginning = slices.DeleteFunc(r.beginning, func(one *driver.SessionStatus) bool { return one == mine })
	}, nil
}

// known returns the sessions that are listed, and those that begin and are not listed yet.
func (r *Room) known(listed []driver.SessionStatus) []driver.SessionStatus {
	all := listed
	for _, one := range r.beginning {
		if !slices.ContainsFunc(listed, func(other driver.SessionStatus) bool {
			return other.Task == one.Task && other.Name == one.Name
		}) {
			all = append(all, *one)
		}
	}
	return all
}

func problemOf(all []driver.SessionStatus, task, by string) error {
	var beside, own []driver.SessionStatus
	for _, one := range all {
		if one.Task == task {
			beside = append(beside, one)
		}
		if userOf(one.By) == userOf(by) {
			own = append(own, one)
		}
	}
	switch {
	case len(beside) >= besideMax:
		return fmt.Errorf("there are %d sessions beside this instance, as many as there may be: end one (%s)", len(beside),
			named(beside))
	case len(own) >= ofUserMax:
		return fmt.Errorf("%s has %d sessions on this machine, as many as one user may have: end one (%s)", userOf(by),
			len(own), named(own))
	case len(all) >= sessionsMax:
		return fmt.Errorf("there are %d sessions on this machine, as many as there may be: end one (%s)", len(all),
			named(all))
	}
	return nil
}

// userOf is who has begun a session, whichever peer that one has asked.
func userOf(by string) string {
	user, _, _ := strings.Cut(by, ", by way of ")
	return user
}

// named tells which sessions there are, and whose.
func named(all []driver.SessionStatus) string {
	var told []string
	for _, one := range all[:min(len(all), toldMax)] {
		told = append(told, fmt.Sprintf("%s beside %s of %s", one.Name, one.Task, userOf(one.By)))
	}
	if more := len(all) - len(told); more > 0 {
		told = append(told, fmt.Sprintf("%d more", more))
	}
	return strings.Join(told, ", ")
}
