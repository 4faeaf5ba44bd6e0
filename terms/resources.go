package terms

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is a divisible resource.
type Kind uint8

// The kinds of resource. Millicores, bytes and bytes are their units.
const (
	CPU Kind = iota
	Memory
	Disk
	KindCount
)

// The kinds that only pools count, in thousandths of a device: tasks ask for devices by name.
const (
	GPU Kind = KindCount + iota
	// VirtualPeers are what a machine has for tasks that share: each executes at most one instance at a time.
	VirtualPeers
)

// DeviceKind returns the kind of a device that pools count; ok is false for others.
func DeviceKind(name string) (k Kind, ok bool) {
	for k = GPU; k < AmountCount; k++ {
		if k.String() == name {
			return k, true
		}
	}
	return 0, false
}

// String returns the kind's name in job files and reports.
func (k Kind) String() string {
	return [...]string{"cpu", "memory", "disk", "gpu", "peers"}[k]
}

// Text writes an amount as job files do, exactly: "20", "500m", "64Gi", "0.5".
func (k Kind) Text(amount int64) string {
	switch {
	case amount == Unlimited:
		return "unlimited"
	case k == CPU && amount%1000 != 0:
		return strconv.FormatInt(amount, 10) + "m"
	case k == CPU || k >= GPU && amount%1000 == 0:
		return strconv.FormatInt(amount/1000, 10)
	case k >= GPU:
		return strings.TrimRight(fmt.Sprintf("%d.%03d", amount/1000, amount%1000), "0")
	case amount == 0:
		return "0"
	}
	for i, unit := range [...]string{"Pi", "Ti", "Gi", "Mi", "Ki"} {
		if bytes := int64(1) << (50 - 10*i); amount%bytes == 0 {
			return strconv.FormatInt(amount/bytes, 10) + unit
		}
	}
	return strconv.FormatInt(amount, 10) + "B"
}

// Round writes an amount as people read it, in cores, devices, or tenths of the largest unit of bytes, rounded down:
// "1.333", "6.6Gi".
func (k Kind) Round(amount int64) string {
	switch {
	case amount == Unlimited || amount < 1024 && k != CPU && k < GPU:
		return k.Text(amount)
	case k == CPU || k >= GPU:
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%03d", amount/1000, amount%1000), "0"), ".")
	}
	units, unit := [...]string{"Ki", "Mi", "Gi", "Ti", "Pi"}, 0
	for ; amount >= 1<<20 && unit < len(units)-1; unit++ {
		amount >>= 10
	}
	if tenths := amount % 1024 * 10 / 1024; tenths > 0 {
		return fmt.Sprintf("%d.%d%s", amount/1024, tenths, units[unit])
	}
	return strconv.FormatInt(amount/1024, 10) + units[unit]
}

// FormatDuration writes milliseconds as job files do, exactly: "1m30s", "500ms", "0".
func FormatDuration(millis int64) string {
	if millis <= 0 {
		return strconv.FormatInt(millis, 10)
	}
	text := ""
	for _, unit := range [...]struct {
		suffix string
		millis int64
	}{{"h", 3_600_000}, {"m", 60_000}, {"s", 1000}, {"ms", 1}} {
		if n := millis / unit.millis; n > 0 {
			text += strconv.FormatInt(n, 10) + unit.suffix
			millis -= n * unit.millis
		}
	}
	return text
}

// Resources is an amount of every kind: millicores of processor, bytes of memory, bytes of disk.
type Resources [KindCount]int64

// Fits tells whether r can be taken from free.
func (r *Resources) Fits(free *Resources) bool {
	return r[CPU] <= free[CPU] && r[Memory] <= free[Memory] && r[Disk] <= free[Disk]
}

// Plus returns r and other together.
func (r Resources) Plus(other Resources) Resources {
	for k := range r {
		r[k] += other[k]
	}
	return r
}

// Minus returns r less other.
func (r Resources) Minus(other Resources) Resources {
	for k := range r {
		r[k] -= other[k]
	}
	return r
}

// Times returns how often r fits into free, at most most.
func (r *Resources) Times(free *Resources, most uint32) uint32 {
	times := int64(most)
	for k := range r {
		if r[k] > 0 {
			times = min(times, free[k]/r[k])
		}
	}
	return uint32(max(times, 0))
}

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
