package zookeeper_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"starling/journal"
)

// TestRoomIsWhatAQuotaLeaves sets quotas as zkCli.sh setquota does: -b for one that is only told, -B for another.
func TestRoomIsWhatAQuotaLeaves(t *testing.T) {
	config := place(one.ensemble(t))
	j, c := opened(t, config), client(t)
	w := &writer{t: t, journal: j}
	w.append(1)
	if room, err := j.Room(limited(t)); err != nil || room != (journal.Room{}) {
		t.Errorf("without a quota: %+v, %v", room, err)
	}
	limits := setQuota(t, c, config.Chroot, "count=-1,bytes=100000")
	before, err := j.Room(limited(t))
	must(t, err)
	if before.Quota != 100_000 || before.Used == 0 || before.Full() {
		t.Errorf("with a quota of 100,000 bytes: %+v", before)
	}
	must(t, j.Append(limited(t), journal.Record{Writer: "w", Seq: 2, Payload: make([]byte, 85_000)}))
	after, again := before, time.NewTicker(10*time.Millisecond)
	for within := limited(t); !after.Full() && within.Err() == nil; <-again.C {
		after, err = j.Room(within)
		must(t, err)
	}
	again.Stop()
	if after.Used < before.Used+85_000 || !after.Full() {
		t.Errorf("before %+v, with 85,000 bytes more %+v", before, after)
	}

	_, err = c.Set(limits, []byte("count=-1,bytes=100000=;byteHardLimit=2000000;countHardLimit=-1"), -1)
	must(t, err)
	if room, err := j.Room(limited(t)); err != nil || room.Quota != 2_000_000 || room.Full() {
		t.Errorf("with an enforced one of 2,000,000 bytes, too: %+v, %v", room, err)
	}

	_, err = c.Set(limits, []byte("count=-1,bytes=-1=;byteHardLimit=1000;countHardLimit=-1"), -1)
	must(t, err)
	err = j.Append(limited(t), journal.Record{Writer: "w", Seq: 3, Payload: make([]byte, 1000)})
	if err == nil || !strings.Contains(err.Error(), "a quota of its chroot, or of what is above that, is used up") {
		t.Errorf("with one of 1,000 bytes that is used up: %v", err)
	}
}

// setQuota bounds a chroot, and returns the node that says so.
func setQuota(t *testing.T, c *zk.Conn, chroot, bounds string) (limits string) {
	t.Helper()
	acl, path := zk.WorldACL(zk.PermAll), "/zookeeper/quota"
	for name := range strings.SplitSeq(chroot[1:], "/") {
		path += "/" + name
		if _, err := c.Create(path, nil, 0, acl); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			t.Fatal(err)
		}
	}
	limits, err := c.Create(path+"/zookeeper_limits", []byte(bounds), 0, acl)
	must(t, err)
	_, err = c.Create(path+"/zookeeper_stats", []byte("count=0,bytes=0"), 0, acl)
	must(t, err)
	return limits
}
