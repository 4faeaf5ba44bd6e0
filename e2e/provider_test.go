package e2e

import (
	"os"
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"

	"starling/trust/provider/providertest"
)

// providerKey finds the provider of a script.
type providerKey struct{}

// signInWith starts an OpenID Connect provider until the script ends. Its URL is put into a variable, its certificate
// and its client's secret into files: provider VARIABLE FILE FILE.
func signInWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: provider VARIABLE FILE FILE")
	}
	p, err := providertest.New()
	ts.Check(err)
	ts.Defer(p.Close)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), p.Certificate(), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(providertest.Secret+"\n"), 0o600))
	ts.Setenv(args[0], p.Issuer())
	*ts.Value(providerKey{}).(*providertest.Provider) = *p
}

var userCode = regexp.MustCompile(`enter the code (\S+)`)

// enter has somebody enter the code that a program has shown, and say yes, or no with !: enter PROGRAM USER.
func enter(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] enter PROGRAM USER")
	}
	shown := programOf(ts, args[0])
	ts.Check(shown.await(userCode.String()))
	text, _ := shown.state()
	code := userCode.FindStringSubmatch(text)[1]
	p := ts.Value(providerKey{}).(*providertest.Provider)
	if neg {
		ts.Check(p.Refuse(code))
		return
	}
	ts.Check(p.Enter(code, args[1]))
}

var page = regexp.MustCompile(`open (https://\S+/authorize\?\S+)`)

// visit has somebody open the page that a program has named, in a browser of this machine, and say yes: visit PROGRAM
// USER.
func visit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: visit PROGRAM USER")
	}
	shown := programOf(ts, args[0])
	ts.Check(shown.await(page.String()))
	text, _ := shown.state()
	said, err := ts.Value(providerKey{}).(*providertest.Provider).Visit(page.FindStringSubmatch(text)[1], args[1])
	ts.Check(err)
	ts.Logf("the browser shows: %s", said)
}
