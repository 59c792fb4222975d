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

// make builds everything, one platform after the other.
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
	manuals, err := r.manuals(ctx, temporary, env)
	if err != nil {
		return err
	}
	for _, platform := range r.platforms {
		for _, program := range programs {
			begin := time.Now()
			name, size, err := r.pack(ctx, program, platform, temporary, manuals[program], env)
			if err != nil {
				return fmt.Errorf("%s for %s: %w", program, platform, err)
			}
			fmt.Fprintf(r.say, "%-15s  %-14s %6.1f MB  %5.1f MB packed  %4.0f s\n", program, platform, megabytes(size), megabytes(sizeOf(filepath.Join(r.out, name))), time.Since(begin).Seconds())
		}
	}
	return writeSums(r.out)
}

// clear removes what a former release has left.
func (r *release) clear() error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	former, err := filepath.Glob(filepath.Join(r.out, "espalier*_*"))
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

// pack builds and packs one program for one platform. It returns the name of the
// archive, and the size of the binary.
func (r *release) pack(ctx context.Context, program, platform, temporary string, manual []string, env []string) (string, int64, error) {
	system, machine, _ := strings.Cut(platform, "/")
	source := "./cmd/" + program
	base, archive, program := names(program, r.version, platform)
	binary := filepath.Join(temporary, base, program)
	if err := r.build(ctx, system, machine, source, binary, env); err != nil {
		return "", 0, err
	}
	bill, err := billOf(filepath.Base(source), binary, r.version, r.time)
	if err != nil {
		return "", 0, err
	}
	if err := os.WriteFile(filepath.Join(r.out, base+".cdx.json"), bill, 0o644); err != nil {
		return "", 0, err
	}
	entries := []entry{
		{name: base + "/LICENSE", path: filepath.Join(r.root, "LICENSE"), mode: 0o644},
		{name: base + "/README.md", path: filepath.Join(r.root, "README.md"), mode: 0o644},
		{name: base + "/" + program, path: binary, mode: 0o755},
	}
	write := tarball
	if system == "windows" {
		write, manual = zipped, nil // Windows has no man
	}
	for _, page := range manual {
		entries = append(entries, entry{name: base + "/man/man1/" + filepath.Base(page), path: page, mode: 0o644})
	}
	return archive, sizeOf(binary), write(filepath.Join(r.out, archive), entries, r.time)
}

// manuals lets each program write its manual pages, and returns their paths by program. It builds the programs for
// this machine, which may not be one of the platforms.
func (r *release) manuals(ctx context.Context, temporary string, env []string) (map[string][]string, error) {
	pages := map[string][]string{}
	for _, program := range programs {
		dir := filepath.Join(temporary, "man", program)
		binary := filepath.Join(temporary, "native", program)
		if err := r.build(ctx, runtime.GOOS, runtime.GOARCH, "./cmd/"+program, binary, env); err != nil {
			return nil, fmt.Errorf("%s for this machine: %w", program, err)
		}
		cmd := exec.CommandContext(ctx, binary, "man", dir)
		cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.time.Unix(), 10))
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s man: %w\n%s", program, err, out)
		}
		found, err := filepath.Glob(filepath.Join(dir, "*.1"))
		if err != nil || len(found) == 0 {
			return nil, errors.Join(fmt.Errorf("%s man writes no pages", program), err)
		}
		pages[program] = found
	}
	return pages, nil
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
