// Command bundle makes the files of the page out of their sources: go generate ./web. It is no part of the program.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	files, err := bundle(".")
	if err == nil {
		for name, text := range files {
			err = errors.Join(err, os.WriteFile(filepath.Join("page", name), text, 0o644))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

// bundle returns the files of the page by name, made of what lies in folder web.
func bundle(web string) (map[string][]byte, error) {
	absolute, err := filepath.Abs(web)
	if err != nil {
		return nil, err
	}
	vendored := func(name string) string { return filepath.Join(absolute, "vendor", name+".mjs") }
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: absolute,
		EntryPoints:   []string{"src/app.jsx", "src/app.css"},
		Outdir:        "page",
		Bundle:        true, Write: false, LogLevel: api.LogLevelSilent,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		Format: api.FormatESModule, Target: api.ES2022, Charset: api.CharsetUTF8,
		JSX: api.JSXAutomatic, JSXImportSource: "preact", LegalComments: api.LegalCommentsNone,
		Alias: map[string]string{
			"preact": vendored("preact"), "preact/hooks": vendored("hooks"), "preact/jsx-runtime": vendored("jsx-runtime"),
			"@preact/signals": vendored("signals"), "@preact/signals-core": vendored("signals-core"),
			"uplot": vendored("uplot"),
		},
	})
	if len(result.Errors) > 0 || len(result.Warnings) > 0 {
		return nil, errors.New(strings.Join(append(
			api.FormatMessages(result.Errors, api.FormatMessagesOptions{}),
			api.FormatMessages(result.Warnings, api.FormatMessagesOptions{Kind: api.WarningMessage})...), ""))
	}
	files := map[string][]byte{}
	for _, f := range result.OutputFiles {
		files[filepath.Base(f.Path)] = f.Contents
	}
	for _, name := range []string{"index.html", "icon.svg"} {
		if files[name], err = os.ReadFile(filepath.Join(web, "src", name)); err != nil {
			return nil, err
		}
	}
	return files, nil
}
