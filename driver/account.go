package driver

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// The numbers of users that are jobs' own: above those that systemd, containers and directories give out.
const (
	ownUserFirst = 0x70000000
	ownUsers     = 0x0fffffff
)

// ownUserMark begins the name of a user that is a job's own. Accounts of a machine do not begin so.
const ownUserMark = "#"

// OwnUser names the user that is a job's own. It is the same on every machine, so that what volumes and outputs hold
// stays the job's; two jobs have the same once in 268 million.
func OwnUser(job string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(job))
	return ownUserMark + strconv.FormatUint(uint64(ownUserFirst+h.Sum32()%ownUsers), 10)
}

// OwnNumber returns the number of a user and group that are a job's own, false if the name is another's.
func OwnNumber(user string) (number uint32, own bool) {
	text, marked := strings.CutPrefix(user, ownUserMark)
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), marked && err == nil && n >= ownUserFirst && n < ownUserFirst+ownUsers
}
