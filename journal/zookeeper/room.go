package zookeeper

import (
	"context"
	"errors"
	"regexp"
	"strconv"

	"github.com/go-zookeeper/zk"

	"starling/journal"
)

// Room implements journal.Journal. An ensemble keeps all in memory, and tells no client how much of
// that it may have: what bounds the journal is a quota that an operator sets on its chroot, as by its zkCli.sh
// setquota -b. Of two that counts which the ensemble enforces.
func (j *Journal) Room(ctx context.Context) (journal.Room, error) {
	if over := j.over(ctx); over != nil {
		return journal.Room{}, over
	}
	during, done := j.during(ctx, attemptMax)
	defer done()
	var texts [2]string
	for i, path := range []string{j.paths.quotaUsed, j.paths.quotaLimits} {
		data, err := ask(during, j, func(c *zk.Conn) ([]byte, error) {
			data, _, err := c.Get(path)
			return data, err
		})
		if errors.Is(err, zk.ErrNoNode) {
			return journal.Room{}, nil
		}
		if err != nil {
			return journal.Room{}, j.failed(ctx, "read the quota", err)
		}
		texts[i] = string(data)
	}
	return roomOf(texts[0], texts[1]), nil
}

// The texts of the nodes zookeeper_stats and zookeeper_limits (org.apache.zookeeper.StatsTrack): -1 is no bound.
var (
	quotaBytes    = regexp.MustCompile(`(?:^|[,;])bytes=([0-9]+)`)
	quotaEnforced = regexp.MustCompile(`[,;]byteHardLimit=([0-9]+)`)
)

// roomOf reads what is used and what is allowed of it. What does not tell a bound tells none.
func roomOf(used, limits string) journal.Room {
	number := func(pattern *regexp.Regexp, text string) (n int64) {
		if found := pattern.FindStringSubmatch(text); found != nil {
			n, _ = strconv.ParseInt(found[1], 10, 64) // a number too large bounds nothing
		}
		return n
	}
	quota := number(quotaEnforced, limits)
	if quota == 0 {
		quota = number(quotaBytes, limits)
	}
	if quota == 0 {
		return journal.Room{}
	}
	return journal.Room{Used: number(quotaBytes, used), Quota: quota}
}
