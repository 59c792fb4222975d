package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/crd/manifest"
)

// crdMark is in every file with a CRD.
const crdMark = "CustomResourceDefinition"

var errNotInstalled = errors.New("is not installed, or not in PATH")

// output runs a program and returns what it prints. What it says on failure is the error.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("%s %w", name, errNotInstalled)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s", strings.Join(append([]string{name}, args...), " "), orError(strings.TrimSpace(said.String()), err))
	}
	return text, nil
}

func orError(text string, err error) string {
	if text != "" {
		return text
	}
	return err.Error()
}

// git runs git. A repository may come from anywhere: git must run no program of its
// configuration.
func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return output(ctx, dir, "git", append([]string{"-c", "core.fsmonitor=false"}, args...)...)
}

// atRevision reads the CRDs that files and folders had at a revision.
func atRevision(ctx context.Context, revision string, paths []string, values chartValues) ([]*manifest.File, error) {
	commit, err := git(ctx, "", "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return nil, fmt.Errorf("there is no revision %q in this repository", revision)
	}
	hash := strings.TrimSpace(string(commit))
	var files []*manifest.File
	for _, p := range paths {
		if isChart(p) {
			rendered, err := values.chartAt(ctx, hash, revision, p)
			if err != nil {
				return nil, err
			}
			files = append(files, rendered)
			continue
		}
		list, err := git(ctx, "", "grep", "-z", "-l", "-F", "--full-name", crdMark, hash, "--", filepath.ToSlash(p))
		if err != nil && len(list) == 0 {
			continue // git grep fails if nothing matches
		}
		for entry := range bytes.SplitSeq(list, []byte{0}) {
			_, name, found := strings.Cut(string(entry), ":")
			if !found || !manifest.IsManifest(name) {
				continue
			}
			text, err := git(ctx, "", "cat-file", "blob", hash+":"+name)
			if err != nil {
				return nil, err
			}
			files = append(files, &manifest.File{Name: revision + ":" + name, Text: text})
		}
	}
	return files, nil
}

// isChart reports whether a folder is a chart of Helm, or a file a packaged one.
func isChart(path string) bool {
	if strings.HasSuffix(path, ".tgz") {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "Chart.yaml"))
	return err == nil
}

// chartOptions are the values of charts.
type chartOptions struct {
	values []string // files
	set    []string
}

// flags adds those of helm for values.
func (o *chartOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&o.values, "values", nil, "file with values for charts, old and new; as of helm")
	cmd.Flags().StringArrayVar(&o.set, "set", nil, "value for charts, such as crds.enabled=true; as of helm")
	fileFlags(cmd, "values")
	Must(cmd.RegisterFlagCompletionFunc("set", cobra.NoFileCompletions))
}

// charts are the flags of helm for the values of charts.
func (o *chartOptions) charts() (flags chartValues) {
	for _, file := range o.values {
		flags = append(flags, "--values="+file)
	}
	for _, value := range o.set {
		flags = append(flags, "--set="+value)
	}
	return flags
}

// chartValues are the flags that say what the values of charts are.
type chartValues []string

// rendered is what a chart installs. Helm itself renders it. Errors call the chart by its name.
func (values chartValues) rendered(ctx context.Context, name, dir string) (*manifest.File, error) {
	text, err := output(ctx, "", "helm", append([]string{"template", "--include-crds", "release", dir}, values...)...)
	if err == nil {
		return &manifest.File{Name: name, Text: text}, nil
	}
	cause := strings.ReplaceAll(err.Error(), dir, name)
	todo := "correct the template, or give values that it needs with --values or --set"
	switch {
	case errors.Is(err, errNotInstalled):
		todo = "install Helm, see https://helm.sh/docs/intro/install, or compare files that 'helm template --include-crds' has written"
	case strings.Contains(cause, "missing in charts/ directory"):
		todo = "download the charts that it needs with 'helm dependency build'"
	}
	return nil, fmt.Errorf("render the chart %s: %s\nTo continue, %s", name, cause, todo)
}

// chartAt renders a chart as it was at a commit.
func (values chartValues) chartAt(ctx context.Context, hash, revision, path string) (*manifest.File, error) {
	if strings.HasSuffix(path, ".tgz") {
		return nil, fmt.Errorf("%s is a packaged chart, which --git cannot compare: name the folder of the chart", path)
	}
	packed, err := git(ctx, path, "archive", "--format=tar", hash, ".")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "espalier-chart-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := unpack(bytes.NewReader(packed), dir); err != nil {
		return nil, fmt.Errorf("unpack %s of %s: %w", path, revision, err)
	}
	return values.rendered(ctx, revision+":"+filepath.ToSlash(path), dir)
}

