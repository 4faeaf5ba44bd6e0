package conformance

import (
	"fmt"
	"runtime/debug"
	"testing"
)

// trial is one case under test. It takes what testing.T would take, so that what comes of the case can be held against
// the table of those that are left out before the test hears of it.
type trial struct {
	failures, notes []string
	// leftOut is the form, in the table, for which the case is left out; "" if it is compared.
	leftOut string
}

// halt ends a case in the middle.
type halt struct{}

// try runs one case. A panic fails the case and no other.
func try(check func(t *trial)) *trial {
	t := &trial{}
	func() {
		defer func() {
			switch why := recover().(type) {
			case nil, halt:
			default:
				t.Errorf("panic: %v\n%s", why, debug.Stack())
			}
		}()
		check(t)
	}()
	return t
}

func (t *trial) Error(args ...any) { t.failures = append(t.failures, fmt.Sprint(args...)) }

func (t *trial) Errorf(format string, args ...any) { t.Error(fmt.Sprintf(format, args...)) }

func (t *trial) Fatal(args ...any) {
	t.Error(args...)
	panic(halt{})
}

func (t *trial) Fatalf(format string, args ...any) { t.Fatal(fmt.Sprintf(format, args...)) }

func (t *trial) Log(args ...any) { t.notes = append(t.notes, fmt.Sprint(args...)) }

func (t *trial) Logf(format string, args ...any) { t.Log(fmt.Sprintf(format, args...)) }

// leaveOut ends a case of a form that has no counterpart here: the row of the table with that form says why.
func (t *trial) leaveOut(form string) {
	t.leftOut = form
	panic(halt{})
}

func TestTrial(t *testing.T) {
	for name, c := range map[string]struct {
		check    func(t *trial)
		failures int
		leftOut  string
	}{
		"passes":   {func(t *trial) { t.Log("a note") }, 0, ""},
		"fails":    {func(t *trial) { t.Error("a"); t.Errorf("b") }, 2, ""},
		"ends":     {func(t *trial) { t.Fatalf("a"); t.Error("never") }, 1, ""},
		"panics":   {func(t *trial) { panic("a") }, 1, ""},
		"left out": {func(t *trial) { t.leaveOut("tiers"); t.Error("never") }, 0, "tiers"},
		"both":     {func(t *trial) { t.Error("a"); t.leaveOut("tiers") }, 1, "tiers"},
	} {
		if got := try(c.check); len(got.failures) != c.failures || got.leftOut != c.leftOut {
			t.Errorf("%s: got %v, left out for %q; want %d failures, %q", name, got.failures, got.leftOut, c.failures, c.leftOut)
		}
	}
}
