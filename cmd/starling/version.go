package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/structpb"

	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
)

// programVersion returns what the build knows of itself: the module's version, and the commit.
func programVersion() (version, commit string) {
	version, commit = "unknown", "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, commit
	}
	version = info.Main.Version
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			commit = setting.Value
		}
	}
	return version, commit
}

func newVersion(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  usage.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			version, commit := programVersion()
			fields := map[string]any{"version": version, "commit": commit, "go": runtime.Version(),
				"platform": runtime.GOOS + "/" + runtime.GOARCH}
			answer, err := structpb.NewStruct(fields)
			if err != nil {
				return err
			}
			return r.Show(answer, func() *console.Table {
				t := console.NewTable("starling", version)
				t.Row("commit", commit)
				t.Whole = true
				t.Row("built with", runtime.Version()+" for "+runtime.GOOS+"/"+runtime.GOARCH)
				return t
			})
		},
	}
}
