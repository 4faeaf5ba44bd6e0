package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// traces collects traces as OpenTelemetry sends them until the script ends, a line for each span in a file: the trace,
// the span above, and the name. Its URL is put into a variable: collector VARIABLE FILE.
func traces(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: collector VARIABLE FILE")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	file, err := os.Create(ts.MkAbs(args[1]))
	ts.Check(err)
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, &traceCollector{file: file})
	go func() { _ = server.Serve(listener) }()
	ts.Defer(func() {
		server.Stop()
		file.Close()
	})
	ts.Setenv(args[0], "http://"+listener.Addr().String())
}

type traceCollector struct {
	collector.UnimplementedTraceServiceServer
	lock sync.Mutex
	file *os.File
}

// Export writes what was sent.
func (c *traceCollector) Export(_ context.Context,
	request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				fmt.Fprintf(c.file, "%x %q %s\n", span.GetTraceId(), fmt.Sprintf("%x", span.GetParentSpanId()), span.GetName())
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}
