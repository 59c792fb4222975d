package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// archiveOf is an archive of the release, with its checksum as it is.
func archiveOf(t *testing.T, program, platform string) (path, sum string) {
	t.Helper()
	dir, version := releaseOf(t)
	_, name, _ := names(program, version, platform)
	path = filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return "", ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return path, fmt.Sprintf("%x", sha256.Sum256(data))
}

// TestReleaseHomebrew reads the formulas with Ruby, compares their checksums with the archives, and installs this
// machine's archive with the formula's own steps. testdata/formula.rb is in the place of Homebrew.
func TestReleaseHomebrew(t *testing.T) {
	needs(t, "runs formulas", "ruby", "tar")
	dir, version := releaseOf(t)
	for _, program := range programs {
		formula := filepath.Join(dir, program+".rb")
		command(t, dir, "ruby", "-wc", formula)
		compared := 0
		for _, platform := range platforms {
			system, machine, _ := strings.Cut(platform, "/")
			archive, sum := archiveOf(t, program, platform)
			if archive == "" || system == "windows" {
				continue
			}
			compared++
			args := []string{"testdata/formula.rb", formula, system, machine}
			if platform == runtime.GOOS+"/"+runtime.GOARCH {
				unpacked, prefix := t.TempDir(), t.TempDir()
				command(t, unpacked, "tar", "-xzf", archive, "--strip-components=1")
				args = append(args, unpacked, prefix)
				defer func() {
					prints(t, command(t, prefix, filepath.Join(prefix, "bin", program), "--version"), program)
					if _, err := os.Stat(filepath.Join(prefix, "share/man/man1", program+".1")); err != nil {
						t.Error(err)
					}
				}()
			}
			want := fmt.Sprintf("%s\n%s/releases/download/v%s/%s\n%s\n", version, homepage, version, filepath.Base(archive), sum)
			if got := command(t, ".", "ruby", args...); got != want {
				t.Errorf("for %s the formula says\n%sand not\n%s", platform, got, want)
			}
		}
		if compared == 0 {
			t.Errorf("no archive of %s was compared", program)
		}
	}
}

// TestReleaseKrew lets krew itself validate the manifest, and install the plugin from this machine's archive.
func TestReleaseKrew(t *testing.T) {
	if testing.Short() && os.Getenv("ESPALIER_RELEASE") == "" {
		t.Skip("compiles krew, which takes a minute")
	}
	needs(t, "krew downloads its index with git", "git")
	dir, _ := releaseOf(t)
	tools := t.TempDir()
	command(t, ".", "go", "build", "-o", tools+"/", "sigs.k8s.io/krew/cmd/krew", "sigs.k8s.io/krew/cmd/validate-krew-manifest")
	manifest := filepath.Join(dir, "espalier.yaml")
	for _, platform := range platforms {
		if archive, sum := archiveOf(t, "espalier", platform); archive != "" && !strings.Contains(read(t, manifest), "/"+filepath.Base(archive)+"\n    sha256: "+sum+"\n") {
			t.Errorf("the manifest does not have the checksum %s of %s", sum, archive)
		}
	}
	command(t, tools, "./validate-krew-manifest", "-manifest", manifest, "-skip-install")
	archive, _ := archiveOf(t, "espalier", runtime.GOOS+"/"+runtime.GOARCH)
	if archive == "" {
		t.Skip("the release was not built for this machine")
	}
	root := t.TempDir()
	t.Setenv("KREW_ROOT", root)
	// krew refuses to install without an index, so that it gets an empty one.
	index := filepath.Join(root, "index", "default")
	write(t, index, "plugins/README", "none\n")
	command(t, index, "git", "init", "--quiet")
	command(t, tools, "./krew", "install", "--manifest="+manifest, "--archive="+archive)
	plugin := filepath.Join(root, "bin", "kubectl-espalier")
	prints(t, command(t, root, plugin, "--version"), "espalier")
	if listed := command(t, tools, "./krew", "list"); !strings.Contains(listed, "espalier") {
		t.Errorf("krew lists %q", listed)
	}
	command(t, tools, "./krew", "uninstall", "espalier")
	if _, err := os.Lstat(plugin); !os.IsNotExist(err) {
		t.Errorf("removed, it is still there: %v", err)
	}
	// A release that was changed afterwards is not installed.
	changed := filepath.Join(t.TempDir(), filepath.Base(archive))
	if err := os.WriteFile(changed, append([]byte(read(t, archive)), 0), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := commandMayFail(t, tools, "./krew", "install", "--manifest="+manifest, "--archive="+changed); err == nil {
		t.Errorf("krew installs another archive:\n%s", out)
	}
}

// TestReleaseProvenance reads the statement with in-toto's own library, and compares its subjects with all files.
func TestReleaseProvenance(t *testing.T) {
	dir, version := releaseOf(t)
	name := fmt.Sprintf("espalier_%s_provenance.json", version)
	text := []byte(read(t, filepath.Join(dir, name)))
	var s intoto.Statement
	if err := protojson.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	raw, err := protojson.Marshal(s.GetPredicate())
	if err != nil {
		t.Fatal(err)
	}
	var p slsa.Provenance
	if err := protojson.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	said := map[string]string{}
	for _, subject := range s.GetSubject() {
		said[subject.GetName()] = subject.GetDigest()["sha256"]
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	sums := read(t, filepath.Join(dir, sumsFile))
	for _, entry := range entries {
		if entry.Name() == sumsFile {
			continue
		}
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, filepath.Join(dir, entry.Name())))))
		if !strings.Contains(sums, sum+"  "+entry.Name()+"\n") {
			t.Errorf("the checksum of %s is not in %s", entry.Name(), sumsFile)
		}
		if entry.Name() != name && said[entry.Name()] != sum {
			t.Errorf("the statement says %q of %s, which has %s", said[entry.Name()], entry.Name(), sum)
		}
		delete(said, entry.Name())
	}
	if len(said) > 0 {
		t.Errorf("the statement has subjects that do not exist: %v", said)
	}
	dependencies := p.GetBuildDefinition().GetResolvedDependencies()
	if source := dependencies[0]; len(source.GetDigest()["gitCommit"]) != 40 || source.GetUri() != "git+"+homepage {
		t.Errorf("the source is %v", source)
	}
	if release := dependencies[1].GetUri(); !strings.HasPrefix(release, "pkg:generic/go@1.") {
		t.Errorf("Go is %s", release)
	}
	// Every module of a bill of materials, with the same checksum.
	var bill struct {
		Components []struct {
			PackageURL string `json:"purl"`
			Properties []struct{ Name, Value string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, file(t, "espalier-server", ".cdx.json"))), &bill); err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for _, d := range dependencies[2:] {
		digests[d.GetUri()] = d.GetDigest()["dirHash"]
	}
	for _, c := range bill.Components {
		for _, property := range c.Properties {
			raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(property.Value, "h1:"))
			if err != nil || digests[c.PackageURL] != fmt.Sprintf("%x", raw) {
				t.Errorf("the statement says %q of %s, the bill %s: %v", digests[c.PackageURL], c.PackageURL, property.Value, err)
			}
		}
	}
}

func TestDirHash(t *testing.T) {
	// The example of the specification of in-toto: the hash of nothing.
	if got, err := dirHash("h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="); err != nil || got["dirHash"] != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Errorf("%v %v", got, err)
	}
	for _, sum := range []string{"", "h2:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "h1:!"} {
		if _, err := dirHash(sum); err == nil {
			t.Errorf("%q is a checksum", sum)
		}
	}
}
