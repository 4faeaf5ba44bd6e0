package client

import (
	"context"
	"io"
	"net/http"

	"starling/api/door"
	"starling/api/wire"
)

// metricsBytesMax bounds an answer of metrics.
const metricsBytesMax = 16 << 20

// Metrics returns what the first peer that answers tells to Prometheus.
func (c *Client) Metrics(ctx context.Context) (text []byte, err error) {
	for _, address := range c.addresses {
		var asked *http.Request
		if asked, err = http.NewRequestWithContext(ctx, http.MethodGet, wire.URL(address)+door.PathMetrics, nil); err != nil {
			return nil, err
		}
		var answer *http.Response
		if answer, err = c.by(address).Do(asked); err != nil {
			err = &wire.Failure{Code: wire.Unavailable, Reason: err.Error()}
			continue
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			err = &wire.Failure{Code: wire.Unavailable, Reason: answer.Status, Decided: true}
			continue
		}
		return io.ReadAll(io.LimitReader(answer.Body, metricsBytesMax))
	}
	return nil, err
}
