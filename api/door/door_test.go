package door_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"starling/api/client"
	"starling/api/door"
	"starling/api/wire"
	"starling/cluster/registry"
	"starling/journal/connlimit"
	"starling/terms/access"
	"starling/trust"
)

// cluster makes a cluster, with its first node a.
func cluster(t *testing.T) *trust.Keys {
	t.Helper()
	keys, err := trust.Create(filepath.Join(t.TempDir(), trust.Folder), "a")
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// echo answers who asks, and how much was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s sent %d bytes: %v", door.CallerOf(r.Context()), len(body), err)
}

// open opens a node's door on TCP, behind which is echo.
func open(t *testing.T, keys *trust.Keys, log io.Writer) (address string) {
	t.Helper()
	d, address := openDoor(t, keys, log)
	d.Answer(http.HandlerFunc(echo), nil)
	return address
}

// openDoor opens one behind which is nothing yet.
func openDoor(t *testing.T, keys *trust.Keys, log io.Writer) (d *door.Door, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d, err = door.Open(door.Config{
		Keys: keys, Listener: listener, Address: listener.Addr().String(), Names: []string{"node-a"},
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, listener.Addr().String()
}

func requestOf(t *testing.T) *trust.Request {
	t.Helper()
	request, err := trust.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// user makes credentials of a user.
func user(t *testing.T, keys *trust.Keys, role access.Role, life time.Duration) *trust.Credentials {
	t.Helper()
	request, err := trust.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	key, err := trust.KeyOf(request.CSR)
	if err != nil {
		t.Fatal(err)
	}
	der, err := keys.SignUser("alice", role, key, life)
	if err != nil {
		t.Fatal(err)
	}
	made, err := request.Credentials(nil, der, keys.CA().Raw)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// ask sends a request with what there is to show, and returns the status and the answer, or why there is none.
func ask(t *testing.T, shows []trust.Shows, change func(*http.Request), address, body string) string {
	t.Helper()
	by := wire.Client(func() []trust.Shows { return shows })
	defer by.CloseIdleConnections()
	request, err := http.NewRequestWithContext(within(t), "POST", wire.URL(address)+"/echo", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(request)
	}
	answer, err := by.Do(request)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return fmt.Sprintf("%d %s", answer.StatusCode, text)
}

func TestWhoCallsIsKnown(t *testing.T) {
	a, other := cluster(t), cluster(t)
	address := open(t, a, io.Discard)
	instance, err := a.Instance("etl/web/server/2", "etl/web.server[2]#7", address)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Instance("etl/web/server/2", "etl/web.server[2]#7", address)
	if err != nil {
		t.Fatal(err)
	}
	b, err := a.Another(filepath.Join(t.TempDir(), trust.Folder), "b")
	if err != nil {
		t.Fatal(err)
	}
	fromB, err := b.Instance("etl/web/server/2", "etl/web.server[2]#7", address)
	if err != nil {
		t.Fatal(err)
	}
	shows := func(all ...*trust.Credentials) []trust.Shows { return trust.ShowsOf(all) }
	// mixed knows the cluster, and shows what another one signed.
	mixed := func(c *trust.Credentials) []trust.Shows {
		return []trust.Shows{{CA: a.CA(), Certificate: shows(c)[0].Certificate}}
	}
	cases := []struct {
		name  string
		shows []trust.Shows
		want  string
	}{
		{"nothing, and who answers is known", []trust.Shows{{CA: a.CA()}}, "200 a client without a certificate"},
		{"nothing", nil, "there are no credentials for it here: ask an admin"},
		{"credentials for another cluster only", shows(user(t, other, access.Admin, time.Hour)), "there are no credentials"},
		{"those for another cluster, to this one", mixed(user(t, other, access.Admin, time.Hour)),
			"200 a client without a certificate"},
		{"a user", shows(user(t, a, access.Operator, time.Hour)), "200 user alice (operator)"},
		{"a user of both", shows(user(t, other, access.Admin, time.Hour), user(t, a, access.Viewer, time.Hour)),
			"200 user alice (viewer)"},
		{"a user whose time is up", shows(user(t, a, access.Admin, -time.Second)), "expired at"},
		{"the node itself", a.Shows(), "200 node a"},
		{"another node", b.Shows(), "200 node b"},
		{"an instance here", shows(instance), "200 instance etl/web.server[2]#7"},
		{"an instance on another node", shows(fromB), "200 a client without a certificate"},
		{"an instance of another cluster", mixed(foreign), "200 a client without a certificate"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := ask(t, c.shows, nil, address, ""); !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestCertificatesAreVerified shows certificates whatever the server asks for.
func TestCertificatesAreVerified(t *testing.T) {
	a, other := cluster(t), cluster(t)
	address := open(t, a, io.Discard)
	for name, shown := range map[string]*trust.Credentials{
		"of another cluster": user(t, other, access.Admin, time.Hour), "expired": user(t, a, access.Admin, -time.Second),
	} {
		config := trust.ClientTLS(func() []trust.Shows { return []trust.Shows{{CA: a.CA()}} })
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return trust.ShowsOf([]*trust.Credentials{shown})[0].Certificate, nil
		}
		connection, err := tls.Dial("tcp", address, config)
		if err == nil {
			_, err = bufio.NewReader(connection).ReadByte() // the server judges after the client has shaken hands
			connection.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "remote error: tls") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	old := trust.ClientTLS(a.Shows)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if connection, err := tls.Dial("tcp", address, old); err == nil {
		connection.Close()
		t.Error("TLS 1.2 is spoken")
	}
	answer, err := http.Get("http://" + address + "/healthz")
	if err == nil && answer.StatusCode == http.StatusOK {
		t.Error("plain HTTP is answered")
	}
}

// TestBrowsers asks as a page in a browser could, from another origin, or under a name of its own that leads here.
func TestBrowsers(t *testing.T) {
	a := cluster(t)
	address := open(t, a, io.Discard)
	cases := []struct {
		name, header, value string
		status              string
	}{
		{"an IP address", "Host", address, "200"},
		{"the node's name", "Host", "Node-A:7460", "200"},
		{"localhost", "Host", "localhost", "200"},
		{"another name", "Host", "example.org", "403"},
		{"the same origin", "Origin", "https://" + address, "200"},
		{"another origin", "Origin", "https://example.org", "403"},
		{"another site", "Sec-Fetch-Site", "cross-site", "403"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := ask(t, a.Shows(), func(r *http.Request) {
				r.Header.Set(c.header, c.value)
				if c.header == "Host" {
					r.Host = c.value
				}
			}, address, "")
			if !strings.HasPrefix(got, c.status) {
				t.Errorf("got %s, want %s", got, c.status)
			}
		})
	}
}

func TestBodiesAreBounded(t *testing.T) {
	a := cluster(t)
	address := open(t, a, io.Discard)
	large := strings.Repeat("x", 5<<20)
	if got := ask(t, a.Shows(), nil, address, large); !strings.HasPrefix(got, "413 ") ||
		!strings.Contains(got, "a request must have at most") {
		t.Errorf("got %s", got)
	}
	if got := ask(t, a.Shows(), nil, address, large[:1<<20]); got != "200 node a sent 1048576 bytes: <nil>" {
		t.Errorf("got %s", got)
	}
	if got := ask(t, a.Shows(), func(r *http.Request) { r.ContentLength = -1 }, address, large); !strings.Contains(got,
		"request body too large") {
		t.Errorf("got %s", got)
	}
}

// tokenOf makes a token of a cluster for a node at an address.
func tokenOf(t *testing.T, keys *trust.Keys, address string, claims trust.Claims) *trust.Token {
	t.Helper()
	if claims.Expires.IsZero() {
		claims.Expires = time.Now().Add(time.Minute)
	}
	token, err := keys.NewToken([]string{address}, claims)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// join has a node admitted over a real connection.
func join(t *testing.T, token *trust.Token, node string) *trust.Keys {
	t.Helper()
	admission, err := client.Join(within(t), token, node, requestOf(t))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := trust.Store(filepath.Join(t.TempDir(), trust.Folder), admission)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestJoin(t *testing.T) {
	a := cluster(t)
	log := &strings.Builder{}
	address := open(t, a, log)
	token := tokenOf(t, a, address, trust.Claims{})
	b := join(t, token, "b")
	if b.Node() != "b" || b.Cluster() != a.Cluster() || b.IsKeeper() {
		t.Errorf("got node %s of %s, keeper %v", b.Node(), b.Cluster(), b.IsKeeper())
	}
	if c := join(t, tokenOf(t, a, address, trust.Claims{Keeper: true}), "c"); !c.IsKeeper() {
		t.Error("a keeper got no key")
	}
	expires := b.Expires()
	if err := client.Renew(within(t), b, []string{"127.0.0.1:1", address}); err != nil || b.Expires().Before(expires) {
		t.Errorf("renewal: got %v", err)
	}
	line, err := token.Line()
	if err != nil {
		t.Fatal(err)
	}
	if told := log.String(); strings.Contains(told, string(token.Secret)) || strings.Contains(told, line) ||
		!strings.Contains(told, "a node was admitted") {
		t.Errorf("got log %s", told)
	}
}

// newCluster is the peer of a cluster that knows nobody yet.
type newCluster struct{ door.Peer }

func (newCluster) HasRead() bool { return true }

func (newCluster) Registry() (*registry.Registry, bool) { return nil, true }

// unread is a peer that has not read the journal yet.
type unread struct{ door.Peer }

func (unread) HasRead() bool                        { return false }
func (unread) Registry() (*registry.Registry, bool) { return nil, false }

// TestNothingIsSignedBlindly asks while it is not known who was removed, and which tokens were used.
func TestNothingIsSignedBlindly(t *testing.T) {
	a := cluster(t)
	d, address := openDoor(t, a, io.Discard)
	alice := user(t, a, access.Admin, time.Hour)
	certificate, csr, err := alice.RenewalRequest()
	if err != nil {
		t.Fatal(err)
	}
	renewal, err := json.Marshal(door.RenewRequest{Certificate: certificate, CSR: csr})
	if err != nil {
		t.Fatal(err)
	}
	at := func(path string) func(*http.Request) { return func(r *http.Request) { r.URL.Path = path } }
	const want = "waits for the quorum of the journal"
	for what, answer := range map[string]func(){
		"nothing is behind it":              d.Rest,
		"its peer has not read the journal": func() { d.Answer(http.HandlerFunc(echo), unread{}) },
		"what is behind it knows nobody":    func() { d.AnswerMeanwhile(http.HandlerFunc(echo), nil) },
		"what is behind it knows others":    func() { d.AnswerMeanwhile(http.HandlerFunc(echo), &registry.Registry{}) },
	} {
		answer()
		refused := "the credentials of user alice do not count any more"
		if !strings.Contains(what, "others") {
			refused = want
		}
		if got := ask(t, trust.ShowsOf([]*trust.Credentials{alice}), nil, address, ""); !strings.Contains(got, refused) {
			t.Errorf("%s: a user is told %s", what, got)
		}
		if got := ask(t, []trust.Shows{{CA: a.CA()}}, at(door.PathRenew), address, string(renewal)); !strings.Contains(got,
			want) {
			t.Errorf("%s: a user's certificate is renewed: %s", what, got)
		}
		_, err := client.Join(within(t), tokenOf(t, a, address, trust.Claims{Keeper: true}), "d", requestOf(t))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: a machine joins: %v", what, err)
		}
		if got := ask(t, a.Shows(), nil, address, ""); strings.Contains(got, want) != (what == "nothing is behind it") {
			t.Errorf("%s: a node is told %s", what, got)
		}
	}
}

func TestNobodyIsGoneFromANewCluster(t *testing.T) {
	d := &door.Door{}
	d.Answer(nil, newCluster{})
	if gone := d.Gone(); len(gone) > 0 {
		t.Errorf("got %v, want none", gone)
	}
}

func TestJoinIsRefused(t *testing.T) {
	a, other := cluster(t), cluster(t)
	address := open(t, a, io.Discard)
	past := time.Now().Add(-time.Second)
	cases := map[string]*trust.Token{
		"the token expired at": tokenOf(t, a, address, trust.Claims{Expires: past}),
		"the authority of what answers is not the one in the line": tokenOf(t, other, address, trust.Claims{}),
		"the token is for node e":                                  tokenOf(t, a, address, trust.Claims{Node: "e"}),
	}
	for want, token := range cases {
		if _, err := client.Join(within(t), token, "d", requestOf(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestRotationsUnderLoad renews a node's certificate again and again while it is asked, over new connections each
// time.
func TestRotationsUnderLoad(t *testing.T) {
	const rotations = 200
	a := cluster(t)
	address := open(t, a, io.Discard)
	rotated := make(chan error, 1)
	go func() {
		for range rotations {
			if err := client.Renew(context.Background(), a, nil); err != nil {
				rotated <- err
				return
			}
		}
		rotated <- nil
	}()
	for asked := 0; ; asked++ {
		if got := ask(t, a.Shows(), nil, address, ""); !strings.HasPrefix(got, "200 node a") {
			t.Fatalf("request %d: got %s", asked, got)
		}
		select {
		case err := <-rotated:
			if err != nil || asked == 0 {
				t.Errorf("got %v after %d requests", err, asked)
			}
			return
		default:
		}
	}
}

// TestManInTheMiddle has somebody answer at the address of a token who has certificates of its own, and hears
// nothing.
func TestManInTheMiddle(t *testing.T) {
	a, mallory := cluster(t), cluster(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", mallory.ServerTLS())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	heard := make(chan int, 1)
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			heard <- 0
			return
		}
		defer connection.Close()
		text, _ := io.ReadAll(connection) // it ends when the joiner has seen who answers
		heard <- len(text)
	}()
	_, err = client.Join(within(t), tokenOf(t, a, listener.Addr().String(), trust.Claims{}), "b", requestOf(t))
	if err == nil || !strings.Contains(err.Error(), "somebody is in between") {
		t.Errorf("got %v", err)
	}
	if bytes := <-heard; bytes != 0 {
		t.Errorf("the joiner has told %d bytes", bytes)
	}
}

// TestStrangersKeepNobodyOut has somebody who shows nothing hold all connections that one address may.
func TestStrangersKeepNobodyOut(t *testing.T) {
	keys := cluster(t)
	address := open(t, keys, io.Discard)
	for range connlimit.Default().OfAddress + 100 {
		silent, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
	}
	got := ask(t, trust.ShowsOf([]*trust.Credentials{user(t, keys, access.Viewer, time.Hour)}), nil, address, "")
	if !strings.HasPrefix(got, "200 user alice (viewer) sent 0 bytes") {
		t.Errorf("got %s", got)
	}
	token, err := keys.NewToken([]string{address}, trust.Claims{Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Join(within(t), token, "b", requestOf(t)); err != nil {
		t.Errorf("join: %v", err)
	}
}
