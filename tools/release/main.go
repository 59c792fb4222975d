package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// platforms are what is published.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// programs are published one by one: most people need only the first, which is a third
// of the second's size.
var programs = []string{"espalier", "espalier-server"}

// release is what is built, and of what.
type release struct {
	source
	out       string // folder for what is published
	platforms []string
	say       io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, say io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	root := flags.String("root", ".", "the repository")
	version := flags.String("version", "", "of the release (default: what git describe says)")
	out := flags.String("out", filepath.Join(".bin", "release"), "folder for what is built, below the repository unless it is absolute")
	only := flags.String("platforms", strings.Join(platforms, ","), "what to build for")
	dirty := flags.Bool("dirty", false, "build uncommitted changes, too; the version says so")
	twice := flags.Bool("twice", false, "build it again, from a clone and with an empty build cache, and fail if a byte differs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	source, err := describe(ctx, *root, *version, *dirty)
	if err != nil {
		return err
	}
	r := &release{source: source, out: *out, platforms: strings.Split(*only, ","), say: say}
	if !filepath.IsAbs(r.out) {
		r.out = filepath.Join(r.root, r.out)
	}
	if err := r.make(ctx, nil); err != nil {
		return err
	}
	if *twice {
		return r.again(ctx)
	}
	return nil
}

// built is a program for a platform.
type built struct {
	program, platform string
	base, archive     string // the folder in the archive, and its file
	binary            string // a path
	extras
}

// extras are what a program writes about itself: manual pages, and what shells complete by the name of the shell.
type extras struct {
	manual      []string
	completions map[string]string
}

// make builds everything, one platform after the other, and then what is made of all of them.
func (r *release) make(ctx context.Context, env []string) error {
	if unknown := slices.DeleteFunc(slices.Clone(r.platforms), func(p string) bool { return slices.Contains(platforms, p) }); len(unknown) > 0 {
		return fmt.Errorf("%s: there is no such platform; there are %s", strings.Join(unknown, ", "), strings.Join(platforms, ", "))
	}
	if err := r.clear(); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	extras, err := r.extras(ctx, temporary, env)
	if err != nil {
		return err
	}
	var all []built
	for _, platform := range r.platforms {
		for _, program := range programs {
			begin := time.Now()
			b := built{program: program, platform: platform, extras: extras[program]}
			var name string
			b.base, b.archive, name = names(program, r.version, platform)
			b.binary = filepath.Join(temporary, b.base, name)
			if err := r.pack(ctx, b, env); err != nil {
				return fmt.Errorf("%s for %s: %w", program, platform, err)
			}
			fmt.Fprintf(r.say, "%-15s  %-14s %6.1f MB  %5.1f MB packed  %4.0f s\n", program, platform, megabytes(sizeOf(b.binary)), megabytes(sizeOf(filepath.Join(r.out, b.archive))), time.Since(begin).Seconds())
			all = append(all, b)
		}
	}
	begin := time.Now()
	if err := errors.Join(r.packages(all, temporary), r.image(all, temporary), r.manifests(all)); err != nil {
		return err
	}
	if err := r.provenance(all); err != nil {
		return err
	}
	fmt.Fprintf(r.say, "packages, image, manifests and provenance  %4.0f s\n", time.Since(begin).Seconds())
	return writeSums(r.out)
}

// clear removes what a former release has left.
func (r *release) clear() error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	former, err := published(r.out)
	if err != nil {
		return err
	}
	for _, path := range append(former, filepath.Join(r.out, sumsFile)) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// pack builds and packs one program for one platform.
func (r *release) pack(ctx context.Context, b built, env []string) error {
	system, machine, _ := strings.Cut(b.platform, "/")
	if err := r.build(ctx, system, machine, "./cmd/"+b.program, b.binary, env); err != nil {
		return err
	}
	bill, err := billOf(b.program, b.binary, r.version, r.time)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, b.base+".cdx.json"), bill, 0o644); err != nil {
		return err
	}
	entries := []entry{
		{name: b.base + "/LICENSE", path: filepath.Join(r.root, "LICENSE"), mode: 0o644},
		{name: b.base + "/README.md", path: filepath.Join(r.root, "README.md"), mode: 0o644},
		{name: b.base + "/" + filepath.Base(b.binary), path: b.binary, mode: 0o755},
	}
	if system == "windows" { // which has no man
		return zipped(filepath.Join(r.out, b.archive), entries, r.time)
	}
	for _, page := range b.manual {
		entries = append(entries, entry{name: b.base + "/man/man1/" + filepath.Base(page), path: page, mode: 0o644})
	}
	return tarball(filepath.Join(r.out, b.archive), entries, r.time)
}

