package agent

import (
	"strings"
	"testing"
	"time"

	"starling/archive/depot"
	"starling/cmd/starling/settings"
	"starling/terms"
)

// TestFutureDoesNotCount has a machine with a wrong clock make a backup: it is told, and the next one is due as if it
// were not there.
func TestFutureDoesNotCount(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	backup := func(cluster string, age time.Duration) depot.Backup {
		return depot.Backup{Name: age.String(), Cluster: cluster, At: now.Add(-age)}
	}
	const year = 365 * 24 * time.Hour
	for _, c := range []struct {
		name  string
		all   []depot.Backup
		age   time.Duration
		ahead string
	}{
		{"the last one counts", []depot.Backup{backup("a", time.Hour), backup("a", 2*time.Hour)}, time.Hour, ""},
		{"one from the future", []depot.Backup{backup("a", -year), backup("a", time.Hour)}, time.Hour, (-year).String()},
		{"clocks differ a little", []depot.Backup{backup("a", -time.Second), backup("a", time.Hour)}, -time.Second, ""},
		{"another cluster's", []depot.Backup{backup("a", time.Hour), backup("b", -year), backup("b", 0)}, time.Hour, ""},
	} {
		latest, ahead := latestOf(c.all, "a", now)
		if now.Sub(latest) != c.age || ahead != c.ahead {
			t.Errorf("%s: got %v ago and %q ahead, want %v and %q", c.name, now.Sub(latest), ahead, c.age, c.ahead)
		}
	}
}

// TestOneMemberIsDue has the first member make the next backup, and the others only if it does not.
func TestOneMemberIsDue(t *testing.T) {
	const every, look = time.Hour, time.Minute
	for _, c := range []struct {
		age  time.Duration
		rank int
		want bool
	}{
		{every - time.Second, 0, false}, {every, 0, true}, {every, 1, false}, {every + look, 1, false},
		{every + 2*look, 1, true}, {every + 2*look, 2, false}, {10 * every, -1, false}, {10 * every, 100, true},
	} {
		if got := isDue(c.age, every, look, c.rank); got != c.want {
			t.Errorf("after %v the member of rank %d: got %t, want %t", c.age, c.rank, got, c.want)
		}
	}
}

// TestRestoreIsSeen has the journal end before the newest backup, and the backup that was made last be gone.
func TestRestoreIsSeen(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	backup := func(restores uint64, index terms.Index, age time.Duration) depot.Backup {
		return depot.Backup{Name: "that", Cluster: "a", Restores: restores, Index: index, At: now.Add(-age)}
	}
	b := &backups{agent: &agent{config: &settings.Agent{BackupEvery: time.Hour}},
		made: depot.Backup{Name: "mine", Cluster: "a", Restores: 1, Index: 30}}
	for _, c := range []struct {
		name string
		last depot.Backup
		age  time.Duration
		want string
	}{
		{"it goes on", backup(1, 30, time.Minute), time.Minute, ""},
		{"another member made the newest", backup(1, 31, time.Minute), time.Minute, ""},
		{"restored", backup(1, 48, time.Minute), time.Hour, "it ends at entry 40, as after a restore of an older backup"},
		{"restored long ago", backup(1, 48, 2*time.Hour), 2 * time.Hour, "backup that is of entry 48"},
		{"the last is gone", backup(1, 29, time.Minute), time.Minute, "backup mine, which this peer made last, is not there"},
		{"those of this past are gone", backup(0, 35, time.Minute), time.Minute, "is not there any more, nor a newer one"},
	} {
		latest, warning := b.judge([]depot.Backup{c.last}, depot.Backup{Cluster: "a", Index: 40, At: now})
		if now.Sub(latest) != c.age || !strings.Contains(warning, c.want) || (c.want == "") != (warning == "") {
			t.Errorf("%s: got %v ago and %q, want %v and %q", c.name, now.Sub(latest), warning, c.age, c.want)
		}
	}
}
