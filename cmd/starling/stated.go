package main

import (
	"errors"
	"strconv"
)

// stated is a number that a flag may state.
type stated struct {
	number uint32
	given  bool
}

// Set implements pflag.Value.
func (s *stated) Set(text string) error {
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return errors.New("must be a version, or 0 for none")
	}
	*s = stated{uint32(number), true}
	return nil
}

// String implements pflag.Value.
func (s *stated) String() string {
	if !s.given {
		return ""
	}
	return strconv.FormatUint(uint64(s.number), 10)
}

// Type implements pflag.Value.
func (s *stated) Type() string { return "version" }
