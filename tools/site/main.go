package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

func main() {
	root := flag.String("root", "../..", "the repository")
	out := flag.String("out", "../../.bin/site", "where the site is written")
	npm := flag.String("npm", "", "the folder where npm has put what package.json pins, which makes the index for search; without it, there is none")
	work := flag.String("work", "", "collect the pages in this folder, and keep them (default: a temporary folder)")
	flag.Parse()
	if err := build(context.Background(), *root, *out, *work, *npm); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// build writes the site.
func build(ctx context.Context, root, out, dir, npm string) error {
	begun := time.Now()
	if dir == "" {
		temporary, err := os.MkdirTemp("", "site-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temporary)
		dir = temporary
	}
	s := &site{root: root, content: filepath.Join(dir, "content"), static: filepath.Join(dir, "static"), programs: filepath.Join(dir, "bin")}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"copy the pages", s.copyPages},
		{"build the programs", s.buildPrograms},
		{"describe the commands", s.commands},
		{"describe the settings", s.settings},
		{"describe the metrics", s.metrics},
		{"describe the Go packages", s.packages},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := run(ctx, ".", "go", "tool", "hugo", "--quiet", "--panicOnWarning", "--contentDir", s.content, "--destination", out); err != nil {
		return fmt.Errorf("run Hugo: %w", err)
	}
	if err := os.CopyFS(out, os.DirFS(s.static)); err != nil {
		return fmt.Errorf("copy the pictures: %w", err)
	}
	if npm != "" {
		if err := run(ctx, npm, "npx", "pagefind", "--silent", "--site", out); err != nil {
			return fmt.Errorf("make the index: %w", err)
		}
	}
	fmt.Printf("site: %d pages in %s, %.1f s\n", s.pages, out, time.Since(begun).Seconds())
	return nil
}

// run runs a program in a folder; what it prints is seen.
func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	return cmd.Run()
}
