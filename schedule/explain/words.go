package explain

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/constraint"
)

// amount returns a quantity of a resource in words, such as "500m cpu" or "1.5 GiB memory", rounded up.
func amount(k terms.Kind, value int64) string {
	const manyMillicores = 10_000
	switch tenths := (value + 99) / 100; {
	case k == terms.VirtualPeers && value == int64(terms.WholeDevice):
		return "1 virtual peer"
	case k == terms.VirtualPeers:
		return k.Text(value) + " virtual peers"
	case k == terms.GPU:
		return k.Text(value) + " " + k.String()
	case k != terms.CPU:
		return bytesWords(value) + " " + k.String()
	case value%1000 == 0:
		return strconv.FormatInt(value/1000, 10) + " cpu"
	case value < manyMillicores:
		return strconv.FormatInt(value, 10) + "m cpu"
	case tenths%10 == 0:
		return strconv.FormatInt(tenths/10, 10) + " cpu"
	default:
		return fmt.Sprintf("%d.%d cpu", tenths/10, tenths%10)
	}
}

// devices returns how many devices of a kind there are, such as "2 gpu" or "1 virtual peer".
func devices(kind string, count terms.Millidevices) string {
	if kind == terms.VirtualPeers.String() {
		return amount(terms.VirtualPeers, int64(count))
	}
	return fmt.Sprintf("%s %s", count, kind)
}

// bytesWords returns bytes in the largest unit that they fill, to one place, rounded up.
func bytesWords(value int64) string {
	units := [...]string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	unit, shift := 0, 0
	for unit < len(units)-1 && value>>(shift+10) > 0 {
		unit, shift = unit+1, shift+10
	}
	whole, rest := value>>shift, value&(1<<shift-1)
	// First in 1024ths, so that nothing overflows, then in tenths.
	rest = (rest + 1<<max(shift-10, 0) - 1) >> max(shift-10, 0)
	tenths := (rest*10 + 1023) >> 10
	if tenths == 10 {
		whole, tenths = whole+1, 0
	}
	if tenths == 0 {
		return fmt.Sprintf("%d %s", whole, units[unit])
	}
	return fmt.Sprintf("%d.%d %s", whole, tenths, units[unit])
}

// clock returns a time of day.
func clock(t terms.Time) string { return time.UnixMilli(int64(t)).UTC().Format("15:04:05 UTC") }

// duration returns milliseconds in words, such as "1m30s".
func duration(millis terms.Time) string {
	if millis < 1000 {
		return fmt.Sprintf("%dms", millis)
	}
	seconds := (millis + 999) / 1000
	text := ""
	for _, unit := range [...]struct {
		seconds terms.Time
		letter  string
	}{{3600, "h"}, {60, "m"}, {1, "s"}} {
		if n := seconds / unit.seconds; n > 0 {
			text += fmt.Sprintf("%d%s", n, unit.letter)
			seconds -= n * unit.seconds
		}
	}
	return text
}

// ending says how the last allocation of a slot ended.
func ending(slot facts.Slot) string {
	switch slot.Ended {
	case facts.ByItself:
		return fmt.Sprintf("exit code %d", slot.ExitCode)
	case facts.BySignal:
		return fmt.Sprintf("killed by signal %d", slot.ExitCode-128)
	}
	return slot.Ended.String()
}

// verb says the same behind "it".
func verb(slot facts.Slot) string {
	switch slot.Ended {
	case facts.ByItself:
		return fmt.Sprintf("exited with %d", slot.ExitCode)
	case facts.BySignal, facts.OutOfMemory:
		return "was " + ending(slot)
	}
	return slot.Ended.String()
}

// plural returns a count with its noun.
func plural(count int, one, many string) string {
	if count == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", count, many)
}

// constraintWords returns a constraint as one would say it: "zone in [a, b]", "instances with app=db in rack > 0".
func constraintWords(c *constraint.Constraint) string {
	words := ""
	switch {
	case len(c.All) > 0:
		words = joinedWords(c.All, " and ")
	case len(c.Any) > 0:
		words = joinedWords(c.Any, " or ")
	case c.Label != "":
		within := ""
		if c.Within != "" {
			within = " in the same " + c.Within
		}
		words = fmt.Sprintf("instances with %s=%s%s %s %d", c.Label, c.Values[0], within, c.Operator, c.Count)
	case c.Operator == constraint.In || c.Operator == constraint.NotIn:
		words = fmt.Sprintf("%s %s [%s]", c.Attribute, c.Operator, strings.Join(c.Values, ", "))
	case len(c.Values) == 0:
		words = fmt.Sprintf("%s %s", c.Attribute, c.Operator)
	default:
		words = fmt.Sprintf("%s %s %s", c.Attribute, c.Operator, c.Values[0])
	}
	if c.Soft {
		words += fmt.Sprintf(" (for %s only)", duration(terms.Time(c.PatienceMillis)))
	}
	return words
}

func joinedWords(parts []constraint.Constraint, between string) string {
	words := make([]string, len(parts))
	for i := range parts {
		words[i] = constraintWords(&parts[i])
		if len(parts[i].All)+len(parts[i].Any) > 0 {
			words[i] = "(" + words[i] + ")"
		}
	}
	return strings.Join(words, between)
}
