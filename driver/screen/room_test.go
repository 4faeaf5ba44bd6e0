package screen

import (
	"fmt"
	"strings"
	"testing"

	"starling/driver"
)

// TestNobodyTakesAllSessions asks for another one where there are some.
func TestNobodyTakesAllSessions(t *testing.T) {
	many := func(n int, task, by string) (all []driver.SessionStatus) {
		for i := range n {
			number := strings.NewReplacer("N", fmt.Sprint(i))
			all = append(all, driver.SessionStatus{Task: number.Replace(task), Name: number.Replace("sN"),
				By: number.Replace(by)})
		}
		return all
	}
	for _, test := range []struct {
		all  []driver.SessionStatus
		want string
	}{
		{nil, ""},
		{many(besideMax-1, "web", "user opx"), ""},
		{many(besideMax, "web", "user N"), "4 sessions beside this instance, as many as there may be: end one (s0 beside web of"},
		{many(ofUserMax-1, "N", "user ann"), ""},
		{many(ofUserMax, "N", "user ann, by way of node b"), "user ann has 20 sessions on this machine"},
		{many(ofUserMax, "N", "user opx"), ""},
		{many(sessionsMax, "N", "user N"), "100 sessions on this machine, as many as there may be: end one (s0 beside 0 of user 0,"},
	} {
		err := problemOf(test.all, "web", "user ann")
		if err == nil && test.want != "" || err != nil && (test.want == "" || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("beside %d: got %v, want %q", len(test.all), err, test.want)
		}
	}
}

// TestSessionsThatBeginCount begins some at the same time.
func TestSessionsThatBeginCount(t *testing.T) {
	room, folder := &Room{}, t.TempDir()
	var all []func()
	session := func(n int) driver.SessionStatus {
		return driver.SessionStatus{Task: "web", Name: fmt.Sprint("s", n), By: "user ann"}
	}
	for n := range besideMax {
		begun, err := room.Take(folder, session(n))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, begun)
	}
	if got := room.known([]driver.SessionStatus{session(1), session(9)}); len(got) != besideMax+1 {
		t.Errorf("got %+v, want one that is listed already once", got)
	}
	if _, err := room.Take(folder, session(besideMax)); err == nil {
		t.Error("there are more than there may be")
	}
	all[0]()
	if _, err := room.Take(folder, session(besideMax)); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}
