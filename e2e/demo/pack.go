package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// packPart is the program of the batch job: it packs every INSTANCESth package, beginning with its own number, and
// writes the checksums into one file.
func packPart(ctx context.Context) error {
	index, err1 := strconv.Atoi(os.Getenv("STARLING_INDEX"))
	instances, err2 := strconv.Atoi(os.Getenv("STARLING_INSTANCES"))
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("which part is mine: %w", err)
	}
	source, result := os.Getenv("SOURCE"), os.Getenv("RESULT")
	packages, err := packagesOf(source)
	if err != nil {
		return err
	}
	text := strings.Builder{}
	for i := index; i < len(packages); i += instances {
		sum, err := pack(source, packages[i])
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s %s\n", sum, packages[i])
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	// A part is there whole or not at all, whenever its writer is killed.
	part := filepath.Join(result, fmt.Sprintf("part-%02d", index))
	fresh := fmt.Sprintf("%s.%s.new", part, os.Getenv("STARLING_NODE"))
	if err := os.WriteFile(fresh, []byte(text.String()), 0o644); err != nil {
		return err
	}
	fmt.Printf("packed %d packages on %s\n", strings.Count(text.String(), "\n"), os.Getenv("STARLING_NODE"))
	return os.Rename(fresh, part)
}

// packagesOf lists the folders of the standard library that hold Go files, in order.
func packagesOf(source string) ([]string, error) {
	var packages []string
	err := filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || path == filepath.Join(source, "cmd")) {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".go" {
			folder, err := filepath.Rel(source, filepath.Dir(path))
			if err != nil {
				return err
			}
			if len(packages) == 0 || packages[len(packages)-1] != folder {
				packages = append(packages, folder)
			}
		}
		return nil
	})
	slices.Sort(packages)
	return slices.Compact(packages), err
}

// pack puts the files of a package into a compressed archive and returns its checksum.
func pack(source, name string) (string, error) {
	entries, err := os.ReadDir(filepath.Join(source, name))
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	compressed, err := gzip.NewWriterLevel(sum, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	archive := tar.NewWriter(compressed)
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(source, name, entry.Name()))
		if err != nil {
			return "", err
		}
		header := &tar.Header{Name: filepath.Join(name, entry.Name()), Mode: 0o644, Size: int64(len(data))}
		if err := archive.WriteHeader(header); err != nil {
			return "", err
		}
		if _, err := archive.Write(data); err != nil {
			return "", err
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		return "", fmt.Errorf("pack %s: %w", name, err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// packPlainly packs all packages one after another: what the batch job must come to.
func packPlainly(ctx context.Context, source string) (map[string]string, error) {
	packages, err := packagesOf(source)
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, name := range packages {
		if sums[name], err = pack(source, name); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return sums, nil
}

// readParts reads what the instances of the batch job wrote, and refuses a package that was packed twice.
func readParts(result string, parts int) (map[string]string, error) {
	sums := map[string]string{}
	for i := range parts {
		file, err := os.Open(filepath.Join(result, fmt.Sprintf("part-%02d", i)))
		if err != nil {
			return nil, fmt.Errorf("instance %d is done and its part is missing: %w", i, err)
		}
		defer file.Close()
		for lines := bufio.NewScanner(io.LimitReader(file, 1<<20)); lines.Scan(); {
			sum, name, _ := strings.Cut(lines.Text(), " ")
			if sums[name] != "" {
				return nil, fmt.Errorf("package %s is in two parts", name)
			}
			sums[name] = sum
		}
	}
	return sums, nil
}
