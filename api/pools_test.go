package api

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
	"starling/terms/access"
	"starling/trust"
)

// poolOf returns a pool that reserves and may use so many of the pair's eight cores.
func poolOf(path terms.PoolPath, reservation, limit int64) terms.Pool {
	s := terms.NewPool(path)
	s.Quotas[terms.CPU] = terms.Quota{Reservation: reservation * 1000, Limit: limit * 1000, Share: 1}
	return s
}

// maps is a tree like that of the user guide.
func maps() []terms.Pool {
	return []terms.Pool{
		poolOf("AVMaps", 4, 6), poolOf("AVMaps/AV-Build", 1, 6), poolOf("AVMaps/AV-Release", 2, 6),
		poolOf("Simulation", 2, 8),
	}
}

func TestPoolMessages(t *testing.T) {
	full := poolOf("a/b", 1, 2)
	full.ControllerLimit, full.SlackLimit, full.PreemptionDelayMillis, full.Owners = 0, 0, 0, []string{"maps"}
	for k := range full.Quotas {
		full.Quotas[k] = terms.Quota{Reservation: int64(k), Limit: 7, Static: true}
	}
	for _, want := range []terms.Pool{full, terms.NewPool("a")} {
		got, problems := wire.PoolOf(wire.Pool(&want))
		if len(problems) > 0 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %+v, %v, want %+v", got, problems, want)
		}
	}
	if got, problems := wire.PoolOf(&starlingv1.PoolSpec{Path: "a"}); len(problems) > 0 ||
		fmt.Sprint(got) != fmt.Sprint(terms.NewPool("a")) {
		t.Errorf("got %+v, %v, want the usual pool", got, problems)
	}
	many, none := uint32(256+20), int64(terms.Unlimited)
	_, problems := wire.PoolOf(&starlingv1.PoolSpec{Path: "a", ControllerLimit: &many, SlackLimit: &many,
		Quotas: []*starlingv1.Quota{
			{Kind: "cpu"}, {Kind: "cpu"}, {Kind: "tape"}, {Kind: "disk", Limit: &none},
		}})
	if got, want := paths(problems), "a.controller_limit a.slack_limit a.cpu a.tape"; got != want {
		t.Errorf("got problems at %s, want %s", got, want)
	}
}

func paths(problems []terms.Problem) string {
	var all []string
	for _, p := range problems {
		all = append(all, p.Path)
	}
	return strings.Join(all, " ")
}

func TestPlanPools(t *testing.T) {
	a, _ := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	plan, err := c.PlanPools(ctx, 1, maps(), nil)
	if err != nil || plan.GetVersion() != 1 || len(plan.GetChanges()) != 4 || plan.GetChanges()[0].GetWhat() != "created" {
		t.Fatalf("got %v, %v", plan, err)
	}
	want := &starlingv1.Change{Path: "cpu.reservation", Old: "0", New: "4"}
	if got := plan.GetChanges()[0].GetChanges()[0]; !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// Nobody asks for anything: default and the two at the top share what there is.
	wanted := []*starlingv1.EntitlementChange{
		{Path: "AVMaps", Kind: "cpu", After: 2667}, {Path: "default", Kind: "cpu", Before: 8000, After: 2666},
	}
	for _, one := range wanted {
		found := false
		for _, got := range plan.GetEntitlements() {
			found = found || proto.Equal(got, one)
		}
		if !found {
			t.Errorf("got %v, want %v among them", plan.GetEntitlements(), one)
		}
	}
	if list, err := c.AllPools(ctx, ""); err != nil || len(list.GetPools()) != 1 || list.GetVersion() != 1 {
		t.Errorf("the plan changed something: %v, %v", list, err)
	}
}

