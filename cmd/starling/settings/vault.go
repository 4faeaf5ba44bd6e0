package settings

import (
	"fmt"
	"net/url"
	"time"

	"starling/jobspec"
)

// vaultSettings are those about Vault.
func vaultSettings() []setting {
	return []setting{
		{"vault.address", scalar, "`URL` of the server of Vault or OpenBao that has secrets which jobs name under vault (default: none)", setVaultAddress},
		{"vault.ca", scalar, "PEM `FILE` of the authority that signs its certificate (default: those that the machine trusts)",
			setPath(func(c *Agent) *string { return &c.Vault.CAFile })},
		{"vault.namespace", scalar, "`PATH` of the namespace (default: none)",
			setPath(func(c *Agent) *string { return &c.Vault.Namespace })},
		{"vault.auth", scalar, "`PATH` of the auth method of the kind JWT with which instances sign in (default jwt)",
			setPath(func(c *Agent) *string { return &c.Vault.Auth })},
		{"vault.role", scalar, "`NAME` of the role that instances have whose job names none (default: none)",
			setPath(func(c *Agent) *string { return &c.Vault.Role })},
		{"vault.every", scalar, "`DURATION` after which secrets are read again that instances have from it (default 5m)", setVaultEvery},
	}
}

// setVaultAddress takes where Vault answers. What it answers is secret: without TLS it is on this machine.
func setVaultAddress(c *Agent, texts []string) error {
	c.Vault.Address = texts[0]
	u, err := url.Parse(texts[0])
	if err != nil || u.Scheme != "http" || !isLoopback(u.Hostname()) {
		err = httpsURL(texts[0])
	}
	return err
}

func setVaultEvery(c *Agent, texts []string) error {
	millis, err := jobspec.ParseDuration(texts[0], int64(24*time.Hour/time.Millisecond))
	if c.Vault.Every = time.Duration(millis) * time.Millisecond; err == nil && c.Vault.Every < time.Second {
		err = fmt.Errorf("must be at least 1s, is %s", texts[0])
	}
	return err
}
