package dns

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	miekg "github.com/miekg/dns"

	"starling/terms"
	"starling/terms/domain"
)

// catalog is a directory of what a test says: instances by job and task.
type catalog map[terms.JobName]map[terms.TaskName][]Instance

func (c catalog) Lookup(name domain.Name) (all []Instance, found bool) {
	if tasks, found := c[name.Job]; name.Task == "" {
		for _, task := range slices.Sorted(maps.Keys(tasks)) {
			all = append(all, tasks[task]...)
		}
		return all, found
	}
	all, found = c[name.Job][name.Task]
	if !name.One {
		return all, found
	}
	at := slices.IndexFunc(all, func(i Instance) bool { return i.Index == name.Index })
	if at < 0 {
		return nil, false
	}
	return all[at : at+1], true
}

func (c catalog) Holds(path string) bool {
	for job := range c {
		if string(job) == path || strings.HasPrefix(string(job), path+"/") || string(job.Pool()) == path {
			return true
		}
	}
	return false
}

// instances returns as many instances, each with an address and a port.
func instances(count int) (all []Instance) {
	for i := range count {
		all = append(all, Instance{
			Index: uint32(i), Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, byte(i / 256), byte(i)})},
			Ports: []Port{{Name: "http", Number: uint16(31000 + i)}},
		})
	}
	return all
}

func example() catalog {
	three := instances(3)
	three[1].Addresses = []netip.Addr{netip.MustParseAddr("2001:db8::1")}
	three[2].Addresses, three[2].Ports = nil, nil // waits for a node
	return catalog{
		"ml/train":    {"worker": three},
		"a/b/wide":    {"worker": instances(200)},
		"a/b/widest":  {"worker": instances(3000)},
		"train":       {"worker": instances(1)},
		"pair":        {"left": instances(2), "right": instances(3)}, // two share a machine with two others
		"default/sub": {},
	}
}

// start serves until the test ends, and returns the address.
func start(t *testing.T, zone domain.Zone, directory Directory) string {
	t.Helper()
	server, err := NewServer(zone, directory)
	if err != nil {
		t.Fatal(err)
	}
	packets, streams, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, packets, streams) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v, want nil", err)
		}
	})
	return streams.Addr().String()
}

// resolver returns the resolver of the standard library, which asks the server alone.
func resolver(address string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
}

func TestResolver(t *testing.T) {
	r := resolver(start(t, domain.DefaultZone, example()))
	cases := []struct{ name, want string }{
		{"0.worker.train.ml.starling.", "10.0.0.0"},
		{"0.Worker.TRAIN.ml.Starling.", "10.0.0.0"},
		{"1.worker.train.ml.starling.", "2001:db8::1"},
		{"worker.train.ml.starling.", "10.0.0.0 2001:db8::1"},
		{"0.worker.train.starling.", "10.0.0.0"},
		{"pair.starling.", "10.0.0.0 10.0.0.1 10.0.0.2"},
		{"train.ml.starling.", "10.0.0.0 2001:db8::1"},
		{"worker.train.default.starling.", "10.0.0.0"},
		{"7.worker.wide.b.a.starling.", "10.0.0.7"},
		{"2.worker.train.ml.starling.", "none"}, // no address yet
		{"3.worker.train.ml.starling.", "none"},
	}
	for _, c := range cases {
		got, err := r.LookupHost(t.Context(), c.name)
		slices.Sort(got)
		if text := strings.Join(got, " "); text != c.want && (c.want != "none" || !notFound(err)) {
			t.Errorf("%s has the addresses %q (%v), want %q", c.name, text, err, c.want)
		}
	}
	// More than fits into a datagram: the resolver asks again by TCP.
	if got, err := r.LookupHost(t.Context(), "worker.wide.b.a.starling."); len(got) != 200 {
		t.Errorf("worker.wide.b.a has %d addresses (%v), want 200", len(got), err)
	}
	if got, err := r.LookupHost(t.Context(), "worker.widest.b.a.starling."); len(got) != addressesMax {
		t.Errorf("worker.widest.b.a is answered with %d addresses (%v), want %d of 3000", len(got), err, addressesMax)
	}
	if _, got, err := r.LookupSRV(t.Context(), "http", "tcp", "worker.wide.b.a.starling."); len(got) != servicesMax {
		t.Errorf("http of worker.wide.b.a is offered by %d (%v), want %d of 200", len(got), err, servicesMax)
	}
	_, got, err := r.LookupSRV(t.Context(), "http", "tcp", "1.worker.train.ml.starling.")
	if len(got) != 1 || got[0].Target != "1.worker.train.ml.starling." || got[0].Port != 31001 {
		t.Errorf("http of worker 1 is %v (%v), want port 31001 of 1.worker.train.ml.starling", got, err)
	}
}

