package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // makes .deb
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // makes .rpm
)

const (
	homepage = "https://github.com/espalier-dev/espalier"
	licence  = "Apache-2.0"
	// authors is where a package names its maintainer: the form wants an address, and we have only the issues.
	authors = "The Espalier authors <" + homepage + "/issues>"
)

// summaries are what package managers show of each program, in at most 50 characters: krew takes no more.
var summaries = map[string]string{
	"espalier":        "Validate, diff and fix CRDs without a cluster",
	"espalier-server": "Serve CRDs as an API server on etcd, without nodes",
}

// describe what a program is, below its summary.
var descriptions = map[string]string{
	"espalier": `Espalier checks CustomResourceDefinitions and custom resources as a
Kubernetes API server does, offline, and says where, why and how to fix it.
It compares versions of CRDs and says what breaks stored objects.`,
	"espalier-server": `The server stores and serves custom resources in etcd, with CRDs, CEL
rules, RBAC, admission, watches and server-side apply. The commands dev and
envtest start it on one machine with an etcd of its own.`,
}

// The server's files on a machine: from deploy/systemd, with the path that packages install to.
const (
	unitSource  = "deploy/systemd/espalier.service"
	unitProgram = "/usr/local/bin/espalier-server"
	unitPath    = "/usr/lib/systemd/system/espalier.service"
)

// packages makes the .deb and .rpm of each program that was built for Linux.
func (r *release) packages(programs []built, temporary string) error {
	for _, b := range programs {
		system, machine, _ := strings.Cut(b.platform, "/")
		if system != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			info, err := r.describePackage(b, machine, format, filepath.Join(temporary, format+"-"+b.base))
			if err != nil {
				return fmt.Errorf("%s: %w", b.base, err)
			}
			if err := create(filepath.Join(r.out, b.base+"."+format), func(w io.Writer) error { return writePackage(info, format, w) }); err != nil {
				return fmt.Errorf("%s.%s: %w", b.base, format, err)
			}
		}
	}
	return nil
}

func writePackage(info *nfpm.Info, format string, w io.Writer) error {
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	return packager.Package(info, w)
}

// describePackage says what is in a package. What has to be written for it is written below dir.
func (r *release) describePackage(b built, machine, format, dir string) (*nfpm.Info, error) {
	p := &contents{at: r.time, dir: dir}
	p.file(b.binary, "/usr/bin/"+b.program, 0o755)
	for _, page := range b.manual {
		p.packed(page, "/usr/share/man/man1/"+filepath.Base(page)+".gz")
	}
	site := "site-functions"
	if format == "deb" {
		site = "vendor-completions"
		p.text(copyright, "/usr/share/doc/"+b.program+"/copyright")
	} else {
		p.file(filepath.Join(r.root, "LICENSE"), "/usr/share/licenses/"+b.program+"/LICENSE", 0o644)
	}
	p.file(b.completions["bash"], "/usr/share/bash-completion/completions/"+b.program, 0o644)
	p.file(b.completions["zsh"], "/usr/share/zsh/"+site+"/_"+b.program, 0o644)
	p.file(b.completions["fish"], "/usr/share/fish/vendor_completions.d/"+b.program+".fish", 0o644)
	info := &nfpm.Info{
		Name: b.program, Arch: machine, Platform: "linux", Version: r.version, Release: "1", Section: "admin", Priority: "optional",
		Maintainer: authors, Vendor: "Espalier", Homepage: homepage, License: licence, MTime: r.time, DisableGlobbing: true,
		Description: summaries[b.program] + "\n" + descriptions[b.program],
	}
	// The name of a machine, which nfpm would take from the one that builds.
	info.RPM.BuildHost = "localhost"
	info.RPM.Summary = summaries[b.program]
	switch b.program {
	case "espalier":
		p.link("espalier", "/usr/bin/kubectl-espalier")
		info.Suggests = []string{"espalier-server"}
	case "espalier-server":
		info.Recommends = []string{"espalier"}
		info.Scripts = nfpm.Scripts{PostInstall: r.service("postinst.sh"), PreRemove: r.service("prerm.sh"), PostRemove: r.service("postrm.sh")}
		unit, err := os.ReadFile(filepath.Join(r.root, filepath.FromSlash(unitSource)))
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(unit, []byte("\nExecStart="+unitProgram+" ")) {
			return nil, fmt.Errorf("%s does not start %s: is unitProgram still right?", unitSource, unitProgram)
		}
		p.text(strings.ReplaceAll(string(unit), unitProgram, "/usr/bin/espalier-server"), unitPath)
		p.config(r.service("espalier.env"), "/etc/espalier/espalier.env")
		p.config(r.service("audit.yaml"), "/etc/espalier/audit.yaml")
	}
	info.Contents = p.list
	return nfpm.WithDefaults(info), p.err
}

// service is a file beside the unit.
func (r *release) service(name string) string {
	return filepath.Join(r.root, "deploy", "systemd", name)
}

// copyright is what Debian wants instead of the text of the licence, which is on every Debian.
const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Espalier
Source: ` + homepage + `

Files: *
Copyright: The Espalier authors
License: ` + licence + `

License: ` + licence + `
 On Debian systems the text of the licence is in
 /usr/share/common-licenses/Apache-2.0.
`

// contents collects the files of a package, all of one time and of root.
type contents struct {
	at   time.Time
	dir  string // for what is written
	list files.Contents
	err  error
}

func (c *contents) add(source, target, kind string, mode fs.FileMode) {
	c.list = append(c.list, &files.Content{Source: source, Destination: target, Type: kind, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: c.at}})
}

func (c *contents) file(source, target string, mode fs.FileMode) { c.add(source, target, "", mode) }

// config is a file that the administrator changes and that an upgrade keeps.
func (c *contents) config(source, target string) {
	c.add(source, target, files.TypeConfigNoReplace, 0o644)
}

func (c *contents) link(to, target string) { c.add(to, target, files.TypeSymlink, 0) }

func (c *contents) text(text, target string) {
	source := filepath.Join(c.dir, filepath.FromSlash(target))
	c.err = errors.Join(c.err, os.MkdirAll(filepath.Dir(source), 0o755), os.WriteFile(source, []byte(text), 0o644))
	c.file(source, target, 0o644)
}

// packed is a file that is installed compressed.
func (c *contents) packed(source, target string) {
	data, err := os.ReadFile(source)
	if err != nil {
		c.err = errors.Join(c.err, err)
		return
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		c.err = errors.Join(c.err, err)
		return
	}
	_, err = w.Write(data)
	c.err = errors.Join(c.err, err, w.Close())
	c.text(out.String(), path.Clean(target))
}
