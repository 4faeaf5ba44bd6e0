package e2e

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// lookup asks a DNS server with the resolver of the standard library for the addresses of a name, or, if it begins with
// "_", for a service, and wants each to match, in their order: lookup SERVER NAME PATTERN... Without patterns the name
// must not be there.
func lookup(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: lookup SERVER NAME PATTERN...")
	}
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, args[0])
	}}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	got, err := answers(ctx, resolver, args[1])
	slices.Sort(got)
	want := strings.Join(args[2:], " ")
	matched, wrong := regexp.MatchString("^(?:"+want+")$", strings.Join(got, " "))
	ts.Check(wrong)
	if !matched {
		ts.Fatalf("%s is %q (%v), want %q", args[1], got, err, want)
	}
}

func answers(ctx context.Context, resolver *net.Resolver, name string) (all []string, err error) {
	service, rest, _ := strings.Cut(name, "._tcp.")
	if service[0] != '_' {
		return resolver.LookupHost(ctx, name+".")
	}
	_, found, err := resolver.LookupSRV(ctx, service[1:], "tcp", rest+".")
	for _, one := range found {
		all = append(all, fmt.Sprintf("%s%d", one.Target, one.Port))
	}
	return all, err
}