func notFound(err error) bool {
	var failure *net.DNSError
	return errors.As(err, &failure) && failure.IsNotFound
}

func TestCodes(t *testing.T) {
	address := start(t, "sky.example.org", example())
	cases := []struct {
		name       string
		kind       uint16
		code       int
		answers    int
		authorizes bool
	}{
		{"sky.example.org.", miekg.TypeSOA, miekg.RcodeSuccess, 1, true},
		{"sky.example.org.", miekg.TypeA, miekg.RcodeSuccess, 0, true},
		{"0.worker.train.ml.sky.example.org.", miekg.TypeA, miekg.RcodeSuccess, 1, true},
		{"0.worker.train.ml.sky.example.org.", miekg.TypeAAAA, miekg.RcodeSuccess, 0, true},
		{"0.worker.train.ml.sky.example.org.", miekg.TypeTXT, miekg.RcodeSuccess, 0, true},
		{"worker.train.ml.sky.example.org.", miekg.TypeANY, miekg.RcodeSuccess, 2, true},
		{"2.worker.train.ml.sky.example.org.", miekg.TypeA, miekg.RcodeSuccess, 0, true},
		{"3.worker.train.ml.sky.example.org.", miekg.TypeA, miekg.RcodeNameError, 0, true},
		{"ps.train.ml.sky.example.org.", miekg.TypeA, miekg.RcodeNameError, 0, true},
		{"train.ml.sky.example.org.", miekg.TypeA, miekg.RcodeSuccess, 1, true}, // all instances of the job
		{"ml.sky.example.org.", miekg.TypeA, miekg.RcodeSuccess, 0, true},
		{"b.a.sky.example.org.", miekg.TypeA, miekg.RcodeSuccess, 0, true},
		{"nobody.sky.example.org.", miekg.TypeA, miekg.RcodeNameError, 0, true},
		{"_http._tcp.worker.train.ml.sky.example.org.", miekg.TypeSRV, miekg.RcodeSuccess, 2, true},
		{"_HTTP._tcp.worker.train.ml.sky.example.org.", miekg.TypeA, miekg.RcodeSuccess, 0, true},
		{"_tcp.worker.train.ml.sky.example.org.", miekg.TypeSRV, miekg.RcodeSuccess, 0, true},
		{"_ftp._tcp.worker.train.ml.sky.example.org.", miekg.TypeSRV, miekg.RcodeNameError, 0, true},
		{"_http._udp.worker.train.ml.sky.example.org.", miekg.TypeSRV, miekg.RcodeNameError, 0, true},
		{"_http._tcp.2.worker.train.ml.sky.example.org.", miekg.TypeSRV, miekg.RcodeNameError, 0, true},
		{"_tcp.sky.example.org.", miekg.TypeSRV, miekg.RcodeNameError, 0, true},
		{"worker.train.ml.starling.", miekg.TypeA, miekg.RcodeRefused, 0, false},
		{"example.org.", miekg.TypeA, miekg.RcodeRefused, 0, false},
		{".", miekg.TypeNS, miekg.RcodeRefused, 0, false},
		{"sky.example.org.", miekg.TypeAXFR, miekg.RcodeRefused, 0, false},
	}
	for _, c := range cases {
		got := ask(t, "udp", address, new(miekg.Msg).SetQuestion(c.name, c.kind))
		if got.Rcode != c.code || len(got.Answer) != c.answers || got.Authoritative != c.authorizes {
			t.Errorf("%s %s: %s with %d answers, authoritative %v, want %s with %d, %v", c.name, miekg.TypeToString[c.kind],
				miekg.RcodeToString[got.Rcode], len(got.Answer), got.Authoritative, miekg.RcodeToString[c.code], c.answers,
				c.authorizes)
		}
		soa := len(got.Ns) == 1 && got.Ns[0].Header().Rrtype == miekg.TypeSOA
		if want := c.authorizes && c.answers == 0; soa != want {
			t.Errorf("%s %s: says how long that holds: %v, want %v", c.name, miekg.TypeToString[c.kind], soa, want)
		}
		for _, record := range slices.Concat(got.Answer, got.Ns) {
			if record.Header().Ttl != ttlSeconds {
				t.Errorf("%s may be kept for %d s, want %d", record, record.Header().Ttl, ttlSeconds)
			}
		}
	}
}

