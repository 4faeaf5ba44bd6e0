package api

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"starling/api/blobs"
	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/command"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
	"starling/trust"
)

// gate is a peer behind a door with TLS, and credentials of all kinds for it.
type gate struct {
	peer    *peer
	address string
	keys    *trust.Keys
	names   []string
	clients map[string]*http.Client
	door    *door.Door
}

func newGate(t *testing.T, changes ...func(*door.Config)) *gate {
	t.Helper()
	keys, other := newKeys(t), newKeys(t)
	a, _ := pair()
	a.state.Rules = rules.Registry
	team := terms.NewPool("team")
	team.Submitters = []string{"member"}
	a.add("a~1", &command.ChangePools{Pools: []terms.Pool{team}})
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("team/own", 1, "a")})
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("own", 1, "a")})
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("other", 1, "a")})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	config := door.Config{Keys: keys, Listener: listener, Address: listener.Addr().String(), Log: log}
	for _, change := range changes {
		change(&config)
	}
	opened, err := door.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	opened.Answer(NewServer(a, Options{Log: log, Shows: keys.Shows,
		Blobs: blobs.NewHandler(blobs.Config{State: a.State})}), a)
	t.Cleanup(func() { opened.Close() })
	g := &gate{peer: a, address: listener.Addr().String(), keys: keys, clients: map[string]*http.Client{}, door: opened}
	g.add(t, "none", trust.Shows{CA: keys.CA()})
	add := func(name string, role access.Role) trust.Shows {
		one := shownBy(userOf(t, keys, trust.Identity{Name: name, Role: role}, time.Hour))
		key, err := trust.KeyOfPublic(one.Certificate.Leaf.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		a.add("a~1", &command.AddUser{Credential: access.Credential{Key: key, Kind: access.OfUser, Name: name, Role: role}})
		g.add(t, name, one)
		return one
	}
	foreign := shownBy(userOf(t, other, trust.Identity{Name: "foreigner", Role: access.Admin}, time.Hour))
	g.add(t, "other-cluster", trust.Shows{CA: keys.CA(), Certificate: foreign.Certificate})
	for _, name := range access.RoleNames() {
		role, err := access.ParseRole(name)
		if err != nil {
			t.Fatal(err)
		}
		add(name, role)
	}
	add("member", access.NoRole)
	ended := trust.Identity{Name: "ended", Role: access.Admin}
	g.add(t, "removed", shownBy(userOf(t, keys, ended, time.Hour)))
	g.add(t, "expired", shownBy(userOf(t, keys, ended, -time.Second)))
	g.add(t, "node", keys.Shows()[0])
	r, _ := a.state.RefOf(terms.SlotName{Job: "own", Task: "main"})
	slot, _ := a.state.SlotAt(r)
	id := terms.AllocationID{Slot: terms.SlotName{Job: "own", Task: "main"}, Order: slot.Order}
	for name, order := range map[string]terms.Index{"instance": slot.Order, "ended-instance": slot.Order + 1} {
		id.Order = order
		instance, err := keys.Instance("own/main/0", id.String(), g.address)
		if err != nil {
			t.Fatal(err)
		}
		g.add(t, name, shownBy(instance))
	}
	g.names = slices.DeleteFunc(g.names, func(name string) bool { return strings.HasSuffix(name, "instance") })
	g.names = append(g.names, "instance", "ended-instance")
	return g
}

func (g *gate) add(t *testing.T, name string, shows trust.Shows) {
	g.clients[name] = wire.Client(func() []trust.Shows { return []trust.Shows{shows} })
	t.Cleanup(g.clients[name].CloseIdleConnections)
	g.names = append(g.names, name)
}

