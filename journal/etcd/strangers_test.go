package etcd_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"starling/journal/connlimit"
	"starling/journal/etcd"
	"starling/terms/access"
	"starling/trust"
)

// TestOnlyNodesReachAMember asks a member with certificates of its cluster and of another, and without any.
func TestOnlyNodesReachAMember(t *testing.T) {
	keys, other := newKeys(t), newKeys(t)
	cert, key, ca := keys.Files()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	peerURL := "https://" + free.Addr().String()
	must(t, free.Close())
	member, err := etcd.Start(t.Context(), etcd.MemberConfig{
		Name: "a", DataDir: t.TempDir(), ClientURL: "https://127.0.0.1:0", PeerURL: peerURL,
		Certificates: etcd.Certificates{CertFile: cert, KeyFile: key, CAFile: ca, ServerName: trust.ServerName},
	})
	must(t, err)
	defer member.Close()
	must(t, member.Ready(t.Context()))
	reach := func(config *tls.Config) error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // a client tries again until its time is up
		defer cancel()
		opened, err := etcd.Open(ctx, etcd.ClientConfig{Endpoints: []string{member.ClientURL()}, TLS: config})
		if err == nil {
			err = opened.Close()
		}
		return err
	}
	// Members reach each other elsewhere, by the same certificates.
	reachAsMember := func(config *tls.Config) error {
		asking := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: 10 * time.Second}
		defer asking.CloseIdleConnections()
		answer, err := asking.Get(peerURL + "/version")
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	request, err := trust.NewRequest()
	must(t, err)
	public, err := trust.KeyOf(request.CSR)
	must(t, err)
	der, err := keys.SignUser("admin", access.Admin, public, time.Hour)
	must(t, err)
	admin, err := request.Credentials(nil, der, keys.CA().Raw)
	must(t, err)
	instance, err := keys.Instance("j/t/0", "j.t[0]#7", "127.0.0.1:7460")
	must(t, err)
	stranger := func() []trust.Shows {
		return []trust.Shows{{CA: keys.CA(), Certificate: other.Shows()[0].Certificate}}
	}
	shown := func(c *trust.Credentials) *tls.Config {
		return trust.ClientTLS(func() []trust.Shows { return trust.ShowsOf([]*trust.Credentials{c}) })
	}
	must(t, reach(trust.ClientTLS(keys.Shows)))
	must(t, reachAsMember(trust.ClientTLS(keys.Shows)))
	for name, config := range map[string]*tls.Config{
		"nothing":                 trust.ClientTLS(func() []trust.Shows { return []trust.Shows{{CA: keys.CA()}} }),
		"a node elsewhere":        trust.ClientTLS(stranger),
		"an admin":                shown(admin),
		"an instance":             shown(instance),
		"nothing, and no TLS too": nil,
	} {
		if reach(config) == nil {
			t.Errorf("who shows %s reaches the member", name)
		}
		if reachAsMember(config) == nil {
			t.Errorf("who shows %s reaches the member as members do", name)
		}
	}
}

func newKeys(t *testing.T) *trust.Keys {
	t.Helper()
	keys, err := trust.Create(filepath.Join(t.TempDir(), trust.Folder), "a")
	must(t, err)
	return keys
}

// TestAFloodOfConnectionsIsBounded opens connections that say nothing, many more than a member lets strangers have.
func TestAFloodOfConnectionsIsBounded(t *testing.T) {
	t.Parallel()
	keys := newKeys(t)
	cert, key, ca := keys.Files()
	member, err := etcd.Start(t.Context(), etcd.MemberConfig{
		Name: "a", DataDir: t.TempDir(), ClientURL: "https://127.0.0.1:0", PeerURL: "https://127.0.0.1:0",
		Certificates: etcd.Certificates{CertFile: cert, KeyFile: key, CAFile: ca, ServerName: trust.ServerName},
	})
	must(t, err)
	defer member.Close()
	must(t, member.Ready(t.Context()))
	address := strings.TrimPrefix(member.ClientURL(), "https://")
	limits := connlimit.Default()
	var silent []net.Conn
	defer func() {
		for _, one := range silent {
			one.Close()
		}
	}()
	for range limits.OfAddress + 200 {
		one, err := net.Dial("tcp", address)
		must(t, err)
		silent = append(silent, one)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	opened, err := etcd.Open(ctx, etcd.ClientConfig{Endpoints: []string{member.ClientURL()},
		TLS: trust.ClientTLS(keys.Shows)})
	must(t, err)
	must(t, opened.Close())
	for i, one := range silent { // those beyond the limit at once, the others when their time is up
		must(t, one.SetReadDeadline(time.Now().Add(20*time.Second)))
		if _, err := one.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("connection %d, which says nothing, gets %v", i, err)
		}
	}
}
