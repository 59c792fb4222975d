package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// steps are the commands in the first block of a section of the guide to installing, for this release and machine, with
// the files from a server of the test.
func steps(t *testing.T, section string) string {
	t.Helper()
	dir, version := releaseOf(t)
	server := httptest.NewServer(http.StripPrefix("/v"+version+"/", http.FileServerFS(os.DirFS(dir))))
	t.Cleanup(server.Close)
	_, text, ok := strings.Cut(read(t, "../../docs/guides/install.md"), "\n## "+section+"\n")
	_, text, fenced := strings.Cut(text, "\n```sh\n")
	text, _, ends := strings.Cut(text, "\n```\n")
	if !ok || !fenced || !ends {
		t.Fatalf("the guide has no commands in the section %s", section)
	}
	return strings.NewReplacer(homepage+"/releases/download", server.URL, "0.1.0", version, "linux_amd64", "linux_"+runtime.GOARCH).Replace(text)
}

// follow runs the commands of a section, after shell functions that lead them into a folder.
func follow(t *testing.T, section, before string, env ...string) {
	t.Helper()
	commands := steps(t, section)
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", before+"\n"+commands)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, commands, out)
	}
}

func TestReleaseGuideToArchives(t *testing.T) {
	needs(t, "runs the guide", "bash", "curl", "sha256sum", "tar")
	file(t, "espalier", ".tar.gz")
	home := t.TempDir()
	follow(t, "Archives", "", "HOME="+home)
	prints(t, command(t, home, filepath.Join(home, ".local/bin/espalier"), "--version"), "espalier")
}

func TestReleaseGuideToDebian(t *testing.T) {
	needs(t, "runs the guide", "bash", "curl", "sha256sum", "dpkg")
	needsRoot(t, "dpkg gives files to root")
	file(t, "espalier", ".deb")
	root := t.TempDir()
	for _, name := range []string{"status", "info/empty", "updates/empty"} {
		write(t, root, "var/lib/dpkg/"+name, "")
	}
	follow(t, "Debian and Ubuntu", `sudo() { "$@"; }; dpkg() { command dpkg --root="$ROOT" --log=/dev/null "$@"; }`, "ROOT="+root)
	prints(t, command(t, root, filepath.Join(root, "usr/bin/espalier"), "--version"), "espalier")
}

func TestReleaseGuideToRPM(t *testing.T) {
	needs(t, "runs the guide", "bash", "curl", "sha256sum", "rpm")
	needsRoot(t, "rpm changes its root folder")
	file(t, "espalier", ".rpm")
	root := t.TempDir()
	follow(t, "Fedora, RHEL and openSUSE", `sudo() { "$@"; }; rpm() { command rpm --root="$ROOT" "$@"; }`, "ROOT="+root)
	prints(t, command(t, root, filepath.Join(root, "usr/bin/espalier"), "--version"), "espalier")
}

// TestReleaseGuideToImage copies the image to a registry in this process.
func TestReleaseGuideToImage(t *testing.T) {
	needs(t, "runs the guide", "bash", "curl", "skopeo")
	var pushed []string
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodPut && strings.Contains(request.URL.Path, "/manifests/") {
			pushed = append(pushed, request.URL.Path)
		}
		handler.ServeHTTP(w, request)
	}))
	defer server.Close()
	follow(t, "Image", `skopeo() { local all=("$@"); command skopeo --insecure-policy copy --dest-tls-verify=false "${all[@]:1:2}" "${all[3]/registry.example.com/$REGISTRY}"; }`,
		"REGISTRY="+strings.TrimPrefix(server.URL, "http://"))
	_, version := releaseOf(t)
	if len(pushed) < 2 || pushed[len(pushed)-1] != "/v2/espalier/manifests/"+version {
		t.Errorf("the registry got %v", pushed)
	}
}