// unpack writes the files of an archive below a folder, and no links.
func unpack(archive io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch header.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(filepath.Clean(header.Name), 0o755)
		case tar.TypeReg:
			var text []byte
			if text, err = io.ReadAll(reader); err == nil {
				err = root.WriteFile(filepath.Clean(header.Name), text, 0o644)
			}
		}
		if err != nil {
			return err
		}
	}
}

// ofCluster reads the CRDs of a live cluster as kubectl gets them.
func ofCluster(ctx context.Context, from cluster.Source) ([]*manifest.File, error) {
	var files []*manifest.File
	err := cluster.Read(ctx, from, func(name string, text []byte) error {
		var pretty bytes.Buffer // places are lines
		if err := json.Indent(&pretty, text, "", "  "); err != nil {
			return err
		}
		files = append(files, &manifest.File{Name: fmt.Sprintf("<%s>:%s", from, name), Text: pretty.Bytes()})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w\nSee that kubectl can read them: kubectl get crds%s", err, kubectlFlags(from))
	}
	return files, nil
}

// kubectlFlags is how users name a cluster to kubectl.
func kubectlFlags(from cluster.Source) (flags string) {
	if from.Kubeconfig != "" {
		flags += " --kubeconfig " + from.Kubeconfig
	}
	if from.Context != "" {
		flags += " --context " + from.Context
	}
	return flags
}

// withCharts opens the files that paths name. Charts are rendered.
func (a *App) withCharts(ctx context.Context, paths []string, s *settings, values chartValues) ([]*manifest.File, error) {
	var files []*manifest.File
	for _, p := range paths {
		var more []*manifest.File
		var err error
		if isChart(p) {
			more = make([]*manifest.File, 1)
			more[0], err = values.rendered(ctx, filepath.ToSlash(p), p)
		} else {
			more, err = a.open(ctx, []string{p}, s)
		}
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// open reads the files that paths name.
func (a *App) open(ctx context.Context, paths []string, s *settings) ([]*manifest.File, error) {
	expanded, err := s.expand(ctx, paths)
	if err != nil {
		return nil, err
	}
	files := make([]*manifest.File, 0, len(expanded))
	for _, path := range expanded {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := manifest.Open(path, a.In)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// objects reads all objects of files into memory.
func (a *App) objects(ctx context.Context, paths []string, s *settings) ([]*manifest.Document, error) {
	files, err := a.open(ctx, paths, s)
	if err != nil {
		return nil, err
	}
	var all []*manifest.Document
	for _, f := range files {
		objects, err := manifest.Objects(f)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// crdsByName returns the CRDs in files, by name. What cannot be read is an error, because it
// is not what the command is about; templates are left out, with a note.
func (a *App) crdsByName(files []*manifest.File) (map[string]*manifest.Document, error) {
	byName := make(map[string]*manifest.Document)
	for _, f := range files {
		if !bytes.Contains(f.Text, []byte(crdMark)) {
			continue
		}
		list, err := manifest.Objects(f)
		if err != nil && bytes.Contains(f.Text, []byte("{{")) {
			fmt.Fprintf(a.Err, "%s is a template and is left out: name the folder of the chart to render it\n", f.Name)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, d := range list {
			meta := typeMetaOf(d)
			if !meta.isCRD() {
				continue
			}
			if before := byName[meta.name]; before != nil && !sameJSON(before.JSON, d.JSON) {
				return nil, fmt.Errorf("%s: %s is also in %s, and differs", d.File.Name, meta.object(), before.File.Name)
			}
			byName[meta.name] = d
		}
	}
	return byName, nil
}

// named returns the CRDs in the files that paths name. There must be one.
func (a *App) named(ctx context.Context, paths []string, s *settings, values chartValues) (map[string]*manifest.Document, error) {
	files, err := a.withCharts(ctx, paths, s, values)
	if err != nil {
		return nil, err
	}
	byName, err := a.crdsByName(files)
	if err == nil && len(byName) == 0 {
		err = fmt.Errorf("no CustomResourceDefinition in %s", strings.Join(paths, ", "))
	}
	return byName, err
}
