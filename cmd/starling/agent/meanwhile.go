package agent

import (
	"context"
	"time"

	"starling/api"
	"starling/api/door"
	"starling/cmd/starling/host"
	"starling/cmd/starling/recorded"
	"starling/peer"
)

// answerMeanwhile has this machine answer what it knew when its last agent ended, if the journal does not answer in
// time, until the returned function is called.
func (a *agent) answerMeanwhile(ctx context.Context, config *host.Config) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-time.After(quorumDelay):
		case <-ctx.Done():
			return
		}
		opened := config.OpenArchive()
		if opened == nil {
			return
		}
		defer opened.Close()
		before, err := recorded.Meanwhile(ctx, opened, door.ErrWaits)
		if err != nil {
			a.log.Info("nothing is answered until the journal does", "error", err)
			return
		}
		defer before.Close()
		a.log.Info("until the journal answers, this machine tells what it knew", "index", before.Status().Index)
		users, _ := before.Registry()
		a.door.AnswerMeanwhile(api.NewServer(before, api.Options{Version: a.version, Rules: peer.RulesNewest, Log: a.log,
			Shows: a.keys.Shows}), users)
		<-ctx.Done()
		a.door.Rest()
	}()
	return func() {
		cancel()
		<-ended
	}
}
