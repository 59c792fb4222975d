package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	layers "github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is a number: Kubernetes cannot tell whether a name is root.
const imageUser = "65532:65532"

// imageHome is the folder of that user, and where programs start. In a layer names have no slash before them.
const imageHome = "home/nonroot"

// imageConfig is what deploy/Dockerfile says of an image, which a test compares.
func (r *release) imageConfig() v1.Config {
	return v1.Config{
		User:         imageUser,
		Entrypoint:   []string{"/usr/local/bin/espalier-server"},
		Cmd:          []string{"serve"},
		ExposedPorts: map[string]struct{}{"6443/tcp": {}},
		StopSignal:   "SIGTERM",
		WorkingDir:   "/" + imageHome,
		Env:          []string{"PATH=/usr/local/bin", "SSL_CERT_FILE=" + rootsPath},
		Labels:       r.labels(),
	}
}

// labels are those of the OCI, in the configuration and as annotations of the index.
func (r *release) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "espalier",
		"org.opencontainers.image.description": summaries["espalier-server"],
		"org.opencontainers.image.source":      homepage,
		"org.opencontainers.image.licenses":    licence,
		"org.opencontainers.image.version":     strings.TrimPrefix(r.version, "v"),
		"org.opencontainers.image.revision":    r.commit,
		"org.opencontainers.image.created":     r.time.Format("2006-01-02T15:04:05Z"),
	}
}

// image writes an image of all Linux platforms that were built, as an OCI layout in a tar file. No daemon is needed
// and no base image is downloaded: the programs are static, with their time zones in them.
func (r *release) image(programs []built, temporary string) error {
	machines := map[string]map[string]string{} // machine → program → binary
	for _, b := range programs {
		if system, machine, _ := strings.Cut(b.platform, "/"); system == "linux" {
			if machines[machine] == nil {
				machines[machine] = map[string]string{}
			}
			machines[machine][b.program] = b.binary
		}
	}
	if len(machines) == 0 {
		return nil
	}
	base, err := r.layer(baseFiles())
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range r.platforms { // in the order that was asked for
		_, machine, _ := strings.Cut(platform, "/")
		binaries := machines[machine]
		if !strings.HasPrefix(platform, "linux/") {
			continue
		}
		image, err := r.imageOf(machine, base, binaries)
		if err != nil {
			return fmt.Errorf("image for %s: %w", platform, err)
		}
		descriptor, err := partial.Descriptor(image)
		if err != nil {
			return err
		}
		descriptor.Platform = &v1.Platform{OS: "linux", Architecture: machine}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: *descriptor})
	}
	index = mutate.Annotations(index, r.labels()).(v1.ImageIndex)
	dir := filepath.Join(temporary, "image")
	written, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := written.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": strings.ReplaceAll(strings.TrimPrefix(r.version, "v"), "+", "-")})); err != nil {
		return err
	}
	return r.tarLayout(dir, filepath.Join(r.out, fmt.Sprintf("espalier_%s_image.tar", strings.TrimPrefix(r.version, "v"))))
}

// imageOf adds each program as a layer of its own, so that a change of one leaves the other where it is.
func (r *release) imageOf(machine string, base v1.Layer, binaries map[string]string) (v1.Image, error) {
	config := &v1.ConfigFile{OS: "linux", Architecture: machine, Created: v1.Time{Time: r.time}, Config: r.imageConfig(), RootFS: v1.RootFS{Type: "layers"}}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, config)
	if err != nil {
		return nil, err
	}
	addenda := []mutate.Addendum{{Layer: base, History: r.history("a user and the certificates of public CAs")}}
	for _, program := range []string{"espalier-server", "espalier"} {
		data, err := os.ReadFile(binaries[program])
		if err != nil {
			return nil, err
		}
		layer, err := r.layer([]node{{name: "usr/local/bin/" + program, data: data, mode: 0o555}})
		if err != nil {
			return nil, err
		}
		addenda = append(addenda, mutate.Addendum{Layer: layer, History: r.history(program)})
	}
	return mutate.Append(image, addenda...)
}

func (r *release) history(what string) v1.History {
	return v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "make release", Comment: what}
}

// node is a file in a layer, or a folder if its name ends with a slash.
type node struct {
	name string
	data []byte
	mode fs.FileMode
}

const rootsPath = "/etc/ssl/certs/ca-certificates.crt"

// baseFiles are what static programs need: the names of users, and whom to trust.
func baseFiles() []node {
	return []node{
		{name: "etc/group", data: []byte("root:x:0:\nnonroot:x:65532:\n"), mode: 0o644},
		{name: "etc/nsswitch.conf", data: []byte("hosts: files dns\n"), mode: 0o644},
		{name: "etc/passwd", data: []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/" + imageHome + ":/sbin/nologin\n"), mode: 0o644},
		{name: strings.TrimPrefix(rootsPath, "/"), data: roots(), mode: 0o644},
		{name: imageHome + "/", mode: 0o755},
		{name: "tmp/", mode: 0o777 | fs.ModeSticky},
	}
}

// roots are the CAs that Mozilla trusts, of the version that go.mod pins. A file cannot say that a CA is trusted for
// some certificates only, so that those CAs are left out.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}

// layer packs files, all of one time and of root but the home of the user.
func (r *release) layer(nodes []node) (v1.Layer, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	seen := map[string]bool{}
	for _, n := range nodes {
		for i, c := range n.name { // the folders above it
			if dir := n.name[:i+1]; c == '/' && i+1 < len(n.name) && !seen[dir] {
				seen[dir] = true
				if err := archive.WriteHeader(&tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755, ModTime: r.time, Format: tar.FormatUSTAR}); err != nil {
					return nil, err
				}
			}
		}
		header := &tar.Header{Name: n.name, Typeflag: tar.TypeReg, Mode: int64(n.mode.Perm()), Size: int64(len(n.data)), ModTime: r.time, Format: tar.FormatUSTAR}
		if strings.HasSuffix(n.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if n.mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		if n.name == imageHome+"/" {
			header.Uid, header.Gid = 65532, 65532
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(n.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return layers.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }, layers.WithMediaType(types.OCILayer))
}

// tarLayout packs the folder of a layout. What is in it is compressed already.
func (r *release) tarLayout(dir, target string) error {
	return create(target, func(w io.Writer) error {
		archive := tar.NewWriter(w)
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // in the order of names
			if err != nil || path == dir {
				return err
			}
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			header := &tar.Header{Name: filepath.ToSlash(name), Typeflag: tar.TypeReg, Mode: 0o644, ModTime: r.time, Format: tar.FormatUSTAR}
			if d.IsDir() {
				header.Name, header.Typeflag, header.Mode = header.Name+"/", tar.TypeDir, 0o755
				return archive.WriteHeader(header)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			header.Size = int64(len(data))
			if err := archive.WriteHeader(header); err != nil {
				return err
			}
			_, err = archive.Write(data)
			return err
		})
		if err != nil {
			return err
		}
		return archive.Close()
	})
}