func ask(t *testing.T, network, address string, question *miekg.Msg) *miekg.Msg {
	t.Helper()
	reply, _, err := (&miekg.Client{Net: network}).ExchangeContext(t.Context(), question, address)
	if err != nil {
		t.Fatalf("%v: %v", question.Question, err)
	}
	return reply
}

func TestForms(t *testing.T) {
	address := start(t, domain.DefaultZone, example())
	status := new(miekg.Msg).SetQuestion("starling.", miekg.TypeSOA)
	status.Opcode = miekg.OpcodeNotify
	chaos := new(miekg.Msg).SetQuestion("starling.", miekg.TypeSOA)
	chaos.Question[0].Qclass = miekg.ClassCHAOS
	none := &miekg.Msg{MsgHdr: miekg.MsgHdr{Id: 7}}
	newer := new(miekg.Msg).SetQuestion("starling.", miekg.TypeSOA)
	newer.SetEdns0(4096, false)
	newer.IsEdns0().SetVersion(1)
	for _, c := range []struct {
		name     string
		question *miekg.Msg
		want     int
	}{
		{"notification", status, miekg.RcodeNotImplemented},
		{"another class", chaos, miekg.RcodeRefused},
		{"no question", none, miekg.RcodeFormatError},
		{"a newer version of EDNS", newer, miekg.RcodeBadVers},
	} {
		if got := ask(t, "udp", address, c.question); got.Rcode != c.want {
			t.Errorf("%s: %s, want %s", c.name, miekg.RcodeToString[got.Rcode], miekg.RcodeToString[c.want])
		}
	}
}

func TestTruncation(t *testing.T) {
	address := start(t, domain.DefaultZone, example())
	for _, c := range []struct {
		network string
		size    uint16 // 0 asks without EDNS
		most    int
		cut     bool
	}{
		{"udp", 0, 512, true},
		{"udp", 100, 512, true},
		{"udp", 1232, 1232, true},
		{"udp", 65535, 1232, true},
		{"tcp", 0, 65535, false},
	} {
		question := new(miekg.Msg).SetQuestion("worker.wide.b.a.starling.", miekg.TypeA)
		if c.size > 0 {
			question.SetEdns0(c.size, false)
		}
		got, _, err := (&miekg.Client{Net: c.network, UDPSize: 65535}).ExchangeContext(t.Context(), question, address)
		if err != nil {
			t.Fatal(err)
		}
		got.Compress = true
		if got.Truncated != c.cut || got.Len() > c.most || c.cut == (len(got.Answer) == 200) {
			t.Errorf("%s with room for %d: cut off %v, %d bytes, %d answers; want %v, at most %d bytes", c.network, c.size,
				got.Truncated, got.Len(), len(got.Answer), c.cut, c.most)
		}
	}
}

// TestTurns asks again and again: every instance is the first of some answer.
func TestTurns(t *testing.T) {
	server := &Server{zone: domain.DefaultZone, directory: example()}
	first := map[string]bool{}
	for number := range uint16(200) {
		question := new(miekg.Msg).SetQuestion("worker.wide.b.a.starling.", miekg.TypeA)
		question.Id = number
		first[server.answer(question).Answer[0].(*miekg.A).A.String()] = true
	}
	if len(first) != 200 {
		t.Errorf("%d instances came first in an answer, want all 200", len(first))
	}
}

