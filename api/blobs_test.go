package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"starling/api/blobs"
	"starling/api/door"
	"starling/api/wire"
	"starling/cluster/facts"
	"starling/command"
	"starling/driver/image"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
	"starling/trust"
)

// inMemory is a part of an image, of which so many bytes cannot be read.
type inMemory struct {
	*strings.Reader
	lost int64
}

// Size is that of the whole part.
func (i inMemory) Size() int64 { return i.Reader.Size() + i.lost }

// Close implements io.Closer.
func (inMemory) Close() error { return nil }

// kitchen is a node a that has an image, and a node b.
type kitchen struct {
	a, b    *peer
	address string
	server  *httptest.Server
	// who asks.
	who trust.Identity
	// opened are the images whose parts were asked for.
	opened []string
}

const (
	manifestText = "the manifest"
	appImage     = "registry.example/app:1@sha256:"
	brokenPart   = digest.Digest("sha256:1111111111111111111111111111111111111111111111111111111111111111")
)

func newKitchen(t *testing.T) *kitchen {
	t.Helper()
	a, b := pair()
	k := &kitchen{a: a, b: b, who: trust.Identity{Kind: access.OfNode, Name: "b"}}
	part := digest.FromString(manifestText)
	handler := NewServer(a, Options{Blobs: blobs.NewHandler(blobs.Config{Node: "a", State: a.State,
		Blob: func(_ context.Context, name string, asked digest.Digest) (*image.Blob, error) {
			k.opened = append(k.opened, name)
			if !strings.Contains(name, part.String()) || asked != part && asked != brokenPart {
				return nil, fmt.Errorf("no part %s: %w", asked, os.ErrNotExist)
			}
			read := inMemory{Reader: strings.NewReader(manifestText)}
			if asked == brokenPart {
				read.lost = 1
			}
			return &image.Blob{ReaderAt: read,
				MediaType: ocispec.MediaTypeImageManifest}, nil
		}})})
	k.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(door.WithCaller(r.Context(), k.who)))
	}))
	k.server.EnableHTTP2 = true
	k.server.StartTLS()
	t.Cleanup(k.server.Close)
	k.address = k.server.Listener.Addr().String()
	a.state.Rules = rules.Released
	k.offers(a, k.address)
	k.offers(b, "node:1")
	return k
}

// offers has a node run containers.
func (k *kitchen) offers(p *peer, address string) {
	p.add(p.self, &command.Volunteer{Peer: p.self, Offer: terms.Offer{
		Capacity: terms.Resources{20000, 8 << 30, 100 << 30}, Address: address, PortFirst: 20000, PortLast: 20100,
		Attributes: []terms.EnvVar{{Name: terms.ContainersAttribute, Value: terms.ContainersYes},
			{Name: "node", Value: string(p.self.Node())}}}})
}

// joins has another node be a member, which runs containers.
func (k *kitchen) joins(t *testing.T, p *peer) {
	t.Helper()
	k.a.add(p.self, &command.PrepareJoin{Joiner: p.self, Attempt: 1})
	attempt, ok := k.a.state.Attempt(p.self)
	if !ok {
		t.Fatalf("%s does not join", p.self)
	}
	k.a.add(attempt.Observer, &command.NotifyJoin{Joiner: p.self, Attempt: 1})
	k.a.add(p.self, &command.AcceptJoin{Joiner: p.self, Observer: attempt.Observer, Attempt: 1})
	k.offers(p, "node:1")
}

// place has an instance of an image on a node.
func (k *kitchen) place(t *testing.T, job terms.JobName, node, named, secret string) terms.AllocationID {
	t.Helper()
	spec := jobOn(job, 1, node)
	task := &spec.Tasks[0]
	task.Container = terms.Container{Image: named, PullSecret: secret}
	task.AskForNodes()
	if result := k.a.add("a~1", &command.SubmitJob{Spec: *spec}).Outcome.Results[0]; result.Refused() {
		t.Fatal(result.Refusal)
	}
	name := terms.SlotName{Job: job, Task: "main"}
	r, _ := k.a.state.RefOf(name)
	slot, _ := k.a.state.SlotAt(r)
	if slot.Phase != facts.Assigned {
		t.Fatalf("%s is %s", job, slot.Phase)
	}
	return terms.AllocationID{Slot: name, Order: slot.Order}
}

