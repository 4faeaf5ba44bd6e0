package draft

import "starling/command"

// Steering is one thing that a user may do with an update.
type Steering struct {
	How command.Steering
	// Words say what it does, After how the update stands then.
	Words, After string
}

// Steerings lists what users may do with updates.
func Steerings() []Steering {
	return []Steering{
		{command.Pause, "Begin nothing more of an update; what is under way ends", "paused"},
		{command.Resume, "Go on with an update that is paused", "resumed"},
		{command.Promote, "Let the canaries take their places and the rest follow", "promoted"},
		{command.Fail, "End an update as a failure of its own would: with a rollback if the job asks for one", "failed"},
		{command.Abort, "End an update and leave the instances as they are", "aborted"},
	}
}

// SuspendWords, ResumeWords and RevertWords say what becomes of a job that is suspended, resumed or reverted.
const (
	SuspendWords = "End all instances of a job, and start none until it is resumed"
	ResumeWords  = "Let a suspended job go on"
	RevertWords  = "Go back to an earlier version of a job"
)
