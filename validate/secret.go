package validate

import (
	"path"
	"strconv"
	"strings"

	"starling/terms"
)

func (p *problems) secrets(t *terms.Task) {
	if len(t.Secrets) > terms.SecretsMax {
		p.add("secrets", "must have at most %d elements, has %d", terms.SecretsMax, len(t.Secrets))
		return
	}
	for i := range t.Secrets {
		named(p, "secrets", t.Secrets[:i+1], func(s *terms.SecretUse) string { return s.Name })
		if t.Secrets[i].Path != "" {
			p.secretPath(t, i)
		}
		if s := &t.Secrets[i]; !s.InPool() {
			p.vault("secrets["+strconv.Itoa(i)+"].vault", &s.Vault)
		}
	}
}

// vault checks what says where Vault has a secret. Mount and path are part of an address.
func (p *problems) vault(field string, v *terms.VaultSecret) {
	for _, part := range [...]struct {
		key, text string
		isPath    bool
	}{{"mount", v.Mount, true}, {"path", v.Path, true}, {"field", v.Field, false}, {"role", v.Role, false}} {
		key := field + "." + part.key
		if p.text(key, part.text); len(part.text) > terms.VaultTextMax {
			p.add(key, "must have at most %d bytes, has %d", terms.VaultTextMax, len(part.text))
		}
		if part.isPath && (part.text == "" || path.Clean("/"+part.text) != "/"+part.text) {
			p.add(key, `must be as in "team/db": without "." and "..", and without a slash too many`)
		}
	}
}

// secretPath checks where the file of a secret is to be.
func (p *problems) secretPath(t *terms.Task, i int) {
	at, field := t.Secrets[i].Path, "secrets["+strconv.Itoa(i)+"].path"
	p.text(field, at)
	if at == "/" || path.Clean("/"+at) != "/"+strings.TrimPrefix(at, "/") {
		p.add(field, `must be the path of a file, without "." and "..", and without a slash too many`)
		return
	}
	for k, other := range t.Secrets[:i] {
		if other.Path != "" && (within(at, other.Path) || within(other.Path, at)) {
			p.add(field, "must not be the path of secrets[%d], or be above or below it", k)
		}
	}
	switch {
	case at[0] != '/':
	case t.Container.Image == "":
		p.add(field, `must not begin with "/" without a container: what a process reads is below the folder of its secrets`)
	default:
		p.placeInContainer(t, field, at)
	}
}

// placeInContainer checks an absolute path at which a container is to find a file.
func (p *problems) placeInContainer(t *terms.Task, field, at string) {
	for _, own := range terms.ContainerPaths() {
		if within(at, own) || within(own, at) {
			p.add(field, "must not be within %s, which every container has from its machine", own)
		}
	}
	for k, m := range t.Container.Mounts {
		if mount := path.Clean(m.Path); m.Volume != "" && within(at, mount) || within(mount, at) {
			p.add(field, "must not be within container.mounts[%d], or above it", k)
		}
	}
}

// within tells whether a path is another, or below it. Both are clean.
func within(below, above string) bool { return below == above || strings.HasPrefix(below, above+"/") }
