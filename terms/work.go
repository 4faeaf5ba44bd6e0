package terms

// Work is an amount of work, by what bounds it.
type Work struct {
	// NonSlack is all work that is not revocable, Slack all that is.
	NonSlack, Slack Amounts
	// NonPreemptible and Controller are parts of NonSlack.
	NonPreemptible, Controller Amounts
}

// Add adds so many times an amount, by what bounds the job's work. What is revocable is slack.
func (w *Work) Add(j *Job, need *Amounts, times int64) {
	for k, amount := range need {
		amount *= times
		switch {
		case j.Revocable:
			w.Slack[k] += amount
			continue
		case j.NonPreemptible():
			w.NonPreemptible[k] += amount
		}
		if j.Controller {
			w.Controller[k] += amount
		}
		w.NonSlack[k] += amount
	}
}

// Class numbers work by what bounds it.
type Class uint8

// The classes are numbered by ClassOf; Revocable is the last.
const (
	Revocable  Class = 4
	ClassCount Class = 5
)

// ClassOf returns the class of work. What is revocable is bound by the slack alone.
func ClassOf(revocable, nonPreemptible, controller bool) Class {
	class := Class(0)
	switch {
	case revocable:
		return Revocable
	case nonPreemptible:
		class = 1
	}
	if controller {
		class += 2
	}
	return class
}

// Class returns the class of the job's work.
func (s *Job) Class() Class { return ClassOf(s.Revocable, s.NonPreemptible(), s.Controller) }

// Amounts returns what an instance of the task takes of what pools divide.
func (t *Task) Amounts() (a Amounts) {
	copy(a[:], t.Resources[:])
	for i := range t.Devices {
		if k, ok := DeviceKind(t.Devices[i].Kind); ok {
			a[k] += int64(t.Devices[i].Amount)
		}
	}
	return a
}
