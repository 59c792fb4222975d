package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/specs"
	"github.com/espalier-dev/espalier/conformance/suite"
)

// module has the suites. The version is the one that conformance/go.mod requires.
const module = "sigs.k8s.io/controller-runtime"

// The servers that the suites are run with.
const (
	kubernetes = "kube-apiserver"
	envtest    = "espalier"     // in place of envtest's programs
	imported   = "espaliertest" // by the import that the suites change

	// inside follows the name of a server of ours whose tenant the suites are run with.
	inside = "-tenant"
)

// A side is a server that the suites are run with.
type side struct {
	name   string
	assets string // KUBEBUILDER_ASSETS, if programs are started
	source string // the module
	flags  []string
	work   string // folder for its programs
	suites string // folder for the suites, which may be shared
	took   time.Duration
	score  specs.Score // of all packages
}

// server is the server of a side, in whose tenant it may be.
func (s *side) server() string { return strings.TrimSuffix(s.name, inside) }

// reference is the side that a side is compared with: a tenant with its server, our server with kube-apiserver.
func (s *side) reference() string {
	if s.name != s.server() {
		return s.server()
	}
	return kubernetes
}

// newSide prepares a server: programs in a folder as envtest expects it, or a copy of the module that imports ours.
func newSide(ctx context.Context, dir, name string) (*side, error) {
	s := &side{name: name, work: filepath.Join(dir, name)}
	if err := os.Mkdir(s.work, 0o755); err != nil {
		return nil, err
	}
	use := "as-it-is"
	if s.server() == imported {
		use = "import-changed"
	}
	s.suites = filepath.Join(dir, use)
	if err := os.MkdirAll(s.suites, 0o755); err != nil {
		return nil, err
	}
	var err error
	if s.source, err = suite.CopyModule(ctx, module, use, os.Stderr); err != nil {
		return nil, err
	}
	switch s.server() {
	case kubernetes:
		err = s.link("etcd", "kube-apiserver", "kubectl")
	case envtest:
		err = s.install(ctx, dir)
	default:
		err = s.change()
	}
	if err == nil && *tenant != "" {
		err = s.admit()
	}
	return s, err
}

// link puts programs in the folder of assets.
func (s *side) link(programs ...string) error {
	s.assets = filepath.Join(s.work, "assets")
	if err := os.Mkdir(s.assets, 0o755); err != nil {
		return err
	}
	for _, name := range programs {
		path, err := launch.Tool(name)
		if err != nil {
			return err
		}
		if err := os.Symlink(path, filepath.Join(s.assets, name)); err != nil {
			return err
		}
	}
	return nil
}

// install has `espalier envtest` make the folder of assets.
func (s *side) install(ctx context.Context, dir string) error {
	binary, err := launch.Build(ctx, dir)
	if err != nil {
		return err
	}
	s.assets = filepath.Join(s.work, "assets")
	if out, err := exec.CommandContext(ctx, binary, "envtest", s.assets).CombinedOutput(); err != nil {
		return fmt.Errorf("espalier-server envtest: %w\n%s", err, out)
	}
	return nil
}

// imports is the line that docs/guides/envtest.md changes.
var imports = regexp.MustCompile(`(?m)^(\s*)"sigs\.k8s\.io/controller-runtime/pkg/envtest"$`)

// change makes the suites import our server, as docs/guides/envtest.md says.
func (s *side) change() error {
	modfile, err := suite.Replaced(module, s.source)
	if err != nil {
		return err
	}
	s.flags = []string{"-mod=mod", "-modfile=" + modfile}
	return filepath.WalkDir(filepath.Join(s.source, "pkg"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/pkg/envtest/") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || !imports.Match(data) {
			return err
		}
		return os.WriteFile(path, imports.ReplaceAll(data, []byte(`${1}envtest "github.com/espalier-dev/espalier/server/espaliertest"`)), 0o644)
	})
}

// run builds the suite of a package, runs it with the server, and stops the servers that the suite has left running.
func (s *side) run(ctx context.Context, name string) ([]specs.Spec, error) {
	one, err := s.build(ctx, name)
	if err != nil {
		return nil, err
	}
	if s.assets != "" {
		defer launch.StopPrograms(s.assets)
		one.Env = append(one.Env, "KUBEBUILDER_ASSETS="+s.assets)
	}
	if s.name != s.server() {
		one.Env = append(one.Env, "SUITE_TENANT="+*tenant)
	}
	began := time.Now()
	got, err := specs.Run(ctx, one, *limit, filepath.Join(*logs, fileName(name)+"-"+s.name+".log"))
	s.took += time.Since(began)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return got, nil
}

// build builds the suite of a package in the side's copy of the module, unless another side has.
func (s *side) build(ctx context.Context, name string) (specs.Suite, error) {
	one := specs.Suite{Name: name, Binary: filepath.Join(s.suites, fileName(name)+".test"), Dir: filepath.Join(s.source, "pkg", name)}
	if *focus != "" {
		one.Args = []string{"--ginkgo.focus=" + *focus}
	}
	if _, err := os.Stat(one.Binary); err == nil {
		return one, nil
	}
	fmt.Fprintf(os.Stderr, "%s: building the suite of %s\n", s.name, name)
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"test", "-c", "-vet=off", "-o", one.Binary}, s.flags...), module+"/pkg/"+name)...)
	cmd.Dir, cmd.Env = s.source, append(os.Environ(), "GOWORK=off")
	if s.server() == imported { // the go.mod is that of conformance
		root, err := launch.Root()
		if err != nil {
			return one, err
		}
		cmd.Dir = filepath.Join(root, "conformance")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return one, fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return one, nil
}

// fileName is the name of a package in names of files.
func fileName(name string) string { return strings.ReplaceAll(name, "/", "-") }
