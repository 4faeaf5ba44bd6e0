package metrics

import (
	"slices"

	"starling/replica/report"
)

func peerGauges() []metric {
	return []metric{
		{"starling_peer_trouble", "1 for each reason why this peer does not serve as it should, else 0.", []string{"reason"},
			troubles},
		{"starling_peer_warnings", "Warnings of this peer: what its machine cannot do, and what is wrong now. GET /healthz " +
			"lists them.", nil, one(func(s *Scrape) float64 { return float64(len(s.Status.Warnings)) })},
		{"starling_peer_outbox_requests", "Requests in the outbox of this peer, which wait to become entries of the journal " +
			"or to be folded.", nil, one(func(s *Scrape) float64 { return float64(s.Status.Requests) })},
		{"starling_peer_journal_lag_entries", "Entries of the journal that this peer has not folded yet; absent while the journal " +
			"does not answer.", nil, lag},
		{"starling_peer_journal_used_bytes", "What the engine of the journal holds, as this peer measured it last.", nil,
			one(func(s *Scrape) float64 { return float64(s.Status.JournalUsed) })},
		{"starling_peer_journal_quota_bytes", "What the engine of the journal may hold; 0 if no bound is known.", nil,
			one(func(s *Scrape) float64 { return float64(s.Status.JournalQuota) })},
		{"starling_peer_build_info", "Always 1; the label is the version of this peer's program.", []string{"version"},
			func(s *Scrape, give func(float64, ...string)) { give(1, s.Version) }},
	}
}

func troubles(s *Scrape, give func(float64, ...string)) {
	for _, kind := range report.TroubleKinds() {
		present := slices.ContainsFunc(s.Status.Troubles, func(t report.Trouble) bool { return t.Kind == kind }) ||
			kind == report.NoQuorum && s.HeadError != nil
		if present {
			give(1, string(kind))
		} else {
			give(0, string(kind))
		}
	}
}

func lag(s *Scrape, give func(float64, ...string)) {
	if s.HeadError == nil {
		give(float64(max(s.Head, s.State.Index) - s.State.Index))
	}
}
