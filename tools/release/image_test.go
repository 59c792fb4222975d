package main

import (
	"archive/tar"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// unpackLayout unpacks the image's file, and returns its index of platforms.
func unpackLayout(t *testing.T) v1.ImageIndex {
	t.Helper()
	dir, version := releaseOf(t)
	target := t.TempDir()
	unpackTar(t, strings.NewReader(read(t, filepath.Join(dir, "espalier_"+version+"_image.tar"))), target)
	outer, err := layout.ImageIndexFromPath(target)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != strings.ReplaceAll(version, "+", "-") {
		t.Fatalf("the layout has %+v: %v", manifest, err)
	}
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func unpackTar(t *testing.T, r io.Reader, dir string) {
	t.Helper()
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(header.Name))
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var data []byte
			if data, err = io.ReadAll(archive); err == nil {
				err = os.WriteFile(path, data, fs.FileMode(header.Mode).Perm())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, header.FileInfo().Mode()&(fs.ModePerm|fs.ModeSticky)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReleaseImage unpacks the layers for this machine and runs what the image runs, as its user and with nothing
// but what is in the image.
func TestReleaseImage(t *testing.T) {
	index := unpackLayout(t)
	if err := validate.Index(index); err != nil { // all digests and sizes
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(manifest.Manifests, func(d v1.Descriptor) bool {
		return d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH
	})
	if i < 0 {
		t.Skip("the release was not built for this machine")
	}
	image, err := index.Image(manifest.Manifests[i].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != runtime.GOARCH || config.OS != "linux" || len(config.History) != 3 {
		t.Errorf("%+v", config)
	}
	root := t.TempDir()
	layers, err := image.Layers()
	if err != nil || len(layers) != 3 {
		t.Fatal(len(layers), err)
	}
	for _, layer := range layers {
		r, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		unpackTar(t, r, root)
		r.Close()
	}
	pool := x509.NewCertPool()
	if text := read(t, filepath.Join(root, rootsPath)); !pool.AppendCertsFromPEM([]byte(text)) || strings.Count(text, "BEGIN CERTIFICATE") < 100 {
		t.Errorf("there are %d certificates", strings.Count(text, "BEGIN CERTIFICATE"))
	}
	if info, err := os.Stat(filepath.Join(root, "tmp")); err != nil || info.Mode() != fs.ModeDir|fs.ModeSticky|0o777 {
		t.Errorf("/tmp: %v %v", info, err)
	}
	needsRoot(t, "runs programs of the image in a root folder of their own")
	if err := os.Chmod(filepath.Dir(root), 0o711); err != nil { // the user passes through it
		t.Fatal(err)
	}
	for program, entry := range map[string]string{"espalier-server": config.Config.Entrypoint[0], "espalier": "/usr/local/bin/espalier"} {
		out, err := asUser(t, root, config.Config.User, config.Config.WorkingDir, config.Config.Env, entry, "--version")
		if err != nil {
			t.Fatalf("%s: %v\n%s", entry, err, out)
		}
		prints(t, out, program)
		if os.Getenv("ESPALIER_RELEASE") == "" && !strings.HasSuffix(out, " as 65532\n") { // the program in its place says it
			t.Errorf("%s runs with another user: %s", program, out)
		}
		if out, err := asUser(t, root, config.Config.User, config.Config.WorkingDir, config.Config.Env, "/usr/local/bin/espalier", "--version"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// TestReleaseImageIsRead: another implementation of the format reads it, too.
func TestReleaseImageIsRead(t *testing.T) {
	needs(t, "reads the image", "skopeo")
	dir, version := releaseOf(t)
	source := "oci-archive:" + filepath.Join(dir, "espalier_"+version+"_image.tar")
	var said struct {
		Architecture string
		Labels       map[string]string
		Layers       []string
	}
	out, err := commandMayFail(t, dir, "skopeo", "--override-os=linux", "--override-arch="+runtime.GOARCH, "inspect", source)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil {
		t.Fatal(err)
	}
	if said.Architecture != runtime.GOARCH || len(said.Layers) != 3 || said.Labels["org.opencontainers.image.version"] != version {
		t.Errorf("skopeo reads %+v", said)
	}
	command(t, dir, "skopeo", "--insecure-policy", "copy", "--all", source, "dir:"+t.TempDir())
}

// TestImageIsTheDockerfiles compares the image with the Dockerfile.
func TestImageIsTheDockerfiles(t *testing.T) {
	_, final, ok := strings.Cut(read(t, "../../deploy/Dockerfile"), "\nFROM gcr.io/")
	if !ok {
		t.Fatal("the last stage was not found")
	}
	config := (&release{}).imageConfig()
	line := func(instruction string) string {
		t.Helper()
		m := regexp.MustCompile(`(?m)^`+instruction+` (.*)$`).FindAllStringSubmatch(final, -1)
		if len(m) != 1 {
			t.Fatalf("the Dockerfile has %d lines %s", len(m), instruction)
		}
		return m[0][1]
	}
	words := func(instruction string) (words []string) {
		t.Helper()
		if err := json.Unmarshal([]byte(line(instruction)), &words); err != nil {
			t.Fatal(err)
		}
		return words
	}
	if got := line("USER"); got != config.User {
		t.Errorf("the user is %s there and %s here", got, config.User)
	}
	if got := words("ENTRYPOINT"); !slices.Equal(got, config.Entrypoint) {
		t.Errorf("the program is %s there and %s here", got, config.Entrypoint)
	}
	if got := words("CMD"); !slices.Equal(got, config.Cmd) {
		t.Errorf("the arguments are %s there and %s here", got, config.Cmd)
	}
	if got := line("STOPSIGNAL"); got != config.StopSignal {
		t.Errorf("the signal is %s there and %s here", got, config.StopSignal)
	}
	if _, ok := config.ExposedPorts[line("EXPOSE")+"/tcp"]; !ok || len(config.ExposedPorts) != 1 {
		t.Errorf("the port is %s there and %v here", line("EXPOSE"), config.ExposedPorts)
	}
	labels := regexp.MustCompile(`(org\.opencontainers\.image\.[a-z]+)="([^"]*)"`).FindAllStringSubmatch(final, -1)
	for _, label := range labels {
		if config.Labels[label[1]] != label[2] {
			t.Errorf("the label %s is %q there and %q here", label[1], label[2], config.Labels[label[1]])
		}
	}
	if len(labels) < 4 {
		t.Errorf("the Dockerfile has %d labels", len(labels))
	}
}
