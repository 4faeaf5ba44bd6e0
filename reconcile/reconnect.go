package reconcile

// KeepsReplacement tells which of two instances of one seat is kept when the original returns. What runs a newer version
// wins; then the strategy decides.
func KeepsReplacement(strategy Survivor, original, replacement *Candidate) bool {
	if replacement.Version > original.Version || replacement.Instance > original.Instance {
		return true
	}
	switch strategy {
	case KeepOriginal:
		return false
	case KeepReplacement:
		return true
	case LongestRunning:
		return startedEarlier(original, replacement)
	}
	return scoresBetter(original, replacement)
}

// scoresBetter tells whether the replacement's node suits it strictly better. It is no use if only the original runs.
func scoresBetter(original, replacement *Candidate) bool {
	runs := replacement.Client == RunningClient || original.Client != RunningClient
	return runs && replacement.Score > original.Score
}

// startedEarlier tells whether the replacement runs for as long as the original, or longer.
func startedEarlier(original, replacement *Candidate) bool {
	switch {
	case original.Started == 0 && replacement.Started == 0:
		return scoresBetter(original, replacement)
	case original.Started == 0 || replacement.Started == 0:
		return original.Started == 0
	}
	return replacement.Started <= original.Started
}
