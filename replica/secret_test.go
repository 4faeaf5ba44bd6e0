package replica

import (
	"fmt"
	"strings"

	"starling/command"
	"starling/terms"
	"starling/terms/access"
)

// secrets lists the versions of secrets, puts one, seals a version of it anew, or removes it.
func (w *story) secrets(verb string, by terms.PeerID, plain []string) {
	if verb == "secrets" {
		for _, s := range w.s.Registry().SecretsOf("") {
			fmt.Fprintf(&w.out, "%s/%s version %d, sealed %s\n", s.Pool, s.Name, s.Version, s.Sealed)
		}
		return
	}
	one := access.Secret{Pool: terms.DefaultPool, Name: plain[0], Sealed: plain[1]}
	switch verb {
	case "put-secret":
		w.write(by, &command.PutSecret{Secret: one})
	case "seal-secret":
		one.Version = uint32(number(plain[2]))
		w.write(by, &command.SealSecret{Secret: one})
	case "rm-secret":
		one.Version = uint32(number(plain[1]))
		w.write(by, &command.RemoveSecret{Pool: one.Pool, Name: one.Name, Version: one.Version})
	}
}

// setFiles gives a task a volume, or lets it read a version of a secret: NAME+VERSION.
func setFiles(t *terms.Task, key, value string) {
	switch key {
	case "volume":
		t.Volumes = []terms.Volume{{Name: value}}
	case "volumes-for":
		t.KeepVolumesMillis = number(value)
	default:
		name, version, _ := strings.Cut(value, "+")
		t.Secrets = []terms.SecretUse{{Name: name, Version: uint32(number(version))}}
	}
}
