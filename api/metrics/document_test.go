package metrics

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// table lists all metrics.
func table() []metric { return append(gauges(), NewMeter().table...) }

// kind is what Prometheus calls the type of a metric.
func (m *metric) kind() string {
	switch {
	case m.collect != nil:
		return "gauge"
	case strings.HasSuffix(m.name, "_total"):
		return "counter"
	}
	return "histogram"
}

// ofPeer tells whether a metric tells of one peer, and not of the cluster.
func (m *metric) ofPeer() bool { return strings.HasPrefix(m.name, "starling_peer_") }

// written holds a file as it is generated; -rewrite writes it.
func written(t *testing.T, file, want string) {
	t.Helper()
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s differs from the table of metrics: run go test ./api/metrics -rewrite", file)
	}
}

// TestReference keeps the end of docs/metrics.md as the table of metrics says.
func TestReference(t *testing.T) {
	const file, head = "../../docs/metrics.md", "## All metrics\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(text), head)
	if !found {
		t.Fatalf("%s has no line %q", file, head)
	}
	want := &strings.Builder{}
	fmt.Fprint(want, before, head)
	for _, part := range []struct {
		head   string
		ofPeer bool
	}{
		{"Of the cluster: alike on all peers at the same index.", false},
		{"Of each peer: what it has counted itself since it started.", true},
	} {
		fmt.Fprintf(want, "\n%s\n\n| metric | type | labels | what it is |\n|---|---|---|---|\n", part.head)
		for _, m := range table() {
			if m.ofPeer() == part.ofPeer {
				fmt.Fprintf(want, "| `%s` | %s | %s | %s |\n", m.name, m.kind(), strings.Join(m.labels, ", "), m.help)
			}
		}
	}
	written(t, file, want.String())
}

// TestOfPeer: what only this peer can tell has another name than what all tell alike.
func TestOfPeer(t *testing.T) {
	for _, m := range clusterGauges() {
		if m.ofPeer() {
			t.Errorf("%s tells of the cluster", m.name)
		}
	}
	for _, m := range append(peerGauges(), NewMeter().table...) {
		if !m.ofPeer() {
			t.Errorf("%s tells of one peer: its name must begin with starling_peer_", m.name)
		}
	}
}
