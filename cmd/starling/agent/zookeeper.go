package agent

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"starling/cmd/starling/exit"
	"starling/journal/zookeeper"
)

// reachZooKeeper opens the journal that an ensemble keeps, again and again until that works.
func (a *agent) reachZooKeeper(ctx context.Context) error {
	config := a.config.ZooKeeper
	config.PulseTTL = a.config.Pulse
	for {
		short, cancel := context.WithTimeout(ctx, quorumDelay)
		opened, err := zookeeper.Open(short, config)
		cancel()
		switch {
		case err == nil:
			a.journal = opened
			return nil
		case errors.Is(err, zookeeper.ErrRefused):
			return exit.Fail(exit.Usage, "%w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		text := "waiting for ZooKeeper: all servers are reachable, but no majority of them answers"
		if silent := unreachable(config.Servers); len(silent) > 0 {
			text = "waiting for ZooKeeper: nobody answers at " + strings.Join(silent, ", ")
		}
		a.log.Warn(text, "error", err)
		a.Hint("%s", text)
	}
}

// unreachable returns the addresses at which nothing takes a connection.
func unreachable(addresses []string) []string {
	var silent []string
	for _, at := range addresses {
		connection, err := net.DialTimeout("tcp", at, time.Second)
		if err != nil {
			silent = append(silent, at)
			continue
		}
		connection.Close()
	}
	return silent
}
