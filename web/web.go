// Package web is the page: what a browser is shown of a cluster, and the small server on the user's own machine that
// shows it.
//
// The server listens at the loopback address only. Its files are public and come from the program; whatever a browser
// asks of the cluster is passed on to a peer, in the name of who runs the program, if the browser was signed in by a
// link that counts once (see Page). What may be passed on is listed in forward.go; what would come of a file is planned
// here, as the command line plans it. The files in folder page are made of those in src and vendor by
// `go generate ./web`, and committed.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:generate go run ./bundle

//go:embed page
var bundled embed.FS

// policy lets a page load what comes from this server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file is one file of the page, as it is sent.
type file struct {
	kind, tag     string
	plain, zipped []byte
}

// kinds are the media types by the ends of names.
var kinds = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// files answers what the page consists of.
type files map[string]*file

func readFiles() (files, error) {
	all := files{}
	err := fs.WalkDir(bundled, "page", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := bundled.ReadFile(name)
		if err != nil {
			return err
		}
		kind, known := kinds[path.Ext(name)]
		if !known {
			return fmt.Errorf("%s: no media type is known for it", name)
		}
		sum := sha256.Sum256(text)
		zipped := bytes.Buffer{}
		w := gzip.NewWriter(&zipped)
		if _, err := w.Write(text); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		all["/"+strings.TrimPrefix(name, "page/")] = &file{kind: kind, tag: `"` + hex.EncodeToString(sum[:16]) + `"`,
			plain: text, zipped: zipped.Bytes()}
		return nil
	})
	if err == nil {
		all["/"] = all["/index.html"]
	}
	return all, err
}

// ServeHTTP implements http.Handler.
func (all files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := all[r.URL.Path]
	switch {
	case f == nil:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	header := w.Header()
	header.Set("Content-Type", f.kind)
	header.Set("Cache-Control", "no-cache") // the browser keeps it, and asks each time whether it is still that
	header.Set("ETag", f.tag)
	header.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	text := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		text = f.zipped
		header.Set("Content-Encoding", "gzip")
	}
	_, _ = w.Write(text) // it fails only if who asked has gone
}

// secured sets what a browser is told of how to treat all that comes from here.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}