// TestLongestAnswer has names as long as they can be: what an answer holds at most fits into a message.
func TestLongestAnswer(t *testing.T) {
	long := strings.Repeat("n", terms.NameBytesMax)
	job := terms.NewJobName(terms.PoolPath(long), long[:terms.JobNameBytesMax-len(long)-1])
	many := instances(2 * addressesMax)
	for i := range many {
		many[i].Index += 4_000_000_000
	}
	zone := domain.Zone(strings.Repeat("z", domain.ZoneBytesMax))
	server := &Server{zone: zone, directory: catalog{job: {terms.TaskName(long[:50]): many}}}
	name := zone.Name(domain.Name{Job: job, Task: terms.TaskName(long[:50])}) + "."
	for question, kind := range map[string]uint16{name: miekg.TypeA, "_http._tcp." + name: miekg.TypeSRV} {
		reply := server.answer(new(miekg.Msg).SetQuestion(question, kind))
		count := len(reply.Answer)
		reply.Truncate(miekg.MaxMsgSize)
		packed, err := reply.Pack()
		if err != nil || reply.Truncated || count < servicesMax || len(packed) > miekg.MaxMsgSize {
			t.Errorf("%s: %d records in %d bytes, cut off %v, %v", miekg.TypeToString[kind], count, len(packed),
				reply.Truncated, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	server := &Server{zone: domain.DefaultZone, directory: example()}
	for _, name := range []string{"worker.wide.b.a.starling.", "_http._tcp.worker.train.ml.starling.", "_.starling.", ".",
		`a\.b.starling.`} {
		packed, err := new(miekg.Msg).SetQuestion(name, miekg.TypeANY).Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed)
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		question := new(miekg.Msg)
		if question.Unpack(packed) != nil || len(question.Question) != 1 {
			return // the library answers
		}
		reply := server.answer(question)
		reply.Truncate(miekg.MinMsgSize)
		if text, err := reply.Pack(); err != nil || len(text) > miekg.MinMsgSize {
			t.Fatalf("%v is answered with %d bytes: %v", question, len(text), err)
		}
	})
}

func TestServeEnds(t *testing.T) {
	server, err := NewServer(domain.DefaultZone, catalog{})
	if err != nil {
		t.Fatal(err)
	}
	packets, streams, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Serve(ctx, packets, streams); err != nil {
		t.Errorf("a context that has ended: %v, want nil", err)
	}
	if _, err := streams.Accept(); err == nil {
		t.Error("the socket for TCP is still open")
	}
	if _, err := packets.WriteTo([]byte{0}, packets.LocalAddr()); err == nil {
		t.Error("the socket for UDP is still open")
	}
	// A socket that fails ends both.
	packets, streams, err = Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	packets.Close()
	if err := server.Serve(t.Context(), packets, streams); err == nil {
		t.Error("a closed socket: got nil, want an error")
	}
	if _, err := streams.Accept(); err == nil {
		t.Error("the other socket is still open")
	}
	if _, err := NewServer("A..b", catalog{}); err == nil || !strings.Contains(err.Error(), "label") {
		t.Errorf("zone A..b: %v, want a label at fault", err)
	}
	if _, _, err := Listen(t.Context(), "nowhere"); err == nil {
		t.Error("an address without a port: got nil, want an error")
	}
}

// TestWhatStopsServesWhoKeptItsAddress: an instance that left this package's answers goes on for as long as they may be
// kept, and for a second in which the peer that answers folds the entry that says so.
func TestWhatStopsServesWhoKeptItsAddress(t *testing.T) {
	task := terms.Task{Ports: []terms.PortRequest{{Name: "http"}}}
	for _, kind := range []terms.JobType{terms.Stateless, terms.Stateful} {
		if got, want := task.StopDelay(kind), terms.Time(1000*(ttlSeconds+1)); got < want {
			t.Errorf("%s instances go on for %d ms, want at least %d", kind, got, want)
		}
	}
}
