package cluster

import "testing"

func TestParseVolumeSet(t *testing.T) {
	want := VolumeSet{Slot: SlotName{Job: "db", Task: "main", Index: 2}, Job: 17}
	if got, ok := ParseVolumeSet("db.main[2]@17"); !ok || got != want || got.String() != "db.main[2]@17" {
		t.Errorf("got %+v, %t, want %+v", got, ok, want)
	}
	for _, text := range []string{"", "db.main[2]", "db.main[2]@", "db.main[2]@-1", "db.main[2]@017", "db.main@17", "db.main[2]#1@17"} {
		if got, ok := ParseVolumeSet(text); ok {
			t.Errorf("ParseVolumeSet(%q): got %+v, want none", text, got)
		}
	}
}
