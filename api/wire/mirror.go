package wire

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	starlingv1 "starling/api/v1"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/lifecycle"
)

// A message has a field for each field of the value that it stands for, of the same name. So one is made of the other
// by reflection, and only what differs is written down here. TestEveryFieldHasItsCounterpart says which is missing.

// counterpart returns the name in messages of a field of a value.
func counterpart(field string) string {
	switch field {
	case "Preemption":
		return "Preemptible"
	case "Amount":
		return "Milli"
	case "IDTokens":
		return "IdTokens"
	}
	return field
}

// wordsOf returns the words of an enumeration at their numbers, nil for another type.
func wordsOf(v any) []string {
	switch v.(type) {
	case terms.JobType:
		return terms.JobTypes()
	case terms.TaskScheduler:
		return terms.TaskSchedulers()
	case terms.Coverage:
		return terms.Coverages()
	case terms.Grow:
		return terms.Grows()
	case terms.Placement:
		return terms.Placements()
	case terms.Signal:
		return terms.Signals()
	case terms.StopSignal:
		return terms.StopSignals()
	case terms.Growth:
		return terms.Growths()
	case terms.Survivor:
		return terms.Survivors()
	case terms.Method:
		return terms.Methods()
	case terms.CheckKind:
		return terms.CheckKinds()
	case terms.OnFailure:
		return terms.OnFailures()
	case constraint.Operator:
		return constraint.Operators()
	case lifecycle.Event:
		return lifecycle.Events()
	case lifecycle.Action:
		return lifecycle.Actions()
	}
	return nil
}

// messages returns the messages of values.
func messages[M, V any](all []V) (list []*M) {
	put(reflect.ValueOf(&list).Elem(), reflect.ValueOf(all))
	return list
}

// put writes a value into the field of a message that stands for it.
func put(m, v reflect.Value) {
	one := v.Interface()
	switch one := one.(type) {
	case terms.Resources:
		m.Set(reflect.ValueOf(Resources(one)))
		return
	case terms.Volume:
		m.SetString(one.Name)
		return
	case terms.Preemption:
		if one != terms.PreemptionByType {
			m.Set(reflect.ValueOf(new(one == terms.Preemptible)))
		}
		return
	}
	switch {
	case m.Kind() == reflect.Pointer:
		m.Set(reflect.New(m.Type().Elem()))
		put(m.Elem(), v)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			put(m.FieldByName(counterpart(v.Type().Field(i).Name)), v.Field(i))
		}
	case v.Kind() == reflect.Slice && v.Len() > 0:
		m.Set(reflect.MakeSlice(m.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			put(m.Index(i), v.Index(i))
		}
	case one == terms.StopSignal(0): // peers whose programs do not know the field take the job, too
	case wordsOf(one) != nil:
		m.SetString(one.(fmt.Stringer).String())
	case v.Kind() != reflect.Slice:
		m.Set(v.Convert(m.Type()))
	}
}

// take reads the value for which the field of a message stands, and returns what no value can hold, with the paths from
// there. What is absent leaves v as it is.
func take(v, m reflect.Value) (problems []terms.Problem) {
	switch v.Interface().(type) {
	case terms.Resources:
		v.Set(reflect.ValueOf(ResourcesOf(m.Interface().(*starlingv1.Resources))))
		return nil
	case terms.Volume:
		v.Set(reflect.ValueOf(terms.Volume{Name: m.String()}))
		return nil
	case terms.Preemption:
		switch given := m.Interface().(*bool); {
		case given != nil && *given:
			v.SetUint(uint64(terms.Preemptible))
		case given != nil:
			v.SetUint(uint64(terms.NonPreemptible))
		}
		return nil
	}
	switch words := wordsOf(v.Interface()); {
	case m.Kind() == reflect.Pointer:
		if !m.IsNil() {
			return take(v, m.Elem())
		}
	case words != nil:
		takeWord(v, m.String(), words)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			name := counterpart(v.Type().Field(i).Name)
			for _, p := range take(v.Field(i), m.FieldByName(name)) {
				field, _ := m.Type().FieldByName(name)
				inFile, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				problems = append(problems, terms.Problem{Path: "." + inFile + p.Path, Reason: p.Reason})
			}
		}
	case v.Kind() == reflect.Slice:
		return takeList(v, m)
	case v.Kind() == reflect.Uint16 && v.OverflowUint(m.Uint()):
		return []terms.Problem{{Reason: fmt.Sprintf("must be at most %d, is %d", 1<<v.Type().Bits()-1, m.Uint())}}
	default:
		v.Set(m.Convert(v.Type()))
	}
	return problems
}

// takeWord reads the number of a word. One that is not among them becomes a number that package validate names: 0 where
// that is no value, else one beyond them all.
func takeWord(v reflect.Value, word string, words []string) {
	if word == "" {
		return
	}
	number := slices.Index(words, word)
	if number < 0 {
		switch v.Interface().(type) {
		case terms.JobType, terms.Placement, terms.CheckKind, constraint.Operator, lifecycle.Event, lifecycle.Action:
			number = 0
		default:
			number = len(words)
		}
	}
	v.SetUint(uint64(number))
}

// takeList reads a list. What values have in order comes in any.
func takeList(v, m reflect.Value) (problems []terms.Problem) {
	if m.Len() == 0 {
		return nil
	}
	v.Set(reflect.MakeSlice(v.Type(), m.Len(), m.Len()))
	for i := range m.Len() {
		if task, ok := v.Index(i).Addr().Interface().(*terms.Task); ok {
			task.Placement, task.MaxRestarts = terms.Pack, lifecycle.RestartsDefault
		}
		for _, p := range take(v.Index(i), m.Index(i)) {
			problems = append(problems, terms.Problem{Path: fmt.Sprintf("[%d]%s", i, p.Path), Reason: p.Reason})
		}
	}
	switch all := v.Interface().(type) {
	case []terms.EnvVar:
		slices.SortStableFunc(all, func(a, b terms.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	case []terms.DeviceRequest:
		slices.SortStableFunc(all, func(a, b terms.DeviceRequest) int { return cmp.Compare(a.Kind, b.Kind) })
	}
	return problems
}
