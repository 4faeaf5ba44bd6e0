package agents

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"starling/api/client"
	"starling/api/door"
	"starling/api/wire"
	"starling/trust"
)

// Socket is where the agent at a TCP address answers the user who started it.
func Socket(address string) string {
	return wire.UnixPrefix + wire.SocketIn(wire.OwnSocketFolder(), address)
}

// Token waits until the agent at the TCP address answers, and returns a line by which others join.
func Token(ctx context.Context, address string) (line string, err error) {
	api := client.New([]string{Socket(address)})
	defer api.Close()
	for {
		token, err := api.CreateToken(ctx, door.TokenRequest{LifeSeconds: 3600})
		if err == nil {
			return token.Line()
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("no join token from %s: %w, %w", address, ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// admitWithin bounds how long an agent waits for the first one of its flock, which admits it.
const admitWithin = 30 * time.Second

// admit gets the token by which an agent joins that is in no cluster yet.
func (a *Agent) admit() error {
	first := a.flock.Agents[0]
	if _, err := os.Stat(filepath.Join(a.folder, trust.Folder, "node.pem")); a == first || err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), admitWithin)
	defer cancel()
	line, err := Token(ctx, first.Address)
	if err != nil {
		return err
	}
	return trust.WritePrivate(a.file("token"), []byte(line))
}
