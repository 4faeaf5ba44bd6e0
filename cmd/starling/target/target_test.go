package target

import (
	"fmt"
	"slices"
	"testing"

	starlingv1 "starling/api/v1"
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

func TestCheckInstance(t *testing.T) {
	answer := &starlingv1.JobStatusResponse{
		Tasks: []*starlingv1.Task{{Name: "server", Counts: &starlingv1.Counts{Desired: 2}}},
		Slots: []*starlingv1.Slot{{Task: "server", Allocation: "web.server[0]#9"}},
	}
	for text, want := range map[string]string{
		"web.server":      "",
		"web.server[0]":   "",
		"web.server[0]#9": "",
		"web.server[1]":   "",
		"web.worker[0]":   "job web has no task worker: there are server",
		"web.server[2]":   "job web has no instance web.server[2]",
		"web.server[0]#7": "web.server[0]#7 is not the allocation of web.server[0] any more: that is web.server[0]#9",
		"web.server[1]#7": "web.server[1]#7 is not the allocation of web.server[1] any more: that is none",
	} {
		readings, err := Parse(text)
		if err == nil {
			err = readings[0].CheckInstance(answer)
		}
		if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
