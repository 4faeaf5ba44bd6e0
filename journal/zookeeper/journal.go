// Package zookeeper keeps the journal in an ensemble of ZooKeeper, reached as a client.
//
//	/chroot/shard/0000000007          base and whether it is sealed
//	/chroot/shard/0000000007/record   r0000000000 r0000000001 ...   persistent sequential nodes, one for each record
//	/chroot/shard/0000000007/part     parts of payloads that are too large for one node
//	/chroot/writer/a~1/0000000100000002   that this record was appended
//	/chroot/snapshot                  which snapshot stands; below it the chunks
//	/chroot/pulse/a~1                 ephemeral: a pulse; its data tells its life and its value
//	/chroot/owner/<session>           ephemeral: whose session owns its pulse
//
// Records stand in shards of some thousand. An append is one transaction: it checks that the shard is not sealed,
// creates the writer's node for the record, so that a resend is refused, and the record as a sequential node. No two
// appends can be in each other's way. Who finds a shard full seals it; then its records are counted, once for all,
// and the next shard begins there.
//
// A record's index is the base of its shard and its rank among the records there. So the sequence numbers of ZooKeeper,
// which are 32 bits and may have gaps, only order the records of one shard, and begin again with each. A rank stays
// what it is because records are never deleted but with their whole shard: what a snapshot stands for in the last
// shards is passed over until then.
//
// A watch is a hint. A reader guesses the name of the next record, and now and then it compares how many records it
// has read with how many there are; what is missing then is listed.
//
// What must not be answered by a server that does not know yet that another leads begins with an empty transaction,
// which a quorum must take: sync alone is answered by such a leader.
package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"starling/journal"
)

const (
	// attemptMax bounds one operation, with all that is repeated within it: an election takes a second or two.
	attemptMax = 5 * time.Second
	// reachMax bounds how long Open tries to reach the ensemble if its context does not.
	reachMax = 10 * time.Second
	// sessionDefault is how long a session outlives its connection if no pulse says otherwise: the least that a server
	// grants unless it is told to.
	sessionDefault = 4 * time.Second
	// redialEvery is the wait after all servers were tried in vain.
	redialEvery = 100 * time.Millisecond
	// pauseMin and pauseMax bound the wait before something is asked again that was not answered.
	pauseMin = 20 * time.Millisecond
	pauseMax = time.Second
	// atOnceMax bounds the questions that wait for their answers at once.
	atOnceMax = 128
	// shardRecords is from how many records on a shard is sealed.
	shardRecords = 4096
)

// ErrRefused is what Open returns where waiting does not help: the ensemble has answered, and does not serve us so.
var ErrRefused = errors.New("the ensemble cannot be used so")

// errDamaged ends a Follow: no reading again can mend what the ensemble holds.
var errDamaged = errors.New("this is not the whole journal; was the ensemble restored from a backup, replaced, or written to by others? Bring back what it held, or begin a cluster from a backup: starling restore FILE")

// Config says how to reach an ensemble.
type Config struct {
	// Servers are all of them, "10.0.0.1:2181". Name all, to outlive any of them.
	Servers []string
	// Chroot is the node below which everything is kept, "/starling". It is made if it is not there.
	Chroot string
	// Auth is "user:password" for digest authentication; then what is made here is for this user alone.
	Auth string
	// TLS is for servers that want it.
	TLS *tls.Config
	// PulseTTL is the time to live that pulses will have. Open refuses an ensemble that cannot keep to it; 0 asks nothing.
	PulseTTL time.Duration
}

// Journal is a journal.Journal in ZooKeeper.
type Journal struct {
	config *Config
	where  string // the ensemble, for messages
	acl    []zk.ACL
	paths  paths

	ctx    context.Context // until Close
	cancel context.CancelFunc
	group  sync.WaitGroup // of sessions and of pulses owned here

	mu    sync.Mutex // guards what follows, and orders the begin of a goroutine and Close
	main  *session   // nil before the first
	shard shard      // the last one that is known

	shardRecords int
	checkEvery   time.Duration // how often a reader compares what it has read with what there is
}