func newKeys(t testing.TB) *trust.Keys {
	t.Helper()
	keys, err := trust.Create(filepath.Join(t.TempDir(), trust.Folder), "a")
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func shownBy(c *trust.Credentials) trust.Shows { return trust.ShowsOf([]*trust.Credentials{c})[0] }

func userOf(t testing.TB, keys *trust.Keys, identity trust.Identity, life time.Duration) *trust.Credentials {
	t.Helper()
	request, err := trust.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	key, err := trust.KeyOf(request.CSR)
	if err != nil {
		t.Fatal(err)
	}
	der, err := keys.SignUser(identity.Name, identity.Role, key, life)
	if err != nil {
		t.Fatal(err)
	}
	made, err := request.Credentials(nil, der, keys.CA().Raw)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// streaming are the procedures that answer more than once.
func streaming() map[string]bool {
	all := map[string]bool{}
	methods := starlingv1.File_v1_starling_proto.Services().ByName("Starling").Methods()
	for i := range methods.Len() {
		method := methods.Get(i)
		all[fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())] = method.IsStreamingServer()
	}
	return all
}

// text returns the answer alone.
func (g *gate) text(t *testing.T, who, method, body string) string {
	t.Helper()
	answer, err := g.send(within(t), who, method, body)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// send asks for a method with a body.
func (g *gate) send(ctx context.Context, who, method, body string) (*http.Response, error) {
	verb, kind := http.MethodPost, "application/json"
	if streaming()[method] {
		head := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body)))
		body, kind = string(head)+body, "application/connect+json"
	}
	gets := []string{door.PathBlob, door.PathEvents, door.PathEndpoints, door.PathJournal, door.PathLogs, door.PathHealth,
		door.PathReady, door.PathMetrics, door.PathOpenAPI, door.PathDiscovery, door.PathJWKS}
	if slices.Contains(gets, method) {
		verb, body = http.MethodGet, ""
	}
	request, err := http.NewRequestWithContext(ctx, verb, wire.URL(g.address)+method, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	return g.clients[who].Do(request)
}

// call asks for a method with a body and returns what came back.
func (g *gate) call(t *testing.T, who, method, body string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(within(t), 10*time.Second)
	defer cancel()
	answer, err := g.send(ctx, who, method, body)
	if err != nil {
		return "no answer: " + err.Error()
	}
	defer answer.Body.Close()
	_, isProcedure := streaming()[method]
	if !isProcedure && answer.StatusCode == http.StatusOK {
		return "200" // it may be a stream that has no end
	}
	text, _ := io.ReadAll(answer.Body)
	return fmt.Sprintf("%d %s", answer.StatusCode, bytes.ReplaceAll(text, []byte("\u00a0"), []byte(" ")))
}

// may says in one word what an answer means for who asked.
func may(answer string) string {
	if strings.Contains(answer, "may ask only for what belongs to its own job") {
		return "own"
	}
	for _, refusal := range []string{"no answer", "may not call", "answers only users and nodes", "has ended",
		"permission_denied", "do not count any more"} {
		if strings.Contains(answer, refusal) {
			return "-"
		}
	}
	return "yes"
}

// bodyOf is a request about a job in a pool, which lacks something else.
func bodyOf(method string) string {
	switch _, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/"); name {
	case "KillJob", "SteerUpdate", "RevertJob", "RestartJob", "SuspendJob", "JobStatus", "JobHistory", "JobDiff", "Why",
		"Logs", "Output", "Blame", "Exec", "Files", "InstanceStats":
		return `{"job":"team/none"}`
	case "SubmitJob", "PlanJob":
		return `{"spec":{"name":"team/none"}}`
	case "SealTask", "EndAllocation":
		return `{"allocation":"team/none.main[0]#7"}`
	case "PutSecret":
		return `{"pool":"team","name":"db","value":"eA=="}`
	case "RemoveSecret":
		return `{"pool":"team","name":"none"}`
	case "RemoveVolumes":
		return `{"volumes":"team/none.main[0]@7"}`
	case "Watch":
		return `{"once":true}`
	case "PoolStatus":
		return `{"path":"team"}`
	case "ChangePools", "PlanPools":
		return `{"pools":[{"path":"other"}]}`
	}
	return "{}"
}