func TestChangePools(t *testing.T) {
	a, _ := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	if _, err := c.ChangePools(ctx, 1, maps(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SubmitJob(ctx, jobOn("AVMaps/AV-Build/nightly", 3, "b"), 0); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name    string
		against uint32
		pools   []terms.Pool
		gone    []terms.PoolPath
		code    wire.Code
		paths   string
	}{
		{"stale", 1, maps(), nil, wire.Conflict, ""},
		{"nothing", 2, nil, nil, wire.Invalid, "pools"},
		{"a sum", 2, []terms.Pool{poolOf("AVMaps", 2, 6)}, nil, wire.Invalid, "AVMaps.cpu.reservation"},
		{"below jobs", 0, []terms.Pool{poolOf("AVMaps/AV-Build/x", 0, 1), poolOf("AVMaps/y", 0, 9)}, nil, wire.Invalid,
			"AVMaps/y.cpu.limit AVMaps/AV-Build"},
		{"with jobs", 2, nil, []terms.PoolPath{"AVMaps/AV-Build", "none", "default"}, wire.Invalid,
			"none default AVMaps/AV-Build"},
		{"below", 2, nil, []terms.PoolPath{"AVMaps"}, wire.Invalid, "AVMaps/AV-Build AVMaps/AV-Release"},
	}
	for _, one := range cases {
		for _, err := range []error{
			second(c.PlanPools(ctx, one.against, one.pools, one.gone)),
			second(c.ChangePools(ctx, one.against, one.pools, one.gone)),
		} {
			if got := asFailure(t, err); got.Code != one.code || paths(got.Problems) != one.paths {
				t.Errorf("%s: got %s %s at %s, want %s at %s", one.name, got.Code, got.Reason, paths(got.Problems), one.code,
					one.paths)
			}
		}
	}
	if _, err := c.ChangePools(ctx, 2, nil, []terms.PoolPath{"AVMaps/AV-Release"}); err != nil {
		t.Error(err)
	}
	if _, err := c.KillJob(ctx, "AVMaps/AV-Build/nightly", 0, false); err != nil {
		t.Error(err)
	}
}

// TestPoolsRepeated wants a change that is sent again answered alike, although the tree has its next version.
func TestPoolsRepeated(t *testing.T) {
	a, _ := pair()
	s, ctx := newServer(a, Options{}), within(t)
	request := &starlingv1.ChangePoolsRequest{RequestId: "one", Against: 1, Pools: wire.Pools(maps())}
	for range 2 {
		if _, err := s.ChangePools(ctx, request); err != nil {
			t.Error(err)
		}
	}
	request.RequestId = strings.Repeat("x", 65)
	if got := asFailure(t, second(s.ChangePools(ctx, request))); paths(got.Problems) != "request_id" {
		t.Errorf("got %+v", got)
	}
	many := &starlingv1.ChangePoolsRequest{Gone: make([]string, command.PoolsMax+1)}
	if got := asFailure(t, second(s.ChangePools(ctx, many))); got.Code != wire.Exhausted {
		t.Errorf("got %+v", got)
	}
}

func TestListPools(t *testing.T) {
	a, b := pair()
	s, ctx := newServer(a, Options{}), door.WithCaller(within(t),
		trust.Identity{Kind: access.OfLocal, Role: access.Viewer})
	c := ask(t, a.serve(t))
	if _, err := c.ChangePools(ctx, 0, maps(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SubmitJob(ctx, jobOn("AVMaps/AV-Build/nightly", 6, "b"), 0); err != nil {
		t.Fatal(err)
	}
	b.report(terms.SlotName{Job: "AVMaps/AV-Build/nightly", Task: "main"}, facts.NotEnded)
	request, seen := &starlingv1.ListPoolsRequest{PageSize: 2}, ""
	for {
		page, err := s.ListPools(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page.GetPools() {
			u := p.GetUses()[terms.CPU]
			seen += fmt.Sprintf("%s leaf=%v jobs=%d %d+%d/%d borrowed=%d lent=%d; ", p.GetSpec().GetPath(), p.GetLeaf(),
				p.GetJobs(),
				u.GetAllocated(), u.GetDemand(), u.GetEntitlement(), u.GetBorrowed(), u.GetLent())
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			break
		}
	}
	want := "AVMaps leaf=false jobs=1 4000+2000/6000 borrowed=0 lent=0; AVMaps/AV-Build leaf=true jobs=1 4000+2000/6000 borrowed=3000 lent=0; " +
		"AVMaps/AV-Release leaf=true jobs=0 0+0/0 borrowed=0 lent=2000; Simulation leaf=true jobs=0 0+0/1000 borrowed=0 lent=1000; " +
		"default leaf=true jobs=0 0+0/1000 borrowed=0 lent=0; "
	if seen != want {
		t.Errorf("got %s\nwant %s", seen, want)
	}
	if page, err := s.ListPools(ctx, &starlingv1.ListPoolsRequest{Prefix: "AVMaps/"}); err != nil ||
		len(page.GetPools()) != 2 {
		t.Errorf("got %v, %v", page, err)
	}
}

func TestPoolStatus(t *testing.T) {
	a, _ := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	if _, err := c.ChangePools(ctx, 0, maps(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SubmitJob(ctx, jobOn("Simulation/big", 9, "b"), 0); err != nil {
		t.Fatal(err)
	}
	answer, err := c.PoolStatus(ctx, "Simulation")
	if err != nil || answer.GetParent() != "" ||
		len(answer.GetExplanations()) != int(terms.AmountCount)-1 { // nobody has virtual peers
		t.Fatalf("got %v, %v", answer, err)
	}
	r := answer.GetExplanations()[terms.CPU]
	if r.GetDivided() != 8000 || len(r.GetParts()) != 3 || len(r.GetSentences()) < 4 {
		t.Errorf("got %v", r)
	}
	limit := int64(8000)
	want := &starlingv1.Part{
		Path: "Simulation", Reservation: 2000, Limit: &limit, Share: 1, Asked: 9000, Claim: 8000, Reserved: 2000,
		Shared:      6000,
		Entitlement: 8000, Cut: "limit",
	}
	if got := r.GetParts()[1]; !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for path, code := range map[terms.PoolPath]wire.Code{"": wire.Invalid, "none": wire.NotFound} {
		if got := asFailure(t, second(c.PoolStatus(ctx, path))); got.Code != code {
			t.Errorf("%q: got %+v", path, got)
		}
	}
}
