package report

import (
	"fmt"

	"starling/cluster/facts"
	"starling/command"
)

// Counts are how many instances an entry has changed in some ways: unlike effects, all are counted.
type Counts struct {
	// Placed were given to a node, Started were reported to run, Restarted start again on their node after a failure,
	// Rescheduled wait for another node after one, Preempted were told to give way to other work, Unhealthy were not
	// healthy in time.
	Placed, Started, Restarted, Rescheduled, Preempted, Unhealthy uint32
	// Succeeded exited with status 0; Ended are the others that have ended, by how. The instances of a node that left have
	// ended with it; one that comes back ends once more.
	Succeeded uint32
	Ended     [facts.EndingCount]uint32
}

// End counts the end of an allocation. One that was told to end did so on request, however it did.
func (c *Counts) End(told bool, news *command.Report) {
	switch {
	case told:
		c.Ended[facts.OnRequest]++
	case news.Ended == facts.ByItself && news.ExitCode == 0:
		c.Succeeded++
	default:
		c.Ended[news.Ended]++
	}
}

// Ending tells in words how an allocation ended.
func Ending(news *command.Report) string {
	if news.Ended == facts.ByItself {
		return fmt.Sprintf("exited with %d", news.ExitCode)
	}
	if news.Ended == facts.BySignal {
		return fmt.Sprintf("killed by signal %d", news.ExitCode-128)
	}
	if news.Detail != "" {
		return news.Ended.String() + ": " + news.Detail
	}
	return news.Ended.String()
}