// TestRights asks for every method with every kind of credential. A method that nobody has given a right fails it.
func TestRights(t *testing.T) {
	g := newGate(t)
	methods := door.Methods()
	for procedure := range streaming() {
		if !slices.Contains(methods, procedure) {
			t.Errorf("%s has no row in the table of rights of package door", procedure)
		}
	}
	datadriven.RunTest(t, "testdata/rights.txt", func(t *testing.T, _ *datadriven.TestData) string {
		text := &strings.Builder{}
		for _, method := range methods {
			fmt.Fprintf(text, "%s:", method)
			for _, name := range g.names {
				before := g.peer.Status().Index
				word := may(g.call(t, name, method, bodyOf(method)))
				if after := g.peer.Status().Index; word == "-" && after != before {
					t.Errorf("%s of %s is refused by an entry of the journal", method, name)
				}
				fmt.Fprintf(text, " %s=%s", name, word)
			}
			text.WriteString("\n")
		}
		return text.String()
	})
}

// TestInstancesHaveTheirOwn asks as an instance for what is its own, and for what is not.
func TestInstancesHaveTheirOwn(t *testing.T) {
	g := newGate(t)
	service := "/starling.v1.Starling/"
	cases := []struct{ method, body, want string }{
		{"JobStatus", `{"job":"own"}`, `"name":"own"`},
		{"JobStatus", `{"job":"other"}`, "may ask only for what belongs to its own job own"},
		{"Output", `{"job":"own","task":"main"}`, "not_found"},
		{"Output", `{"job":"other","task":"main"}`, "may ask only for"},
		{"Output", `{"output":"own.main[0]#7@1"}`, "may ask only for"},
		{"SealTask", `{"allocation":"other.main[0]#8"}`, "may ask only for"},
		{"SubmitJob", `{"spec":{"name":"own"}}`, "may not call"},
		{"Logs", `{"job":"own"}`, "may not call"},
		{"RemoveVolumes", `{"volumes":"own.main[0]@7"}`, "may not call"},
		{"EndAllocation", `{"allocation":"own.main[0]#7"}`, "may not call"},
	}
	for _, c := range cases {
		t.Run(c.method+c.body, func(t *testing.T) {
			if got := g.call(t, "instance", service+c.method, c.body); !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestWhoAmI asks users about themselves: what they are told is what a peer then refuses.
func TestWhoAmI(t *testing.T) {
	g := newGate(t)
	acts := `{"acts":[{"verb":"see-cluster"},{"verb":"stop","object":"team/own"},{"verb":"stop","object":"own"},` +
		`{"verb":"drain","object":"a"},{"verb":"change-pool","object":"team"}]}`
	for who, want := range map[string]string{
		"viewer":    "viewer viewer [] yes no no no no",
		"submitter": "submitter submitter [] yes yes yes no no",
		"operator":  "operator operator [] yes yes yes yes no",
		"admin":     "admin admin [] yes yes yes yes yes",
		"member":    "member  [{team submitter}] no yes no no no",
	} {
		var me door.WhoAmI
		if err := json.Unmarshal([]byte(g.text(t, who, door.PathWhoAmI, acts)), &me); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s %s %v", me.Name, me.Role, me.Pools)
		for _, answer := range me.Answers {
			if answer.May {
				got += " yes"
			} else {
				got += " no"
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", who, got, want)
		}
	}
	many := strings.Repeat(`{"verb":"see-cluster"},`, door.ActsMax) + `{"verb":"see-cluster"}`
	for body, want := range map[string]string{
		`{"acts":[{"verb":"fly"}]}`: "nothing is known of",
		`{"acts":[` + many + `]}`:   "at most 1000 acts",
	} {
		if got := g.text(t, "admin", door.PathWhoAmI, body); !strings.Contains(got, want) {
			t.Errorf("got %s, want %q", got, want)
		}
	}
}
