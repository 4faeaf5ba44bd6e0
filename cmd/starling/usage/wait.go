package usage

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
)

// Wait declares a flag that says how long to wait at most: 0, which is not shown, for as long as it takes.
func Wait(flags *pflag.FlagSet, into *time.Duration, name, words string) {
	flags.Var((*wait)(into), name, words)
}

// wait is the value of such a flag.
type wait time.Duration

// Set implements pflag.Value.
func (w *wait) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("must not be negative")
	}
	*w = wait(d)
	return err
}

// String implements pflag.Value.
func (w *wait) String() string {
	if *w == 0 {
		return ""
	}
	return time.Duration(*w).String()
}

// Type implements pflag.Value.
func (w *wait) Type() string { return "duration" }