var _ journal.Journal = (*Journal)(nil)

// Open returns a journal in the ensemble, once that has answered. It gives up when ctx ends, and after 10 seconds.
func Open(ctx context.Context, config Config) (*Journal, error) {
	j := &Journal{
		config: &config, where: "ZooKeeper at " + strings.Join(config.Servers, ",") + config.Chroot,
		acl: zk.WorldACL(zk.PermAll), paths: newPaths(config.Chroot), shardRecords: shardRecords, checkEvery: time.Second,
	}
	if config.Auth != "" {
		j.acl = zk.AuthACL(zk.PermAll)
	}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	ctx, cancel := context.WithTimeout(ctx, reachMax)
	defer cancel()
	if err := j.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal in %s: %w", j.where, remedied(err)), j.Close())
	}
	return j, nil
}

// prepare reaches the ensemble, and makes what a journal without records consists of.
func (j *Journal) prepare(ctx context.Context) error {
	if len(j.config.Servers) == 0 {
		return errors.New("no server is named")
	}
	s, err := j.session(ctx)
	if err != nil {
		return err
	}
	if j.config.PulseTTL > 0 {
		if err := keeps(s, j.config.PulseTTL); err != nil {
			return err
		}
	}
	for at := range j.paths.parents() {
		if err := j.makeParent(ctx, at); err != nil {
			return fmt.Errorf("create %s: %w", at, err)
		}
	}
	_, err = j.present(ctx)
	return err
}

// makeParent makes a node that may be there, in a place where nobody but its owner may make any.
func (j *Journal) makeParent(ctx context.Context, path string) error {
	exists, err := ask(ctx, j, func(c *zk.Conn) (bool, error) {
		exists, _, err := c.Exists(path)
		return exists, err
	})
	if err == nil && !exists {
		_, err = j.make(ctx, path)
	}
	return err
}

// session returns the session for everything but pulses, a new one if the last has ended.
func (j *Journal) session(ctx context.Context) (*session, error) {
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		s, err := j.mainSession()
		if err != nil {
			return nil, err
		}
		if err = s.ready(ctx); err == nil || ctx.Err() != nil {
			return s, err
		}
		if err := wait(ctx, pause); err != nil {
			return nil, err
		}
	}
}

func (j *Journal) mainSession() (*session, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ctx.Err() != nil {
		return nil, journal.ErrClosed
	}
	if j.main == nil || j.main.ctx.Err() != nil {
		asked := sessionDefault
		if j.config.PulseTTL > 0 {
			asked = sessionTimeout(j.config.PulseTTL)
		}
		s, err := newSession(context.Background(), j.config, asked, true)
		if err != nil {
			return nil, err
		}
		j.main = s
		j.group.Go(func() { s.tend(j.ctx.Done()) })
	}
	return j.main, nil
}

// ask asks the ensemble until it answers, whatever that is, or ctx ends. What is asked may so be done twice.
func ask[A any](ctx context.Context, j *Journal, question func(*zk.Conn) (A, error)) (A, error) {
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		s, err := j.session(ctx)
		if err != nil {
			var none A
			return none, err
		}
		got, err := answered(ctx, s, question)
		if err == nil || isAnswer(err) || ctx.Err() != nil {
			return got, err
		}
		if over := wait(ctx, pause); over != nil {
			return got, err
		}
	}
}

// isAnswer tells whether the ensemble has answered by err; else it is not known what has become of the question.
func isAnswer(err error) bool {
	for _, answer := range []error{
		zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNotEmpty, zk.ErrNoAuth, zk.ErrInvalidACL, zk.ErrInvalidPath,
		zk.ErrNoChildrenForEphemerals, zk.ErrBadArguments, zk.ErrAuthFailed, errDamaged,
		journal.ErrSealed, journal.ErrTrimmed,
	} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return isQuota(err)
}

