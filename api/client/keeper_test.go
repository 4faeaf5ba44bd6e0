package client

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"starling/api/door"
	"starling/api/wire"
)

// TestOnlyThoseThatCannotArePassedOver asks one node after the other, until one that holds the key has said something.
func TestOnlyThoseThatCannotArePassedOver(t *testing.T) {
	answers := map[string]struct {
		status int
		text   string
	}{
		"member": {http.StatusForbidden, `{"code":"conflict","message":"it does not hold the key"}`},
		"none":   {http.StatusForbidden, `{"code":"not_found","message":"there is no such image"}`},
		"keeper": {http.StatusOK, `{"image":"app@sha256:1"}`},
	}
	for _, c := range []struct{ nodes, want string }{
		{"member keeper", ""}, {"member none keeper", "there is no such image"},
		{"member member", "no machine that holds the authority's key has done it"},
	} {
		var addresses []string
		var by *http.Client
		for name := range strings.FieldsSeq(c.nodes) {
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(answers[name].status)
				_, _ = w.Write([]byte(answers[name].text))
			}))
			t.Cleanup(s.Close)
			addresses, by = append(addresses, strings.TrimPrefix(s.URL, "https://")), s.Client()
		}
		got, err := Pin(context.Background(), by, addresses, door.PinRequest{})
		if c.want == "" && (err != nil || got.Image != "app@sha256:1") ||
			c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %+v, %v, want %q", c.nodes, got, err, c.want)
		}
		if failure := (*wire.Failure)(nil); c.want != "" && !errors.As(err, &failure) {
			t.Errorf("%s: got %v, want a failure with a code", c.nodes, err)
		}
	}
}
