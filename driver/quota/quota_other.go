//go:build !linux

package quota

import "errors"

// Missing tells that this system has no such quotas.
func Missing(string) error { return errors.ErrUnsupported }

// Begin gives a folder no project here.
func Begin(string) error { return errors.ErrUnsupported }

// Limit does nothing to a folder without a project.
func Limit(string, int64) error { return nil }

// Used knows of no limit here.
func Used(string) (Taken, bool) { return Taken{}, false }
