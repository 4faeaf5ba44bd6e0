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

// Token waits until one of the agents at the TCP addresses answers, and returns a line by which others join, and can
// admit some themselves.
func Token(ctx context.Context, addresses ...string) (line string, err error) {
	var sockets []string
	for _, address := range addresses {
		sockets = append(sockets, Socket(address))
	}
	api := client.New(sockets)
	defer api.Close()
	for {
		token, err := api.CreateToken(ctx, door.TokenRequest{LifeSeconds: 3600, Keeper: true, Uses: 1000})
		if err == nil {
			return token.Line()
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("no join token from %v: %w, %w", addresses, ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// admitWithin bounds how long an agent waits for one that admits it.
const admitWithin = 30 * time.Second

// admit gets the token by which an agent joins that is in no cluster yet.
func (a *Agent) admit() error {
	if _, err := os.Stat(filepath.Join(a.folder, trust.Folder, "node.pem")); len(a.join) == 0 || err == nil {
		return nil
	}
	var addresses []string
	for _, other := range a.join {
		addresses = append(addresses, other.Address)
	}
	ctx, cancel := context.WithTimeout(context.Background(), admitWithin)
	defer cancel()
	line, err := Token(ctx, addresses...)
	if err != nil {
		return err
	}
	return trust.WritePrivate(a.file("token"), []byte(line))
}
