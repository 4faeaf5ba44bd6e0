package replica

import (
	"starling/command"
	"starling/terms"
	"starling/terms/rules"
)

// timeNow is the value's time at the entry: the highest that any told. Under rules.Next each entry lets it pass, so
// that the digests of programs that fold by other rules differ at once.
func (f *fold) timeNow() terms.Time {
	least := f.s.Time
	if f.s.Rules >= rules.Next {
		least++
	}
	return max(least, f.entry.Time)
}

// passTime lets the value's time pass.
func (f *fold) passTime(c *command.PassTime) Result {
	return f.once(c.RequestID, func() Result {
		f.s.Time += terms.Time(c.Millis)
		return Result{}
	})
}
