package client

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"starling/api/wire"
)

// DefaultPort is where peers answer unless told otherwise, and DefaultAddress where a client asks.
const (
	DefaultPort    = "7460"
	DefaultAddress = "127.0.0.1:" + DefaultPort
)

// Addresses reads a list of addresses with commas between: "host:port", "host", ":port", "https://host:port", or
// "unix:PATH" of a socket. An empty text is DefaultAddress. Each result is "host:port" or "unix:PATH".
func Addresses(text string) ([]string, error) {
	if strings.TrimSpace(text) == "" {
		return []string{DefaultAddress}, nil
	}
	var all []string
	for one := range strings.SplitSeq(text, ",") {
		address, err := parseAddress(strings.TrimSpace(one))
		if err != nil {
			return nil, fmt.Errorf("address %q: %w: write host:port, such as %s", one, err, DefaultAddress)
		}
		all = append(all, address)
	}
	return all, nil
}

func parseAddress(text string) (string, error) {
	if path, isSocket := strings.CutPrefix(text, wire.UnixPrefix); isSocket {
		if path == "" {
			return "", fmt.Errorf("names no socket")
		}
		return text, nil
	}
	if scheme, rest, found := strings.Cut(text, "://"); found {
		if scheme != "https" {
			return "", fmt.Errorf("%s is not spoken, only https", scheme)
		}
		text = strings.TrimSuffix(rest, "/")
	}
	if text == "" {
		return "", fmt.Errorf("is empty")
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port, err = net.SplitHostPort(net.JoinHostPort(strings.Trim(text, "[]"), DefaultPort))
	}
	if err != nil {
		return "", err
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "", fmt.Errorf("port %q is not a number from 1 to 65535", port)
	}
	if strings.ContainsAny(host, "/?#@ ") || strings.Contains(host, ":") && net.ParseIP(host) == nil {
		return "", fmt.Errorf("host %q is neither a name nor an IP address", host)
	}
	return net.JoinHostPort(host, port), nil
}
