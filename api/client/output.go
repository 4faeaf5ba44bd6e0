package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"connectrpc.com/connect"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/terms"
	"starling/trust"
)

// Outputs reads outputs of instances from the peers that have them.
type Outputs struct {
	by *http.Client
}

// NewOutputs returns a reader of outputs, for a node that shows this.
func NewOutputs(shows func() []trust.Shows) *Outputs { return &Outputs{wire.Client(shows)} }

// Fetch reads an output from the peer at the address, as it was sent there. The error is os.ErrNotExist if that has
// none.
func (o *Outputs) Fetch(ctx context.Context, address string, output terms.OutputSet) (io.ReadCloser, error) {
	answers, err := wire.Peer(o.by, address).Output(ctx, &starlingv1.OutputRequest{Output: output.String()})
	if err != nil {
		return nil, outputFailure(address, err)
	}
	return &pieces{address: address, answers: answers}, nil
}

func outputFailure(address string, err error) error {
	failure := wire.FailureOf(err)
	switch {
	case failure == nil:
		return io.EOF
	case failure.Code == wire.NotFound:
		return fmt.Errorf("%w: %s", os.ErrNotExist, failure.Reason)
	}
	return fmt.Errorf("the peer at %s: %w", address, failure)
}

// pieces is an output on its way.
type pieces struct {
	address string
	answers *connect.ServerStreamForClient[starlingv1.OutputResponse]
	rest    []byte
}

// Read returns what has come.
func (p *pieces) Read(data []byte) (int, error) {
	for len(p.rest) == 0 {
		if !p.answers.Receive() {
			return 0, outputFailure(p.address, p.answers.Err())
		}
		p.rest = p.answers.Msg().GetData()
	}
	n := copy(data, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Close ends it.
func (p *pieces) Close() error { return p.answers.Close() }