// runs reports that an instance runs.
func (k *kitchen) runs(on *peer, id terms.AllocationID) {
	r, _ := k.a.state.RefOf(id.Slot)
	on.ready(r)
}

// sources are the machines that an instance on node b is told to ask.
func (k *kitchen) sources(t *testing.T, id terms.AllocationID) []image.Source {
	t.Helper()
	state, err := k.b.State(within(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	return blobs.Sources(state, "b", id, k.server.Client())
}

// asks asks node a for a part, and returns the status and what was said.
func (k *kitchen) asks(t *testing.T, id string, part digest.Digest) (status int, text string) {
	t.Helper()
	query := url.Values{"allocation": {id}, "digest": {part.String()},
		"index": {strconv.FormatUint(uint64(k.a.state.Index), 10)}}
	answer, err := k.server.Client().Get(wire.URL(k.address) + door.PathBlob + "?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(all)
}

// TestImageOfAnotherNode takes the part of an image from the node where that runs.
func TestImageOfAnotherNode(t *testing.T) {
	k := newKitchen(t)
	root := digest.FromString(manifestText)
	named := appImage + root.Encoded()
	has := k.place(t, "has", "a", named, "")
	wants := k.place(t, "wants", "b", strings.Replace(named, ":1@", "@", 1), "")
	k.runs(k.a, has)
	got := k.sources(t, wants)
	if len(got) != 1 || got[0].Name != "node a" {
		t.Fatalf("got %v", got)
	}
	name := "registry.example/app@" + root.String()
	_, found, err := got[0].Resolve(within(t), name)
	want := fmt.Sprint(ocispec.Descriptor{Digest: root, Size: int64(len(manifestText)),
		MediaType: ocispec.MediaTypeImageManifest})
	if err != nil || fmt.Sprint(found) != want {
		t.Fatalf("got %v, %v, want %s", found, err, want)
	}
	fetcher, err := got[0].Fetcher(within(t), name)
	if err != nil {
		t.Fatal(err)
	}
	body, err := fetcher.Fetch(within(t), found)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(body); err != nil || string(text) != manifestText {
		t.Errorf("got %q, %v", text, err)
	}
	body.Close()
	if k.opened[0] != name {
		t.Errorf("parts of %q were asked for", k.opened)
	}
	if _, err := fetcher.Fetch(within(t), ocispec.Descriptor{Digest: digest.FromString("other"), Size: 1}); err == nil ||
		!strings.Contains(err.Error(), "it refuses: it does not have this part of image "+name) {
		t.Errorf("a part that is not there: got %v", err)
	}
}

// TestPartThatBreaksOff has a part that cannot be read to its end: its receiver is not told that it is whole.
func TestPartThatBreaksOff(t *testing.T) {
	k := newKitchen(t)
	named := appImage + digest.FromString(manifestText).Encoded()
	k.runs(k.a, k.place(t, "has", "a", named, ""))
	fetcher, err := k.sources(t, k.place(t, "wants", "b", named, ""))[0].Fetcher(within(t), "")
	if err != nil {
		t.Fatal(err)
	}
	body, err := fetcher.Fetch(within(t), ocispec.Descriptor{Digest: brokenPart, Size: int64(len(manifestText)) + 1})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if text, err := io.ReadAll(body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v", text, err)
	}
}

// TestImageOfTwoTasks takes an image from a node that has it for the first of a job's tasks.
func TestImageOfTwoTasks(t *testing.T) {
	k := newKitchen(t)
	named := appImage + digest.FromString(manifestText).Encoded()
	spec := jobOn("has", 1, "a")
	spec.Tasks[0].Container = terms.Container{Image: named}
	spec.Tasks[0].AskForNodes()
	beside := spec.Tasks[0]
	beside.Name, beside.Constraints = "beside", jobOn("", 1, "b").Tasks[0].Constraints
	beside.AskForNodes()
	spec.Tasks = append(spec.Tasks, beside)
	if result := k.a.add("a~1", &command.SubmitJob{Spec: *spec}).Outcome.Results[0]; result.Refused() {
		t.Fatal(result.Refusal)
	}
	wants := k.place(t, "wants", "b", named, "")
	if status, text := k.asks(t, wants.String(), digest.FromString(manifestText)); status != 200 {
		t.Errorf("got %d %s", status, text)
	}
}

// TestImagesAreGivenToTheirNodes refuses who has nothing of the image, or has it with other credentials.
func TestImagesAreGivenToTheirNodes(t *testing.T) {
	k := newKitchen(t)
	root := digest.FromString(manifestText)
	private := appImage + root.Encoded()
	k.a.add("a~1", &command.ChangePools{Pools: []terms.Pool{terms.NewPool("team")}})
	k.runs(k.a, k.place(t, "has", "a", private, "key"))
	k.runs(k.a, k.place(t, "tagged", "a", "registry.example/app:1", ""))
	other := appImage + digest.FromString("other image").Encoded()
	for _, c := range []struct {
		name   string
		id     terms.AllocationID
		who    trust.Identity
		status int
		want   string
	}{
		{"same secret", k.place(t, "same", "b", private, "key"), k.who, 200, manifestText},
		{"same secret of another pool", k.place(t, "team/same", "b", private, "key"), k.who, 404,
			"no instance with the same is or was on node a"},
		{"no secret", k.place(t, "none", "b", private, ""), k.who, 404, "another pull_secret, and no instance"},
		{"another image", k.place(t, "other", "b", other, ""), k.who, 404, "does not have this part"},
		{"a tag", k.place(t, "tag", "b", "registry.example/app:1", ""), k.who, 403, "names no image with a digest"},
		{"that of another node", k.place(t, "elsewhere", "a", private, "key"), k.who, 403, "node b does not have elsewhere"},
		{"an order that has ended", terms.AllocationID{Slot: terms.SlotName{Job: "same", Task: "main"}, Order: 1}, k.who, 403,
			"node b does not have same"},
		{"a user", k.place(t, "user", "b", private, "key"),
			trust.Identity{Kind: access.OfUser, Name: "ana", Role: access.Admin}, 403, "may not call /v1/blob"},
		{"an instance", k.place(t, "instance", "b", private, "key"),
			trust.Identity{Kind: access.OfInstance, Name: "same/main/0"}, 403, "may not call /v1/blob"},
	} {
		k.opened, k.who = nil, c.who
		status, text := k.asks(t, c.id.String(), root)
		if status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %d %s, want %d with %q", c.name, status, text, c.status, c.want)
		}
		if status != 200 && k.opened != nil && c.name != "another image" {
			t.Errorf("%s: the part was read all the same", c.name)
		}
	}
	k.who = trust.Identity{Kind: access.OfNode, Name: "b"}
	if got := k.sources(t, k.place(t, "untold", "b", "registry.example/app:1", "")); len(got) != 0 {
		t.Errorf("for a tag it is told to ask %v", got)
	}
	if status, text := k.asks(t, "none", root); status != 400 {
		t.Errorf("no allocation: got %d %s", status, text)
	}
}

// TestImageIsLookedFor asks first where an image runs, then where it ran, and then the nodes that are drained.
func TestImageIsLookedFor(t *testing.T) {
	k := newKitchen(t)
	named := appImage + digest.FromString(manifestText).Encoded()
	nodes := map[terms.NodeName]*peer{}
	for _, name := range []terms.PeerID{"c~1", "d~1", "e~1", "f~1", "g~1"} {
		one := k.a.peer(name)
		k.joins(t, one)
		nodes[name.Node()] = one
	}
	wants := k.place(t, "wants", "b", named, "")
	nodes["c"].report(k.place(t, "ran", "c", named, "").Slot, facts.ByItself)
	k.a.add("a~1", &command.DrainNode{Node: "f", Drain: true})
	k.runs(nodes["d"], k.place(t, "runs", "d", named, ""))
	for range 5 { // those of a kind come in any order
		var got []string
		for _, one := range k.sources(t, wants) {
			got = append(got, one.Name)
		}
		if want := []string{"node d", "node c", "node f"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestImageThatHasMoved gives an image that no instance here has any more, unless other jobs have it with a secret.
func TestImageThatHasMoved(t *testing.T) {
	k := newKitchen(t)
	root := digest.FromString(manifestText)
	moved := k.place(t, "moved", "b", appImage+root.Encoded(), "")
	if status, text := k.asks(t, moved.String(), root); status != 200 {
		t.Errorf("got %d %s", status, text)
	}
	k.place(t, "private", "b", appImage+root.Encoded(), "key")
	if status, text := k.asks(t, moved.String(), root); status != 404 {
		t.Errorf("with a job that has a secret for it: got %d %s", status, text)
	}
}
