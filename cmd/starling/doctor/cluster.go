package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/api/words"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/settings"
	"starling/peer"
)

// cluster looks at the cluster through a peer, if one answers.
func cluster(ctx context.Context, r *remote.Remote, config *settings.Agent, version string) []finding {
	asked, err := r.Dial()
	if err != nil {
		return []finding{{weak, "cluster", err.Error(), ""}}
	}
	info, err := asked.Info(ctx)
	switch {
	case err != nil && answers(config.Address):
		return []finding{{wrong, "peer", err.Error(), "the agent's log tells more: " + config.Data + "/starling.log"}}
	case err != nil:
		return []finding{{weak, "peer", "none answers: " + err.Error(), "start the agent of this machine"}}
	}
	all := append([]finding{aboutPeer(info)}, aboutVersion(info, version)...)
	for _, warning := range info.GetWarnings() {
		all = append(all, finding{weak, "peer", warning, ""})
	}
	all = append(all, aboutQuorum(ctx, asked)...)
	return append(all, drift(ctx, asked)...)
}

func aboutPeer(info *starlingv1.InfoResponse) finding {
	found := fmt.Sprintf("%s is a %s, at entry %d", info.GetPeer(), info.GetPhase(), info.GetIndex())
	if info.GetPhase() != "member" {
		return finding{wrong, "peer", strings.Replace(found, "a member", info.GetPhase(), 1), "its log tells why"}
	}
	return finding{fine, "peer", found, ""}
}

// aboutVersion compares this program with the peer's, and both with the rules.
func aboutVersion(info *starlingv1.InfoResponse, version string) (all []finding) {
	found := fmt.Sprintf("this program is %s, the peer's is %s; version %d of the rules is in force", version,
		info.GetVersion(), info.GetRules())
	newest := uint32(peer.RulesNewest)
	if info.GetRules() > newest {
		return []finding{{wrong, "version", fmt.Sprintf("%s, and this program knows up to %d", found, newest),
			"take a newer program"}}
	}
	if info.GetVersion() != version {
		all = append(all, finding{weak, "version", found, "restart the agent when its program was replaced: its tasks go on"})
	}
	if info.GetRules() < newest {
		all = append(all, finding{weak, "rules", fmt.Sprintf("version %d of the rules is in force, and this program knows up to %d",
			info.GetRules(), newest), "when the programs of all members know more, see starling rules: starling rules raise"})
	}
	if len(all) == 0 {
		all = []finding{{fine, "version", found, ""}}
	}
	return all
}

// aboutQuorum looks who keeps the journal, and whether that answers.
func aboutQuorum(ctx context.Context, asked *client.Client) []finding {
	answer, err := asked.Quorum(ctx)
	if since := asked.SilentSince(); !since.IsZero() {
		silent := time.Since(since).Round(time.Second)
		help := "bring back most of the nodes that keep it: starling quorum ls; if they are lost: starling recover --help"
		var other *wire.Failure
		if errors.As(err, &other) && other.Code == wire.Conflict { // the machines have no part in it
			help = "bring back most of the servers of the etcd or ZooKeeper that keeps it, and look whether they have room"
		}
		return []finding{{wrong, "quorum", fmt.Sprintf("the journal has not answered for %s", silent), help}}
	}
	if err != nil {
		return []finding{{fine, "quorum", err.Error(), ""}} // another engine keeps the journal
	}
	if answer.GetProblem() != "" {
		return []finding{{wrong, "quorum", answer.GetProblem(), "starling quorum ls shows who keeps the journal"}}
	}
	voters, away, all := 0, 0, []finding(nil)
	for _, member := range answer.GetMembers() {
		switch member.GetState() {
		case "leader", "voter":
			voters++
		case "away":
			away++
			all = append(all, finding{weak, "quorum", member.GetNode() + " is away", "bring it back; after etcd.away another takes its place"})
		}
		if quota := member.GetQuotaBytes(); quota > 0 && member.GetUsedBytes() > quota/10*8 {
			all = append(all, finding{wrong, "quorum", fmt.Sprintf("the file of %s is %d %% full", member.GetNode(),
				member.GetUsedBytes()*100/quota), "stop jobs that are not needed, or raise etcd.quota"})
		}
	}
	if voters+away < 3 {
		return append(all, finding{weak, "quorum", words.Counted(voters, "machine") + " with a vote: the loss of one is an outage",
			"three machines with etcd.listen survive the loss of one; " + answer.GetNext()})
	}
	return append(all, finding{fine, "quorum", words.Counted(voters, "machine") + " with a vote", ""})
}

// drift looks whether all peers have the same value, live, and are taken.
func drift(ctx context.Context, asked *client.Client) (all []finding) {
	answer, err := asked.AllPeers(ctx)
	if err != nil {
		return []finding{unknown("peers", err)}
	}
	if !asked.SilentSince().IsZero() {
		return []finding{{weak, "peers", "not known while the journal does not answer", ""}}
	}
	members := 0
	for _, p := range answer.GetPeers() {
		if p.GetState() != "member" {
			continue
		}
		members++
		switch {
		case p.GetDetail() != "":
			all = append(all, finding{wrong, "peers", p.GetPeer() + ": " + p.GetDetail(), "correct its settings and restart its agent"})
		case p.DigestAgrees != nil && !p.GetDigestAgrees():
			all = append(all, finding{wrong, "peers", p.GetPeer() + " has another value than this peer",
				"the one that is wrong rebuilds itself; if it does not, report it with starling journal export"})
		case !p.GetAlive():
			all = append(all, finding{weak, "peers", p.GetPeer() + " gives no sign of life", "look at its machine"})
		}
	}
	if len(all) == 0 {
		all = append(all, finding{fine, "peers", words.Counted(members, "member") + ", all with the same value", ""})
	}
	return all
}
