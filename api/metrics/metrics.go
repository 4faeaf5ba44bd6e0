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
	// pools is made when it is first needed.
	pools *explanation.Pools
}

// Handler answers the scrape.
func (s *Scrape) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(s)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// gauge is one metric: all of them are gauges, because they tell how something is and not what has happened.
type gauge struct {
	name, help string
	labels     []string
	// collect gives the values, each with those of the labels.
	collect func(s *Scrape, give func(value float64, labels ...string))
}

func (g *gauge) describe() *prometheus.Desc { return prometheus.NewDesc(g.name, g.help, g.labels, nil) }

// gauges is the table of all metrics.
func gauges() []gauge { return append(clusterGauges(), peerGauges()...) }

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
