package usage

import (
	"errors"
	"strconv"
)

// Version is the value of a flag that may state the version of something.
type Version struct {
	Number uint32
	// Given tells that it was stated.
	Given bool
}

// Set implements pflag.Value.
func (v *Version) Set(text string) error {
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return errors.New("must be a version, or 0 for none")
	}
	*v = Version{uint32(number), true}
	return nil
}

// String implements pflag.Value.
func (v *Version) String() string {
	if !v.Given {
		return ""
	}
	return strconv.FormatUint(uint64(v.Number), 10)
}

// Type implements pflag.Value.
func (v *Version) Type() string { return "version" }
