package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

var commitTime = time.Date(2026, 11, 15, 10, 0, 0, 0, time.UTC)

// repository makes one with a small program in the place of ours.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "go.mod", "module github.com/espalier-dev/espalier\n\ngo 1.26\n")
	write(t, dir, "LICENSE", "licence\n")
	write(t, dir, "README.md", "readme\n")
	write(t, dir, ".gitignore", "/.bin/\n")
	write(t, dir, "go.work", "go 1.26\n\nuse (\n\t.\n\t./cmd\n)\n")
	write(t, dir, "cmd/go.mod", "module github.com/espalier-dev/espalier/cmd\n\ngo 1.26\n")
	write(t, dir, "cmd/internal/cli/cli.go", "package cli\n\nvar release string\n\n// Version is set by the linker.\nfunc Version() string { return release }\n")
	for _, name := range []string{"espalier.service", "espalier.env", "audit.yaml", "postinst.sh", "prerm.sh", "postrm.sh"} {
		write(t, dir, "deploy/systemd/"+name, read(t, "../../deploy/systemd/"+name))
	}
	for _, program := range programs {
		write(t, dir, "cmd/"+program+"/main.go", strings.ReplaceAll(standIn, "PROGRAM", program))
	}
	t.Setenv("GIT_AUTHOR_DATE", commitTime.Format(time.RFC3339))
	t.Setenv("GIT_COMMITTER_DATE", commitTime.Format(time.RFC3339))
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."},
		{"-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet", "-m", "all"}, {"tag", "v1.2.3"}} {
		if _, err := git(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// standIn is a program that does what a release asks of ours.
const standIn = `package main

import (
	"fmt"
	"os"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Println("PROGRAM", cli.Version(), "as", os.Getuid())
		return
	}
	switch os.Args[1] {
	case "man":
		if os.MkdirAll(os.Args[2], 0o755) != nil || os.WriteFile(os.Args[2]+"/PROGRAM.1", []byte(cli.Version()+" "+os.Getenv("SOURCE_DATE_EPOCH")), 0o644) != nil {
			os.Exit(1)
		}
	case "completion":
		fmt.Println("# completions of PROGRAM for", os.Args[2])
	}
}
`

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestTwice builds a release for this platform and for Windows, and again elsewhere
// and from nothing.
func TestTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Go's runtime three times")
	}
	dir, out := repository(t), t.TempDir()
	native := runtime.GOOS + "/" + runtime.GOARCH
	var said bytes.Buffer
	if err := run(t.Context(), []string{"-root", dir, "-out", out, "-platforms", native + ",windows/arm64", "-twice"}, &said); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "built twice, every byte is the same") {
		t.Errorf("it says %s", &said)
	}
	base := "espalier_1.2.3_" + strings.ReplaceAll(native, "/", "_")
	server := strings.Replace(base, "espalier", "espalier-server", 1)
	want := []string{server + ".cdx.json", server + ".tar.gz", "espalier-server_1.2.3_windows_arm64.cdx.json", "espalier-server_1.2.3_windows_arm64.zip", "espalier-server.rb",
		base + ".cdx.json", base + ".tar.gz", "espalier_1.2.3_provenance.json", "espalier_1.2.3_windows_arm64.cdx.json", "espalier_1.2.3_windows_arm64.zip", "espalier.rb", "espalier.yaml"}
	if runtime.GOOS == "linux" {
		want = append(want, base+".deb", base+".rpm", server+".deb", server+".rpm", "espalier_1.2.3_image.tar")
	}
	slices.Sort(want)
	checkSums(t, out, want...)
	files := untar(t, filepath.Join(out, base+".tar.gz"))
	program := filepath.Join(t.TempDir(), "espalier")
	if err := os.WriteFile(program, []byte(files[base+"/espalier"]), 0o700); err != nil {
		t.Fatal(err)
	}
	if printed, err := exec.Command(program).CombinedOutput(); err != nil || !strings.HasPrefix(string(printed), "espalier v1.2.3 ") {
		t.Errorf("the program prints %q: %v", printed, err)
	}
	if files[base+"/LICENSE"] != "licence\n" || files[base+"/README.md"] != "readme\n" || len(files) != 4 {
		t.Errorf("the archive has %d files", len(files))
	}
	if page, want := files[base+"/man/man1/espalier.1"], fmt.Sprintf("v1.2.3 %d", commitTime.Unix()); page != want {
		t.Errorf("the manual page is %q, not %q", page, want)
	}
}

// checkSums compares the file of checksums with what is there.
func checkSums(t *testing.T, dir string, names ...string) {
	t.Helper()
	var want strings.Builder
	for _, name := range names {
		fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256([]byte(read(t, filepath.Join(dir, name)))), name)
	}
	if got := read(t, filepath.Join(dir, sumsFile)); got != want.String() {
		t.Errorf("the checksums are\n%sand not\n%s", got, &want)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != len(names)+1 {
		t.Errorf("there are %d files: %v", len(entries), err)
	}
}

