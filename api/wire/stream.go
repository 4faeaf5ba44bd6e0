package wire

import "connectrpc.com/connect"

// PassOn sends what another peer answers, to its end.
func PassOn[M any](answers *connect.ServerStreamForClient[M], to *connect.ServerStream[M]) error {
	defer answers.Close()
	for answers.Receive() {
		if err := to.Send(answers.Msg()); err != nil {
			return err
		}
	}
	return answers.Err()
}

// Pieces sends what is written in pieces of at most so many bytes.
type Pieces struct {
	Most int
	Send func(data []byte) error
}

// Write sends some.
func (p *Pieces) Write(data []byte) (int, error) {
	for rest := data; len(rest) > 0; {
		n := min(len(rest), p.Most)
		if err := p.Send(rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(data), nil
}
