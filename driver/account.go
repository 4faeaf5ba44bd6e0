package driver

import (
	"strconv"
	"strings"

	"starling/terms"
)

// ownUserMark begins the name of a user that is a job's own. Accounts of a machine do not begin so.
const ownUserMark = "#"

// OwnUser names the user that is a job's own.
func OwnUser(job terms.JobName) string {
	return ownUserMark + strconv.FormatUint(uint64(job.OwnUser()), 10)
}

// OwnNumber returns the number of a user and group that are a job's own, false if the name is another's.
func OwnNumber(user string) (number uint32, own bool) {
	text, marked := strings.CutPrefix(user, ownUserMark)
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), marked && err == nil && n >= terms.OwnUserFirst && n < terms.OwnUserFirst+terms.OwnUsers
}
