package wishes_test

import (
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"starling/sim/wishes"
	"starling/terms"
)

// undrawn are the fields that are zero in every job that is drawn, each with its reason.
var undrawn = map[string]string{
	"Task.Env": "only a driver sees it", "Task.WorkDir": "only a driver sees it", "Task.User": "registrars draw it",
	"Task.HostPaths":       "registrars draw it",
	"Task.OnMembersChange": "only a driver sees it", "Task.ProcessesMax": "only a driver sees it",
	"Task.DiskBytesMax":    "only a driver sees it",
	"Task.VolumesBytesMax": "only a driver sees it",
	"Task.StopSignal":      "only a driver sees it",
	"Task.Secrets":         "registrars draw it",
	"Container.PullSecret": "only a driver sees it",
	"Task.IDTokens":        "only a driver sees it",
	"Check.Service":        "only a driver sees it",
	"Check.Method":         "only a driver sees it", "Check.Headers": "only a driver sees it",
	"Check.Body": "only a driver sees it", "Check.Status": "only a driver sees it",
	"Check.StartMillis": "a simulated program tells by itself how it fares",
	"Check.Port":        "only a driver sees it", "Check.Path": "only a driver sees it",
	"Check.FailuresMax":       "a simulated program tells by itself how it fares",
	"Task.Resources[2]":       "disk is counted as memory is",
	"PluginRequest.Arguments": "the one plugin that is drawn has none",
}

// TestEveryFieldIsDrawn draws jobs: each field of a job, a task and what they hold must be other than zero in some.
func TestEveryFieldIsDrawn(t *testing.T) {
	drawn := map[string]bool{}
	for seed := range uint64(200) {
		requests := 0
		d := &wishes.Drawer{Rand: rand.New(rand.NewPCG(seed, 0)), Seed: seed, Limits: terms.DefaultLimits(),
			Happens:   func(wishes.Mishap) bool { return false },
			RequestID: func() string { requests++; return strconv.Itoa(requests) }}
		for n := range 20 {
			spec := d.Spec(terms.JobName("job" + strconv.Itoa(n)))
			d.Names = append(d.Names, spec.Name)
			note(reflect.ValueOf(spec), "", drawn)
			note(reflect.ValueOf(d.Changed(&spec)), "", drawn)
		}
	}
	for field, some := range drawn {
		switch _, exempt := undrawn[field]; {
		case !some && !exempt:
			t.Errorf("field %s is missing in sim/wishes: it is zero in every job that is drawn", field)
		case some && exempt:
			t.Errorf("field %s is drawn: take it off the list", field)
		}
	}
	for field := range undrawn {
		if _, ok := drawn[field]; !ok {
			t.Errorf("there is no field %s any more: take it off the list", field)
		}
	}
}

// note notes which fields are not zero, of those that hold no others, and of lists.
func note(v reflect.Value, field string, drawn map[string]bool) {
	switch v.Kind() {
	case reflect.Slice:
		drawn[field] = drawn[field] || v.Len() > 0
		for i := range v.Len() {
			note(v.Index(i), field, drawn)
		}
	case reflect.Array:
		for i := range v.Len() {
			note(v.Index(i), field+"["+strconv.Itoa(i)+"]", drawn)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			note(v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name, drawn)
		}
	default:
		drawn[field] = drawn[field] || !v.IsZero()
	}
}