func untar(t *testing.T, path string) map[string]string {
	t.Helper()
	packed, err := gzip.NewReader(strings.NewReader(read(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(packed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(data)
		if !header.ModTime.Equal(commitTime) || header.Uid != 0 || header.Uname != "" {
			t.Errorf("%s is of %v, %d %s", header.Name, header.ModTime, header.Uid, header.Uname)
		}
	}
}

func TestSource(t *testing.T) {
	dir := repository(t)
	s, err := describe(t.Context(), filepath.Join(dir, "cmd"), "", false)
	if err != nil || s.version != "v1.2.3" || !s.time.Equal(commitTime) || len(s.commit) != 40 || s.modified {
		t.Errorf("%+v %v", s, err)
	}
	if s, err = describe(t.Context(), dir, "v2.0.0-rc.1", false); err != nil || s.version != "v2.0.0-rc.1" {
		t.Errorf("%+v %v", s, err)
	}
	if _, err := git(t.Context(), dir, "tag", "-d", "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	if s, err = describe(t.Context(), dir, "", false); err != nil || s.version != "v0.0.0-20261115100000-"+s.commit[:12] {
		t.Errorf("without a tag: %+v %v", s, err)
	}
	if _, err := git(t.Context(), dir, "tag", "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	if _, err = describe(t.Context(), dir, "v1 -X main.x=y", false); err == nil || !strings.Contains(err.Error(), "such as v1.2.3") {
		t.Errorf("a version that the linker would take for a flag: %v", err)
	}
	write(t, dir, "README.md", "other\n")
	if _, err = describe(t.Context(), dir, "", false); err == nil || !strings.Contains(err.Error(), "README.md") {
		t.Errorf("a change: %v", err)
	}
	if s, err = describe(t.Context(), dir, "", true); err != nil || s.version != "v1.2.3+dirty" || !s.modified {
		t.Errorf("%+v %v", s, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	if s, err = describe(t.Context(), dir, "", true); err != nil || s.time.Format(time.DateOnly) != "1970-01-02" {
		t.Errorf("%+v %v", s, err)
	}
	if _, err = describe(t.Context(), t.TempDir(), "", false); err == nil || !strings.HasPrefix(err.Error(), "git rev-parse: ") {
		t.Errorf("no repository: %v", err)
	}
	if err := run(t.Context(), []string{"-root", dir, "-dirty", "-platforms", "plan9/amd64"}, io.Discard); err == nil || !strings.Contains(err.Error(), "plan9/amd64: there is no such platform") {
		t.Errorf("a foreign platform: %v", err)
	}
}

// TestArchives packs the same files with other times and in another order.
func TestArchives(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a", "first\n")
	write(t, dir, "b", strings.Repeat("second\n", 1000))
	entries := []entry{{"x/a", filepath.Join(dir, "a"), 0o644}, {"x/b", filepath.Join(dir, "b"), 0o755}}
	for _, pack := range []struct {
		name string
		do   func(string, []entry, time.Time) error
	}{{"one.tar.gz", tarball}, {"one.zip", zipped}} {
		one, two := filepath.Join(dir, pack.name), filepath.Join(dir, "again-"+pack.name)
		if err := pack.do(one, entries, commitTime); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chtimes(entries[0].path, time.Now(), time.Unix(0, 0)), os.Chmod(entries[1].path, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := pack.do(two, []entry{entries[1], entries[0]}, commitTime); err != nil {
			t.Fatal(err)
		}
		if read(t, one) != read(t, two) {
			t.Errorf("%s differs", pack.name)
		}
	}
	if got := untar(t, filepath.Join(dir, "one.tar.gz")); got["x/a"] != "first\n" || len(got) != 2 {
		t.Errorf("got %q", got)
	}
	archive, err := zip.OpenReader(filepath.Join(dir, "one.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if f := archive.File[1]; len(archive.File) != 2 || f.Name != "x/b" || f.Mode().Perm() != 0o755 || !f.Modified.Equal(commitTime) {
		t.Errorf("got %+v", archive.File[1].FileHeader)
	}
	if err := tarball(filepath.Join(dir, "none.tar.gz"), []entry{{"x", filepath.Join(dir, "missing"), 0o644}}, commitTime); err == nil {
		t.Error("a file that is missing is no error")
	}
}

// TestBill reads the bill of this test's own binary.
func TestBill(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := billOf("espalier", self, "v1.2.3+dirty", commitTime)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := billOf("espalier", self, "v1.2.3+dirty", commitTime); err != nil || !bytes.Equal(text, again) {
		t.Errorf("it differs: %v", err)
	}
	var bill cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bill); err != nil {
		t.Fatal(err)
	}
	c := bill.Metadata.Component
	if bill.SpecVersion != cyclonedx.SpecVersion1_6 || c.Name != "espalier" || c.Version != "v1.2.3+dirty" || !strings.HasSuffix(c.PackageURL, "@v1.2.3%2Bdirty") ||
		bill.Metadata.Timestamp != "2026-11-15T10:00:00Z" || !strings.HasPrefix(bill.SerialNumber, "urn:uuid:") || len(bill.SerialNumber) != 45 {
		t.Errorf("%+v %+v", bill.Metadata, c)
	}
	found := map[string]cyclonedx.Component{}
	for _, library := range *bill.Components {
		found[library.Name] = library
	}
	if std := found["std"]; std.PackageURL != "pkg:golang/std@"+runtime.Version() {
		t.Errorf("the standard library is %+v", std)
	}
	if own := found["github.com/CycloneDX/cyclonedx-go"]; own.Properties == nil || !strings.HasPrefix((*own.Properties)[0].Value, "h1:") || !strings.HasPrefix(own.Version, "v0.") {
		t.Errorf("the library is %+v", own)
	}
	if refs := (*bill.Dependencies)[0]; refs.Ref != c.BOMRef || len(*refs.Dependencies) != len(*bill.Components) {
		t.Errorf("dependencies: %+v", refs)
	}
	if _, err := billOf("espalier", "release_test.go", "v1", commitTime); err == nil {
		t.Error("a file that is no program has a bill")
	}
}
