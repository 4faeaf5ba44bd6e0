package image

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// entry is what a config.json of Docker has for one registry.
type entry struct {
	// Auth is USER:PASSWORD in base64.
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
}

// credentialsFor finds what a config.json of Docker has for a host; without a user the secret is a token. An error
// tells nothing of what the config holds.
func credentialsFor(host string, config []byte) (user, secret string, err error) {
	var all struct {
		Auths map[string]entry `json:"auths"`
	}
	if json.Unmarshal(config, &all) != nil {
		return "", "", fmt.Errorf("%w is not a config.json of Docker", errConfig)
	}
	for _, name := range slices.Sorted(maps.Keys(all.Auths)) {
		one := all.Auths[name]
		if hostOf(name) != hostOf(host) || one == (entry{}) {
			continue // without credentials it is known to a helper program, which does not run here
		}
		user, secret = one.Username, one.Password
		if one.Auth != "" {
			text, err := base64.StdEncoding.DecodeString(one.Auth)
			if err != nil {
				return "", "", fmt.Errorf("%w: auth of %s is not base64", errConfig, name)
			}
			user, secret, _ = strings.Cut(strings.TrimRight(string(text), "\x00"), ":")
		}
		if one.IdentityToken != "" {
			user, secret = "", one.IdentityToken
		}
		return user, secret, nil
	}
	return "", "", fmt.Errorf("%w has no credentials for it", errConfig)
}

// hostOf is the host of a registry as a config.json names it, with a scheme and a path or without. That of Docker has
// several names.
func hostOf(name string) string {
	if _, rest, hasScheme := strings.Cut(name, "://"); hasScheme {
		name = rest
	}
	name, _, _ = strings.Cut(name, "/")
	switch name {
	case "index.docker.io", "registry-1.docker.io":
		return "docker.io"
	}
	return name
}
