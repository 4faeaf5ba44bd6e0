package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cmd/starling/settings"
	"starling/terms"
)

// What follows takes the fields that are on its lists, and nothing else: a new field is left out until it is listed.

// harmlessSettings tells the settings that are about this machine alone, and of others only whether they are there.
func harmlessSettings(c *settings.Agent) map[string]any {
	return map[string]any{
		"node": c.Node, "data": c.Data, "address": c.Address, "advertise": c.Advertise, "dns": c.DNS, "join": len(c.Join),
		"etcd.listen": c.Etcd.Listen, "etcd.peer": c.Etcd.Peer, "etcd.away": c.Etcd.AwayMax.String(),
		"etcd.spread": c.Etcd.Spread, "etcd.quota": c.Etcd.QuotaBytes, "etcd.endpoints": len(c.Etcd.Endpoints),
		"etcd.user is set": c.Etcd.User != "", "etcd.cert is set": c.Etcd.Certificates.CertFile != "",
		"zookeeper.servers": len(c.ZooKeeper.Servers), "backup.to is set": c.Backup.To != "",
		"oidc.issuer is set": c.OIDC.Issuer != "",
		"backup.every":       c.BackupEvery.String(), "backup.keep": c.BackupKeep, "secret_file is set": c.SecretFile != "",
		"pulse_ttl": c.Pulse.String(), "capacity.cpu": c.Capacity[terms.CPU], "capacity.memory": c.Capacity[terms.Memory],
		"capacity.disk": c.Capacity[terms.Disk], "attributes": len(c.Attributes), "devices": len(c.Devices),
		"confine": !c.Free, "ports": fmt.Sprintf("%d-%d", c.PortFirst, c.PortLast),
		"archive.bytes": c.ArchiveBytes, "archive.age": c.ArchiveAge.String(), "archive.to is set": c.ArchiveTo != "",
		"keep_images": c.KeepImages.String(),
		"log.level":   c.LogLevel.String(),
	}
}

func harmlessPeers(answer *starlingv1.ListPeersResponse) (all []map[string]any) {
	for _, p := range answer.GetPeers() {
		all = append(all, map[string]any{"node": p.GetNode(), "peer": p.GetPeer(), "state": p.GetState(),
			"watches": p.GetWatches(), "allocations": p.GetAllocations(), "address": p.GetAddress(), "alive": p.GetAlive(),
			"index": p.GetJournalIndex(), "lag": p.GetLag(), "digest": p.GetDigest(), "digest_agrees": p.DigestAgrees,
			"draining": p.GetDraining()})
	}
	return all
}

func harmlessQuorum(answer *starlingv1.QuorumResponse) (all []map[string]any) {
	for _, m := range answer.GetMembers() {
		all = append(all, map[string]any{"node": m.GetNode(), "id": m.GetId(), "state": m.GetState(),
			"away_since": m.GetAwaySince().AsTime(), "away": m.GetAwaySince() != nil, "file_bytes": m.GetFileBytes(),
			"used_bytes": m.GetUsedBytes(), "quota_bytes": m.GetQuotaBytes()})
	}
	return all
}

// harmlessJournal tells the newest entries without their words, which may quote what jobs state.
func harmlessJournal(ctx context.Context, asked *client.Client) (all []map[string]any, err error) {
	err = asked.TailJournal(ctx, &starlingv1.TailJournalRequest{Last: bundleEntries},
		func(answer *starlingv1.TailJournalResponse) error {
			if answer.GetEntry() != nil {
				all = append(all, harmlessEntry(answer.GetEntry()))
			}
			return nil
		})
	return all, err
}

func harmlessEntry(e *starlingv1.JournalEntry) map[string]any {
	var commands, effects []map[string]string
	for _, c := range e.GetCommands() {
		commands = append(commands, map[string]string{"kind": c.GetKind(), "job": c.GetJob(),
			"refusal_code": c.GetRefusalCode()})
	}
	for _, f := range e.GetEffects() {
		effects = append(effects, map[string]string{"kind": f.GetKind(), "job": f.GetJob(), "allocation": f.GetAllocation(),
			"node": f.GetNode(), "peer": f.GetPeer()})
	}
	return map[string]any{"index": e.GetIndex(), "time": e.GetTime().AsTime(), "writer": e.GetWriter(), "seq": e.GetSeq(),
		"cause": e.GetCause(), "dropped": e.GetDropped() != "", "commands": commands, "effects": effects,
		"digest": e.GetDigest(), "bytes": e.GetBytes()}
}

// logFields are those of the agent's log that name machines and peers, or count.
var logFields = []string{"time", "level", "entry", "node", "peer", "version", "starts", "phase", "index", "term"}

// harmlessLog takes of each line the fields above and its message, without what stands behind a colon: that may quote
// what jobs and other systems say. A line that is not of the agent, as of a crash, is left out.
func harmlessLog(text []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		fields := map[string]any{}
		if json.Unmarshal(line, &fields) != nil {
			continue
		}
		kept := map[string]any{}
		for _, name := range logFields {
			if value, found := fields[name]; found {
				kept[name] = value
			}
		}
		message, _ := fields["msg"].(string)
		kept["msg"], _, _ = strings.Cut(message, ": ")
		if line, err := json.Marshal(kept); err == nil {
			out.Write(append(line, '\n'))
		}
	}
	return out.Bytes()
}

// metricLine matches a metric of Starling or of Go, and what is said of it.
var metricLine = regexp.MustCompile(`(?m)^(?:# (?:HELP|TYPE) )?(?:starling|go|process)_.*$`)

func harmlessMetrics(text []byte) []byte {
	return bytes.Join(metricLine.FindAll(text, -1), []byte("\n"))
}

// tailOf returns the last bytes of a file, from the beginning of a line.
func tailOf(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(max(0, size-most), io.SeekStart); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(file)
	if size > most {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text, err
}

// kindOf tells what kind an error is, and not its words.
func kindOf(err error) string {
	var answered *wire.Failure
	switch {
	case errors.As(err, &answered):
		return string(answered.Code)
	case errors.Is(err, fs.ErrNotExist):
		return "not there"
	case errors.Is(err, fs.ErrPermission):
		return "not allowed"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	}
	return fmt.Sprintf("an error of type %T", err)
}