// extras lets each program write its manual pages and completions, and returns them by program. It builds the programs
// for this machine, which may not be one of the platforms.
func (r *release) extras(ctx context.Context, temporary string, env []string) (map[string]extras, error) {
	all := map[string]extras{}
	for _, program := range programs {
		dir := filepath.Join(temporary, "man", program)
		binary := filepath.Join(temporary, "native", program)
		if err := r.build(ctx, runtime.GOOS, runtime.GOARCH, "./cmd/"+program, binary, env); err != nil {
			return nil, fmt.Errorf("%s for this machine: %w", program, err)
		}
		if _, err := r.ask(ctx, binary, "man", dir); err != nil {
			return nil, err
		}
		found, err := filepath.Glob(filepath.Join(dir, "*.1"))
		if err != nil || len(found) == 0 {
			return nil, errors.Join(fmt.Errorf("%s man writes no pages", program), err)
		}
		e := extras{manual: found, completions: map[string]string{}}
		for _, shell := range []string{"bash", "zsh", "fish"} {
			text, err := r.ask(ctx, binary, "completion", shell)
			if err != nil {
				return nil, err
			}
			e.completions[shell] = filepath.Join(dir, shell)
			if err := os.WriteFile(e.completions[shell], text, 0o644); err != nil {
				return nil, err
			}
		}
		all[program] = e
	}
	return all, nil
}

// ask runs a program that was built, and returns what it prints.
func (r *release) ask(ctx context.Context, binary string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.time.Unix(), 10))
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(binary), strings.Join(args, " "), err, out)
	}
	return out, nil
}

// names are those of the folder in the archive, of the archive, and of the program. action/install.sh knows them, too.
func names(program, version, platform string) (base, archive, binary string) {
	system, machine, _ := strings.Cut(platform, "/")
	base = fmt.Sprintf("%s_%s_%s_%s", program, strings.TrimPrefix(version, "v"), system, machine)
	if system == "windows" {
		return base, base + ".zip", program + ".exe"
	}
	return base, base + ".tar.gz", program
}

// build compiles the program. Nothing of the builder's own settings counts but the
// caches and the proxy.
func (r *release) build(ctx context.Context, system, machine, source, binary string, env []string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-mod=readonly",
		"-ldflags=-s -w -X github.com/espalier-dev/espalier/cmd/internal/cli.release="+r.version, "-o", binary, source)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+machine, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK="+filepath.Join(r.root, "go.work"), "GOEXPERIMENT=", "GOFIPS140=off",
		"GOAMD64=v1", "GOARM64=v8.0", "GODEBUG=")
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// again builds the same commit elsewhere and from nothing, and compares.
func (r *release) again(ctx context.Context) error {
	if r.modified {
		return errors.New("-twice compares builds of a commit, and the work tree has uncommitted changes; commit them")
	}
	dir, err := os.MkdirTemp("", "release-again-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	clone := filepath.Join(dir, "clone")
	if _, err := git(ctx, r.root, "clone", "--quiet", "--no-hardlinks", ".", clone); err != nil {
		return err
	}
	if _, err := git(ctx, clone, "checkout", "--quiet", "--detach", r.commit); err != nil {
		return err
	}
	second := *r
	second.root, second.out = clone, filepath.Join(dir, "out")
	if err := second.make(ctx, []string{"GOCACHE=" + filepath.Join(dir, "cache")}); err != nil {
		return err
	}
	before, err := os.ReadFile(filepath.Join(r.out, sumsFile))
	if err != nil {
		return err
	}
	after, err := os.ReadFile(filepath.Join(second.out, sumsFile))
	if err != nil {
		return err
	}
	if string(before) != string(after) {
		return fmt.Errorf("built twice, it is not the same:\n%s\nand\n%s", before, after)
	}
	fmt.Fprintln(r.say, "built twice, every byte is the same")
	return nil
}

func megabytes(n int64) float64 { return float64(n) / 1e6 }

// sizeOf is for telling it: what cannot be read has none.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
