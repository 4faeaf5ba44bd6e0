package command

import (
	"testing"

	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
)

// TestRequestKey tells requests apart that have the same id.
func TestRequestKey(t *testing.T) {
	alice, bob := access.Subject{Kind: access.OfUser, Name: "alice"}, access.Subject{Kind: access.OfUser, Name: "bob"}
	kill := &KillJob{Job: "web"}
	own := []Command{kill, &KillJob{Job: "db"}, &RestartJob{Job: "web"}, &DrainNode{}, &As{Subject: alice, Command: kill},
		&As{Subject: bob, Command: kill}, &EndAllocation{Slot: terms.SlotName{Job: "web"}}}
	keys := map[string]Command{}
	for _, c := range own {
		key := RequestKey(rules.OwnRequests, c, "deploy")
		if same, ok := keys[key]; ok {
			t.Errorf("%+v and %+v have the key %q", c, same, key)
		}
		keys[key] = c
		if again := RequestKey(rules.OwnRequests, c, "deploy"); again != key {
			t.Errorf("%+v: got %q, then %q", c, key, again)
		}
		if early := RequestKey(rules.OwnRequests-1, c, "deploy"); early != "deploy" {
			t.Errorf("%+v: got %q before each user had ids of its own", c, early)
		}
	}
	if key := RequestKey(rules.OwnRequests, kill, ""); key != "" {
		t.Errorf("got %q of a request without an id", key)
	}
}
