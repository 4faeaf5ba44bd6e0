package e2e

import (
	"net/http/httptest"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/rogpeppe/go-internal/testscript"
)

// store serves an S3-compatible store with one empty bucket until the script ends, and puts its URL into a variable:
// store STORE BUCKET.
func store(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: store VARIABLE BUCKET")
	}
	engine := s3mem.New()
	ts.Check(engine.CreateBucket(args[1]))
	server := httptest.NewServer(gofakes3.New(engine).Server())
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
}
