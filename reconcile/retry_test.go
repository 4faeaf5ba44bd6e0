package reconcile_test

import (
	"slices"
	"testing"

	"starling/reconcile"
	"starling/terms"
)

// delays returns attempts a minute apart with these delays, the last of them a minute before now.
func delays(millis ...uint32) []reconcile.Attempt {
	var all []reconcile.Attempt
	for i, d := range millis {
		all = append(all, reconcile.Attempt{At: now - terms.Time(60_000*(len(millis)-i)), DelayMillis: d})
	}
	return all
}

func TestNextDelay(t *testing.T) {
	policy := terms.Reschedule{DelayMillis: 5_000, DelayMaxMillis: 50_000}
	for _, c := range []struct {
		growth   terms.Growth
		attempts []reconcile.Attempt
		ended    terms.Time
		want     uint32
	}{
		{terms.Constant, nil, now, 5_000},
		{terms.Constant, delays(5_000, 5_000), now, 5_000},
		{terms.Exponential, nil, now, 5_000},
		{terms.Exponential, delays(5_000), now, 10_000},
		{terms.Exponential, delays(5_000, 10_000, 20_000), now, 40_000},
		{terms.Exponential, delays(40_000), now - 20_000, 50_000},             // the longest
		{terms.Exponential, delays(40_000), now, 5_000},                       // it lived for longer than that
		{terms.Exponential, delays(4_000_000_000), now - 20_000, 50_000},      // no overflow
		{terms.Fibonacci, delays(5_000), now, 5_000},                          // the second is like the first
		{terms.Fibonacci, delays(5_000, 5_000), now, 10_000},                  //
		{terms.Fibonacci, delays(10_000, 15_000), now, 25_000},                //
		{terms.Fibonacci, delays(25_000, 40_000), now - 20_000, 50_000},       // the longest
		{terms.Fibonacci, delays(50_000, 5_000), now, 5_000},                  // the series begins anew
		{terms.Fibonacci, delays(50_000, 5_000, 5_000), now - 20_000, 10_000}, // and goes on
	} {
		policy.Growth = c.growth
		if got := reconcile.NextDelay(&policy, c.attempts, c.ended); got != c.want {
			t.Errorf("%v after %v: %d ms, want %d", c.growth, c.attempts, got, c.want)
		}
	}
}

func TestNextAttempt(t *testing.T) {
	for _, c := range []struct {
		name     string
		policy   terms.Reschedule
		attempts []reconcile.Attempt
		want     bool
	}{
		{"no policy", terms.Reschedule{}, nil, false},
		{"the first", terms.Reschedule{AttemptsMax: 1, DelayMillis: 5_000}, nil, true},
		{"one of two", terms.Reschedule{AttemptsMax: 2, IntervalMillis: 300_000, DelayMillis: 5_000}, delays(5_000), true},
		{"two of two", terms.Reschedule{AttemptsMax: 2, IntervalMillis: 300_000, DelayMillis: 5_000}, delays(5_000, 5_000),
			false},
		{"one is long ago", terms.Reschedule{AttemptsMax: 2, IntervalMillis: 90_000, DelayMillis: 5_000},
			delays(5_000, 5_000), true},
		{"a delay beyond the interval", terms.Reschedule{AttemptsMax: 2, IntervalMillis: 90_000, DelayMillis: 95_000},
			delays(5_000), false},
		{"unlimited", terms.Reschedule{AttemptsMax: terms.RestartsUnlimited, DelayMillis: 5_000},
			delays(5_000, 5_000, 5_000), true},
	} {
		at, got := reconcile.NextAttempt(&c.policy, c.attempts, now)
		if want := now + terms.Time(c.policy.DelayMillis); got != c.want || at != want {
			t.Errorf("%s: %v at %d, want %v at %d", c.name, got, at, c.want, want)
		}
	}
}

func TestInherit(t *testing.T) {
	next := reconcile.Attempt{At: now, DelayMillis: 5_000}
	limited := terms.Reschedule{AttemptsMax: 3, IntervalMillis: 150_000}
	if got, want := reconcile.Inherit(nil, &limited, delays(1, 2, 3), next),
		append(delays(1, 2, 3)[1:], next); !slices.Equal(got, want) {
		t.Errorf("within the interval are %v, want %v", got, want)
	}
	unlimited := terms.Reschedule{AttemptsMax: terms.RestartsUnlimited}
	if got, want := reconcile.Inherit(nil, &unlimited, delays(1, 2, 3, 4, 5, 6), next),
		append(delays(1, 2, 3, 4, 5, 6)[1:], next); !slices.Equal(got, want) {
		t.Errorf("the last are %v, want %v", got, want)
	}
}
