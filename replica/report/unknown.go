package report

import "errors"

// ErrUnknown is wrapped by the error of a command of which it is not known whether it is, or will be, an entry.
var ErrUnknown = errors.New("the request may have been executed, or may still be: repeat it with the same request_id to " +
	"learn it, and to be sure that it runs once")
