package target

import (
	"slices"
	"testing"
)

func TestTarget(t *testing.T) {
	for text, want := range map[string][]Target{
		"web":                   {{"web", "", -1, ""}},
		"web.server":            {{"web", "server", -1, ""}},
		"web/server":            {{"web/server", "", -1, ""}, {"web", "server", -1, ""}},
		"web/server[3]":         {{"web", "server", 3, ""}},
		"web/server/3":          {{"web/server/3", "", -1, ""}, {"web/server", "3", -1, ""}, {"web", "server", 3, ""}},
		"web.server/3":          {{"web", "server", 3, ""}},
		"web.server[3]":         {{"web", "server", 3, ""}},
		"web.server[3]#4711":    {{"web", "server", 3, "web.server[3]#4711"}},
		"web/server[3]#4711":    {{"web", "server", 3, "web.server[3]#4711"}},
		"a/b/web":               {{"a/b/web", "", -1, ""}, {"a/b", "web", -1, ""}},
		"a/b/web.server":        {{"a/b/web", "server", -1, ""}},
		"a/b/web/server[3]":     {{"a/b/web", "server", 3, ""}},
		"a/b/web.server[3]#1":   {{"a/b/web", "server", 3, "a/b/web.server[3]#1"}},
		"default/web":           {{"web", "", -1, ""}, {"default", "web", -1, ""}},
		"default/web/server":    {{"default/web/server", "", -1, ""}, {"web", "server", -1, ""}},
		"default/web.server[0]": {{"web", "server", 0, ""}},
		"default/web.s[0]#1":    {{"web", "s", 0, "web.s[0]#1"}},
	} {
		got, err := Parse(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %+v and %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "/", "web/", "/web", "a//b", "web[3]", "web.a.b", "web.server/3/4", "web/server[",
		"web/server[x]", "web/server[99999999999]", "web server", "web#1",
		"web.server[3", "web.server/3]", "web/server[3#4"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, got)
		}
	}
}
