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
		EntryPoints:   []string{"src/app.jsx", "src/app.css", "src/terminal.js", "src/terminal.css"},
		Splitting:     true, // what is imported later is a file of its own
		Outdir:        "page",
		Bundle:        true, Write: false, LogLevel: api.LogLevelSilent,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		Format: api.FormatESModule, Target: api.ES2022, Charset: api.CharsetUTF8,
		JSX: api.JSXAutomatic, JSXImportSource: "preact", LegalComments: api.LegalCommentsNone,
		Plugins: []api.Plugin{{Name: "styles", Setup: func(build api.PluginBuild) {
			build.OnLoad(api.OnLoadOptions{Filter: `/vendor/xterm\.mjs$`}, unstyled)
		}}},
		Alias: map[string]string{
			"preact": vendored("preact"), "preact/hooks": vendored("hooks"), "preact/jsx-runtime": vendored("jsx-runtime"),
			"@preact/signals": vendored("signals"), "@preact/signals-core": vendored("signals-core"),
			"uplot": vendored("uplot"), "@xterm/xterm": vendored("xterm"), "@xterm/addon-fit": vendored("xterm-fit"),
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

// styles are where xterm.js writes styles as markup, and what is written instead: the content policy of the page lets
// scripts set styles, and lets nothing else have one.
var styles = []struct {
	is, becomes string
	times       int
}{
	{`n.mainDocument.createElement("style")`, `styleOf()`, 1},
	{`this._document.createElement("style")`, `styleOf()`, 2},
	{`t.setAttribute("style",`, `t.style.cssText=(`, 1},
}

// unstyled reads xterm.js so that it writes none.
func unstyled(file api.OnLoadArgs) (api.OnLoadResult, error) {
	data, err := os.ReadFile(file.Path)
	if err != nil {
		return api.OnLoadResult{}, err
	}
	text := string(data)
	for _, s := range styles {
		if n := strings.Count(text, s.is); n != s.times {
			return api.OnLoadResult{}, fmt.Errorf("%s has %s %d times, not %d: this is another version", file.Path, s.is, n, s.times)
		}
		text = strings.ReplaceAll(text, s.is, s.becomes)
	}
	text = "import {styleOf} from '../src/sheet.js';" + text
	return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, nil
}
