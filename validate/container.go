package validate

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"starling/terms"
	"starling/terms/rules"
)

func (p *problems) container(t *terms.Task) {
	c := &t.Container
	if c.Image == "" {
		if len(c.Arguments)+len(c.Capabilities)+len(c.Mounts) > 0 || c.ReadOnly || c.PullSecret != "" {
			p.add("container.image", "must name an image")
		}
		return
	}
	p.text("container.image", c.Image)
	if strings.ContainsAny(c.Image, " \t\n") {
		p.add("container.image", `must be the name of an image, as in "registry.example:5000/team/web:1.2"`)
	}
	if c.PullSecret != "" {
		p.name("container.pull_secret", c.PullSecret)
	}
	if len(c.Arguments) > terms.ArgumentsMax || len(c.Mounts) > terms.MountsMax ||
		len(c.Capabilities) > terms.CapabilitiesMax {
		p.add("container", "must have at most %d arguments, %d mounts and %d capabilities", terms.ArgumentsMax,
			terms.MountsMax, terms.CapabilitiesMax)
		return
	}
	for i, argument := range c.Arguments {
		p.text("container.args["+strconv.Itoa(i)+"]", argument)
	}
	for i, name := range c.Capabilities {
		at := "container.capabilities[" + strconv.Itoa(i) + "]"
		if !slices.Contains(terms.Capabilities(), name) {
			p.add(at, `must be a capability of Linux without its CAP_, as in "NET_ADMIN"`)
		}
		if slices.Contains(c.Capabilities[:i], name) {
			p.add(at, "is there twice")
		}
	}
	p.mounts(t)
}

// hasFolder tells whether a task has a volume or a host path of a name.
func hasFolder(t *terms.Task, name string) bool {
	return slices.ContainsFunc(t.Volumes, func(v terms.Volume) bool { return v.Name == name }) ||
		slices.ContainsFunc(t.HostPaths, func(h terms.HostPath) bool { return h.Name == name })
}

// mountApart checks that a mount hides nothing that every container has from its machine.
func (p *problems) mountApart(field, clean string) {
	for _, own := range terms.ContainerPaths() {
		if p.in >= rules.MountsApart && (within(clean, own) || within(own, clean)) {
			p.add(field, "must not be within %s, which every container has from its machine, or above it", own)
		}
	}
}

func (p *problems) mounts(t *terms.Task) {
	mounts := t.Container.Mounts
	for i := range mounts {
		m, at := &mounts[i], "container.mounts["+strconv.Itoa(i)+"]"
		p.text(at+".path", m.Path)
		if len(m.Path) < 2 || m.Path[0] != '/' || strings.Contains(m.Path+"/", "/../") {
			p.add(at+".path", `must be an absolute path below "/"`)
		}
		p.mountApart(at+".path", path.Clean(m.Path))
		if m.Volume != "" && !hasFolder(t, m.Volume) {
			p.add(at+".volume", "must be the name of one of the task's volumes or host_paths")
		}
		for k := range i {
			if mounts[k].Path == m.Path || p.in >= rules.MountsApart && path.Clean(mounts[k].Path) == path.Clean(m.Path) {
				p.add(at+".path", "is also the path of container.mounts[%d]", k)
			}
			if mounts[k].Volume == m.Volume && m.Volume != "" {
				p.add(at+".volume", "is also the volume of container.mounts[%d]", k)
			}
		}
	}
}

func sizeOfContainer(c *terms.Container) int {
	size := len(c.Image) + len(c.PullSecret)
	for _, a := range c.Arguments {
		size += len(a) + 4
	}
	for _, name := range c.Capabilities {
		size += len(name) + 4
	}
	for i := range c.Mounts {
		size += len(c.Mounts[i].Path) + len(c.Mounts[i].Volume) + 8
	}
	return size
}
