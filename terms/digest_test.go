package terms_test

import (
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/terms"
)

// TestDigestCoversJobs gives a job a new version that differs in one value, one value after another: the digest of the
// value must tell it from the one that differs in nothing.
func TestDigestCoversJobs(t *testing.T) {
	digest := func(first, second *terms.Job) uint64 {
		s := cluster.NewState()
		s.AddJob(first)
		s.AddVersion(1, facts.JobVersion{Kind: facts.Submitted, Spec: second}, nil)
		return s.Digest()
	}
	for n := range terms.Mutants() {
		old, now, path := terms.Mutant(n)
		if digest(old, old) == digest(old, now) {
			t.Errorf("%s: the digest does not cover it: add the field to the hash in terms/fingerprint", path)
		}
	}
}
