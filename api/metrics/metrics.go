package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"starling/cluster"
	"starling/replica/report"
	"starling/schedule/entitle/explanation"
	"starling/terms"
)

// Scrape is what one scrape is answered from.
type Scrape struct {
	State  *cluster.State
	Status report.PeerStatus
	// Head is the last entry of the journal, unless HeadError tells that the journal does not answer.
	Head      terms.Index
	HeadError error
	// Version is the program's.
	Version string
	// Meter is what the peer has counted.
	Meter *Meter
	// pools is made when it is first needed.
	pools *explanation.Pools
}

// Handler answers the scrape.
func (s *Scrape) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(s)
	return promhttp.HandlerFor(prometheus.Gatherers{registry, s.Meter.registry}, promhttp.HandlerOpts{})
}

// metric is a row of the table of all metrics.
type metric struct {
	name, help string
	labels     []string
	// collect gives the values of a gauge, each with those of the labels; it is nil for what a Meter counts.
	collect func(s *Scrape, give func(value float64, labels ...string))
}

func (m *metric) describe() *prometheus.Desc {
	return prometheus.NewDesc(m.name, m.help, m.labels, nil)
}

// gauges tell how something is when it is scraped.
func gauges() []metric { return append(clusterGauges(), peerGauges()...) }

// Describe implements prometheus.Collector.
func (s *Scrape) Describe(to chan<- *prometheus.Desc) {
	for _, g := range gauges() {
		to <- g.describe()
	}
}

// Collect implements prometheus.Collector.
func (s *Scrape) Collect(to chan<- prometheus.Metric) {
	for _, g := range gauges() {
		description := g.describe()
		g.collect(s, func(value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...)
		})
	}
}
