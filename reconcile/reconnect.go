package reconcile

import "starling/terms"

// KeepBetter keeps what has the node that suits it better. No job file asks for it: placement gives no scores yet.
const KeepBetter = terms.KeepLongest + 1

// KeepsReplacement tells which of two instances of one seat is kept when the original returns. What runs a newer version
// wins; then the rule decides.
func KeepsReplacement(rule terms.Survivor, original, replacement *Candidate) bool {
	if replacement.Version > original.Version || replacement.Instance > original.Instance {
		return true
	}
	switch rule {
	case terms.KeepOriginal:
		return false
	case terms.KeepReplacement:
		return true
	case terms.KeepLongest:
		return runsLonger(original, replacement)
	}
	return scoresBetter(original, replacement)
}

// scoresBetter tells whether the replacement's node suits it strictly better. It is no use if only the original runs.
func scoresBetter(original, replacement *Candidate) bool {
	runs := replacement.Client == RunningClient || original.Client != RunningClient
	return runs && replacement.Score > original.Score
}

// runsLonger tells whether the replacement runs for as long as the original, or longer.
func runsLonger(original, replacement *Candidate) bool {
	switch {
	case original.Started == 0 && replacement.Started == 0:
		return scoresBetter(original, replacement)
	case original.Started == 0 || replacement.Started == 0:
		return original.Started == 0
	}
	return replacement.Started <= original.Started
}
