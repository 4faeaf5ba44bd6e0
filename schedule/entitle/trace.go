package entitle

import "starling/terms"

// Trace is how a pool's entitlement came about, for those who ask why it is not more.
type Trace struct {
	Entitlement
	// Asked is held or asked for by jobs that could use it; Claim is what is left of that at the limits, or more for a
	// static reservation.
	Asked, Claim terms.Amounts
	// Reserved came from the reservation, Shared by share for a claim, Left by share beyond all claims. Their sum is the
	// total.
	Reserved, Shared, Left terms.Amounts
	// Short is what was claimed of the reservation and not given, as the pools reserve more than there is.
	Short terms.Amounts
	// Cut is why it is not all that was asked for.
	Cut [terms.AmountCount]Cut
}

// Cut is what kept a pool from all that it asked for.
type Cut uint8

// The cuts. Where there are two, it is the first of these.
const (
	NotCut Cut = iota
	// ByParent says that the parent has no more to give.
	ByParent
	// ByShare says that there would be more, and the pool has no share in it.
	ByShare
	// ByLimit and BySlackLimit say that the pool may have no more.
	ByLimit
	BySlackLimit
)

// String returns the reason in words.
func (c Cut) String() string {
	return [...]string{"not cut", "no more in the parent", "no share", "limit", "slack limit"}[c]
}

// Traces returns how each entitlement came about, in the order of the input.
func Traces(in *Input) []Trace {
	traces := make([]Trace, len(in.Pools))
	l := newLedger(in, traces)
	l.divide()
	for i, e := range l.entitlements(nil) {
		t, a := &traces[i], &l.accounts[i+1]
		t.Entitlement, t.Claim = e, a.claim
		for k, q := range in.Pools[i].Spec.Quotas {
			t.Short[k] = min(t.Claim[k], q.Reservation) - t.Reserved[k]
			switch {
			case t.Total[k] < t.Claim[k] && (q.Share > 0 || t.Short[k] > 0):
				t.Cut[k] = ByParent
			case t.Total[k] < t.Claim[k]:
				t.Cut[k] = ByShare
			case t.Claim[k] == q.Limit && t.Asked[k] > q.Limit:
				t.Cut[k] = ByLimit
			case t.Asked[k] > t.Claim[k]:
				t.Cut[k] = BySlackLimit
			}
		}
	}
	return traces
}

func (t *Trace) note(st stage, k terms.Kind, got int64) {
	switch st {
	case byReservation:
		t.Reserved[k] = got
	case byShare:
		t.Shared[k] = got
	case leftOver:
		t.Left[k] = got
	}
}