// multi does all of it or nothing, and returns the answers.
func (j *Journal) multi(ctx context.Context, operations ...any) ([]zk.MultiResponse, error) {
	return ask(ctx, j, func(c *zk.Conn) ([]zk.MultiResponse, error) { return c.Multi(operations...) })
}

// create is an operation that creates a node.
func (j *Journal) create(path string, data []byte, flags int32) *zk.CreateRequest {
	return &zk.CreateRequest{Path: path, Data: data, Acl: j.acl, Flags: flags}
}

// current does what reads after everything that was acknowledged before. A quorum has taken part, so it was no deposed
// leader that answered; and it was one session, so no server that is behind.
func current[A any](ctx context.Context, j *Journal, read func(*zk.Conn) (A, error)) (A, error) {
	return ask(ctx, j, func(c *zk.Conn) (A, error) {
		if _, err := c.Multi(&zk.CheckVersionRequest{Path: j.paths.shards, Version: -1}); err != nil {
			var none A
			return none, err
		}
		return read(c)
	})
}

// synced is current for what may be late as long as an election takes.
func synced[A any](ctx context.Context, j *Journal, read func(*zk.Conn) (A, error)) (A, error) {
	return ask(ctx, j, func(c *zk.Conn) (A, error) {
		if _, err := c.Sync(j.paths.shards); err != nil {
			var none A
			return none, err
		}
		return read(c)
	})
}

// all asks many questions at once, and returns the answers in their order, with the first error.
func all[A any](ctx context.Context, j *Journal, n int, question func(*zk.Conn, int) (A, error)) ([]A, error) {
	return ask(ctx, j, func(c *zk.Conn) ([]A, error) {
		answers, errs := make([]A, n), make([]error, n)
		var asking sync.WaitGroup
		slots := make(chan struct{}, atOnceMax)
		for i := range n {
			slots <- struct{}{}
			asking.Go(func() {
				answers[i], errs[i] = question(c, i)
				<-slots
			})
		}
		asking.Wait()
		for _, err := range errs {
			if err != nil {
				return answers, err
			}
		}
		return answers, nil
	})
}

// Close implements journal.Journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	j.cancel()
	j.mu.Unlock()
	j.group.Wait()
	return nil
}

// during returns a context for one operation: it ends with ctx, with the journal, and after limit (0 means none).
func (j *Journal) during(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	var cancel context.CancelFunc
	if limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, limit)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	stop := context.AfterFunc(j.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// over returns why nothing can be done any more: the journal is closed, or the caller's context has ended.
func (j *Journal) over(ctx context.Context) error {
	if j.ctx.Err() != nil {
		return journal.ErrClosed
	}
	return ctx.Err()
}

// failed returns the error of an operation that the caller's ctx bounded.
func (j *Journal) failed(ctx context.Context, operation string, err error) error {
	if over := j.over(ctx); over != nil {
		return over
	}
	return fmt.Errorf("%s in %s: %w", operation, j.where, remedied(err))
}

// remedied adds what can be done about err where that is known.
func remedied(err error) error {
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("%w: %w; what is there is for another user: give the user and password with which it was made",
			ErrRefused, err)
	case isQuota(err):
		return fmt.Errorf("%w: a quota of its chroot, or of what is above that, is used up: zkCli.sh listquota tells which", err)
	case !isAnswer(err) && !errors.Is(err, ErrRefused):
		return fmt.Errorf("%w; are most of its servers running, and reachable from here?", err)
	}
	return err
}

// isQuota tells whether the ensemble has refused what exceeds a quota: with its code -125, which the library does not
// know.
func isQuota(err error) bool { return strings.HasSuffix(err.Error(), "unknown error: -125") }

// wait returns nil after some time, or ctx's error.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
