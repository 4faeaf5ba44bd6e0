package doctor

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/settings"
	"starling/cmd/starling/usage"
)

const (
	// bundleLogBytes is how much of the agent's log is looked at, from its end.
	bundleLogBytes = 4 << 20
	// bundleEntries is how many entries of the journal are told.
	bundleEntries = 1000
)

// Debug returns "starling debug". The version and the commit are those of this program.
func Debug(r *remote.Remote, version, commit string) *cobra.Command {
	file := ""
	command := &cobra.Command{
		Use:   "bundle [FILE]",
		Short: "Write what a bug report needs into a file, without secrets",
		Long: `Write a tar.gz for a bug report: what "starling doctor" finds, versions, settings, peers, quorum, metrics, and the newest
entries of the journal and lines of the agent's log. It takes the settings of "starling agent", and what does not answer is told in
errors.json.

Only what is on a list of harmless fields gets in: names and states, numbers and times. What jobs state never does, and neither do texts
that may quote them, attributes of machines, and the values of settings about other systems: of these it is only told that they are
set. Names of jobs and machines, and addresses, are in it. Look into it before you send it.`,
		Example: "  sudo starling debug bundle --config /etc/starling/agent.yaml",
		Args:    usage.AtMostOne("FILE"),
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			config, err := configured(command, r, file)
			if err != nil {
				return err
			}
			b := &bundle{version: version, commit: commit, config: config, files: map[string][]byte{},
				errors: map[string]string{}}
			b.collect(ctx, r)
			name := fmt.Sprintf("starling-debug-%s-%s.tar.gz", config.Node, time.Now().UTC().Format("20060102T150405Z"))
			return b.write(r, append(args, name)[0])
		},
	}
	command.Flags().StringVar(&file, "config", "", "read the agent's settings from a YAML `FILE`; also STARLING_CONFIG")
	settings.Declare(command)
	return usage.Group("debug", "Collect what a bug report needs", command)
}

// bundle is the content of the file.
type bundle struct {
	version, commit string
	config          *settings.Agent
	files           map[string][]byte
	// errors tells of each part that is missing why.
	errors map[string]string
}

// add adds a part of harmless fields.
func (b *bundle) add(name string, part any, err error) {
	if err == nil {
		b.files[name], err = json.MarshalIndent(part, "", "  ")
	}
	if err != nil {
		b.errors[name] = kindOf(err)
	}
}

// collect asks for all parts.
func (b *bundle) collect(ctx context.Context, r *remote.Remote) {
	b.add("version.json", map[string]string{"version": b.version, "commit": b.commit}, nil)
	b.add("settings.json", harmlessSettings(b.config), nil)
	var findings []map[string]string
	for _, f := range append(machine(b.config), cluster(ctx, r, b.config, b.version)...) {
		found, _, _ := strings.Cut(f.found, ": ") // behind it others may be quoted
		findings = append(findings, map[string]string{"grade": string(f.grade), "check": f.check, "found": found})
	}
	b.add("doctor.json", findings, nil)
	log, err := tailOf(cmp.Or(b.config.LogFile, b.config.Data+"/starling.log"), bundleLogBytes)
	if err == nil {
		b.files["log.jsonl"] = harmlessLog(log)
	} else {
		b.errors["log.jsonl"] = kindOf(err)
	}
	asked, err := r.Dial()
	if err != nil {
		b.errors["cluster"] = kindOf(err)
		return
	}
	defer asked.Close()
	b.ask(ctx, asked)
}

// ask adds what a peer tells.
func (b *bundle) ask(ctx context.Context, asked *client.Client) {
	peers, err := asked.AllPeers(ctx)
	b.add("peers.json", harmlessPeers(peers), err)
	quorum, err := asked.Quorum(ctx)
	b.add("quorum.json", harmlessQuorum(quorum), err)
	entries, err := harmlessJournal(ctx, asked)
	b.add("journal.json", entries, err)
	scraped, err := asked.Metrics(ctx)
	if err != nil {
		b.errors["metrics.txt"] = kindOf(err)
		return
	}
	b.files["metrics.txt"] = harmlessMetrics(scraped)
}

// write writes the file, which is not there yet and for its owner alone.
func (b *bundle) write(r *remote.Remote, path string) error {
	if len(b.errors) > 0 {
		b.add("errors.json", b.errors, nil)
	}
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(b.files)) {
		header := &tar.Header{Name: "starling-debug/" + name, Mode: 0o600, Size: int64(len(b.files[name])),
			ModTime: time.Now()}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := archive.Write(b.files[name]); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	if err := compressed.Close(); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if os.IsExist(err) {
		return exit.Fail(exit.Conflict, "%s exists already; nothing was written\nhint: name another FILE", path)
	}
	if err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	if _, err := out.Write(packed.Bytes()); err != nil {
		out.Close()
		return fmt.Errorf("write the bundle: %w", err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	fmt.Fprintln(r.Out, path)
	for part, reason := range b.errors {
		r.Hint("without %s: %s", part, reason)
	}
	return nil
}
