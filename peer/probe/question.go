package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"starling/cluster/facts"
	"starling/terms"
)

// host is where instances of this machine listen.
const host = "127.0.0.1"

// question returns the function that puts a check's question once.
func (p *Prober) question(id terms.AllocationID, check *terms.Check,
	ports []facts.PortUse) func(context.Context) error {
	if check.Kind == terms.CheckCommand {
		return func(ctx context.Context) error { return p.config.Run(ctx, id, check.Command) }
	}
	address := ""
	for i := range ports {
		if ports[i].Name == check.Port {
			address = net.JoinHostPort(host, strconv.Itoa(int(ports[i].Number)))
		}
	}
	switch {
	case address == "":
		return func(context.Context) error { return fmt.Errorf("the instance has no port %s", check.Port) }
	case check.Kind == terms.CheckTCP:
		return func(ctx context.Context) error { return connect(ctx, address) }
	case check.Kind == terms.CheckGRPC:
		return func(ctx context.Context) error { return askGRPC(ctx, address, check.Service) }
	}
	return func(ctx context.Context) error { return askHTTP(ctx, "http://"+address+check.Path, check) }
}

func connect(ctx context.Context, address string) error {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}

// askHTTP wants the status that is asked for, or one of 200 to 399. Each question has a connection of its own, as a new
// client would: one that was kept open says nothing about the next.
func askHTTP(ctx context.Context, address string, check *terms.Check) error {
	request, err := http.NewRequestWithContext(ctx, check.Method.String(), address, strings.NewReader(check.Body))
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", userAgent)
	for _, h := range check.Headers {
		if request.Header.Set(h.Name, h.Value); strings.EqualFold(h.Name, "Host") {
			request.Host = h.Value
		}
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	var asked *url.Error
	if errors.As(err, &asked) {
		return asked.Err // what was asked for, the check's name says
	}
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	switch got := response.StatusCode; {
	case check.Status != 0 && got != int(check.Status):
		return fmt.Errorf("status %d, wanted %d", got, check.Status)
	case check.Status == 0 && (got < 200 || got > 399):
		return fmt.Errorf("status %d", got)
	}
	return nil
}

// askGRPC wants the answer SERVING of the health service (gRPC's doc/health-checking.md), without TLS.
func askGRPC(ctx context.Context, address, service string) error {
	connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUserAgent(userAgent), grpc.WithNoProxy())
	if err != nil {
		return err
	}
	defer connection.Close()
	question := &grpc_health_v1.HealthCheckRequest{Service: service}
	answer, err := grpc_health_v1.NewHealthClient(connection).Check(ctx, question)
	switch {
	case status.Code(err) == codes.Unimplemented:
		return errors.New("the program has no health service")
	case status.Code(err) == codes.NotFound:
		return fmt.Errorf("the program knows no service %q", service)
	case err != nil:
		return errors.New(status.Convert(err).Message())
	case answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING:
		return fmt.Errorf("status %s", answer.GetStatus())
	}
	return nil
}

// userAgent is what checks call themselves.
const userAgent = "starling-check"

// name says which check it is: "http /health on port http".
func name(check *terms.Check) string {
	switch check.Kind {
	case terms.CheckHTTP:
		return fmt.Sprintf("http %s on port %s", check.Path, check.Port)
	case terms.CheckTCP:
		return "tcp on port " + check.Port
	case terms.CheckGRPC:
		return strings.TrimRight("grpc "+check.Service, " ") + " on port " + check.Port
	}
	return "command " + strings.Join(check.Command, " ")
}
