// Package wording says quantities, times, constraints and lists in the words of answers to "why is this not running?".
package wording

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/constraint"
)

// Amount returns a quantity of a resource in words, such as "500m cpu" or "1.5 GiB memory", rounded up.
func Amount(k terms.Kind, value int64) string {
	const manyMillicores = 10_000
	switch tenths := (value + 99) / 100; {
	case k == terms.VirtualPeers && value == int64(terms.WholeDevice):
		return "1 virtual peer"
	case k == terms.VirtualPeers:
		return k.Text(value) + " virtual peers"
	case k == terms.GPU:
		return k.Text(value) + " " + k.String()
	case k != terms.CPU:
		return Bytes(value) + " " + k.String()
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

// Common returns the kinds that are in both lists, in their order.
func Common(all, others []terms.Kind) []terms.Kind {
	return slices.DeleteFunc(slices.Clone(all), func(k terms.Kind) bool { return !slices.Contains(others, k) })
}

// Kinds lists kinds of resources: "cpu", "cpu and memory".
func Kinds(kinds []terms.Kind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		if words[i] = k.String(); k == terms.VirtualPeers {
			words[i] = "the virtual peers"
		}
	}
	return strings.Join(words, " and ")
}

// Ports says before "taken" that ports are: "port 80 is".
func Ports(ports []terms.PortRequest) string {
	words := make([]string, len(ports))
	for i, p := range ports {
		words[i] = strconv.Itoa(int(p.Number))
	}
	if len(words) == 1 {
		return "port " + words[0] + " is"
	}
	return "one of the ports " + strings.Join(words, ", ") + " is"
}

// Devices returns how many devices of a kind there are, such as "2 gpu" or "1 virtual peer".
func Devices(kind string, count terms.Millidevices) string {
	if kind == terms.VirtualPeers.String() {
		return Amount(terms.VirtualPeers, int64(count))
	}
	return fmt.Sprintf("%s %s", count, kind)
}

// Bytes returns bytes in the largest unit that they fill, to one place, rounded up.
func Bytes(value int64) string {
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

// Clock returns a time as machines write it: who reads it has a zone, and knows what day it is.
func Clock(t terms.Time) string { return time.UnixMilli(int64(t)).UTC().Format(time.RFC3339) }

// Duration returns milliseconds in words, such as "1m30s".
func Duration(millis terms.Time) string {
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

// Plural returns a count with its noun.
func Plural(count int, one, many string) string {
	if count == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", count, many)
}

// OfNodes returns for example "2 of 5 nodes".
func OfNodes(some, all int) string {
	switch {
	case some == all && all == 1:
		return "the only node"
	case some == all:
		return fmt.Sprintf("all %d nodes", all)
	}
	return fmt.Sprintf("%d of %s", some, Plural(all, "node", "nodes"))
}

// Ordinal returns "first", "2nd".
func Ordinal(n int) string {
	switch {
	case n == 1:
		return "first"
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

// Ended says behind "the update" how one has ended.
func Ended(state facts.UpdateState) string {
	return map[facts.UpdateState]string{facts.UpdateSucceeded: "has succeeded", facts.RolledBack: "was rolled back",
		facts.UpdateFailed: "has failed", facts.UpdateAborted: "was aborted"}[state]
}

// GaveWay says why an instance of a job gave way to another by a rule. No job gives way to itself: if that is said, its
// pool divides its virtual peers in another way now. A job that the reader may not see has no name.
func GaveWay(own, to terms.JobName, rule string) string {
	switch to {
	case own:
		return rule
	case "":
		to = "a job of another pool"
	}
	return fmt.Sprintf("%s needed its room, and %s", to, rule)
}

// Constraint returns a constraint as one would say it: "zone in [a, b]", "instances with app=db in rack > 0".
func Constraint(c *constraint.Constraint) string {
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
		words += fmt.Sprintf(" (for %s only)", Duration(terms.Time(c.SoftTimeoutMillis)))
	}
	return words
}

func joinedWords(parts []constraint.Constraint, between string) string {
	words := make([]string, len(parts))
	for i := range parts {
		words[i] = Constraint(&parts[i])
		if len(parts[i].All)+len(parts[i].Any) > 0 {
			words[i] = "(" + words[i] + ")"
		}
	}
	return strings.Join(words, between)
}

// Most bounds what a finding names one by one: instances, nodes, jobs.
const Most = 3

// Some lists the first few of names.
func Some(names []string) string {
	if rest := len(names) - Most; rest > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:Most], ", "), rest)
	}
	return strings.Join(names, ", ")
}

// Lines returns a line for each of the first elements, and how many are left out.
func Lines[T any](all []T, what string, line func(T) string) []string {
	shown := len(all)
	if shown > Most+1 {
		shown = Most
	}
	var result []string
	for _, one := range all[:shown] {
		result = append(result, line(one))
	}
	if shown < len(all) {
		result = append(result, fmt.Sprintf("and %d more %s", len(all)-shown, what))
	}
	return result
}

// Unsuited says that no nodes could ever run a task as they are.
func Unsuited(isGang bool) string {
	if isGang {
		return "nodes could not run its gang together even if they were empty"
	}
	return "no node that takes work could run it even if it were empty"
}
