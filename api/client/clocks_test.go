package client

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestClocks asks peers of which one has a clock of yesterday, one is right, one says nothing, and one is not there.
func TestClocks(t *testing.T) {
	var by *http.Client
	start := func(ahead time.Duration) string {
		peer := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
			if ahead == 0 {
				w.Header()["Date"] = nil
			}
			w.WriteHeader(http.StatusServiceUnavailable) // a peer that is not well has a clock, too
		}))
		t.Cleanup(peer.Close)
		by = peer.Client()
		by.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true
		return strings.TrimPrefix(peer.URL, "https://")
	}
	away := start(time.Second)
	yesterday, silent, right := start(-24*time.Hour), start(0), start(time.Millisecond)
	away = strings.Replace(away, "127.0.0.1", "127.0.0.9", 1)
	got := Clocks(context.Background(), by, []string{yesterday, silent, right, away})
	want := []time.Duration{-24 * time.Hour, 0}
	if len(got) != len(want) {
		t.Fatalf("%d clocks were told, want %d: %v", len(got), len(want), got)
	}
	for i := range want {
		if off := (got[i] - want[i]).Abs(); off > 2*time.Second {
			t.Errorf("clock %d is %v ahead, want about %v", i, got[i], want[i])
		}
	}
}
