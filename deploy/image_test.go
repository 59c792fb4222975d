package deploy

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// stages parses the Dockerfile as `docker build` does.
func stages(t *testing.T) ([]instructions.Stage, []instructions.ArgCommand) {
	t.Helper()
	result, err := parser.Parse(bytes.NewReader(read(t, "Dockerfile")))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range result.Warnings {
		t.Errorf("Dockerfile: %s", w.Short)
	}
	lint := linter.New(&linter.Config{Warn: func(rule, _, _, message string, _ []parser.Range) { t.Errorf("Dockerfile: %s: %s", rule, message) }})
	all, args, err := instructions.Parse(result.AST, lint)
	if err != nil {
		t.Fatal(err)
	}
	return all, args
}

// all returns the commands of a type in a stage.
func all[C instructions.Command](stage instructions.Stage) []C {
	var found []C
	for _, c := range stage.Commands {
		if c, ok := c.(C); ok {
			found = append(found, c)
		}
	}
	return found
}

func TestImageHasNothingButTheServer(t *testing.T) {
	parsed, _ := stages(t)
	final := parsed[len(parsed)-1]
	if !regexp.MustCompile(`/distroless/static-debian\d+:nonroot$`).MatchString(final.BaseName) {
		t.Errorf("the last stage is from %s, not from distroless' static image", final.BaseName)
	}
	if runs := all[*instructions.RunCommand](final); len(runs) != 0 {
		t.Errorf("the last stage runs %v, and has no shell to do it", runs)
	}
	copies := all[*instructions.CopyCommand](final)
	if len(copies) != 1 || copies[0].From != parsed[0].Name || !slices.Equal(copies[0].SourcePaths, []string{"/out/espalier-server"}) || copies[0].Chmod != "0555" {
		t.Errorf("the image is more than the program: %v", copies)
	}
	users := all[*instructions.UserCommand](final)
	if len(users) != 1 || !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(users[0].User) {
		t.Errorf("the user is not one number other than 0: %v", users)
	}
	pod := deployment(t, nil).Spec.Template.Spec
	if id, _, _ := strings.Cut(users[0].User, ":"); id != itoa(*pod.SecurityContext.RunAsUser) {
		t.Errorf("the image runs as %s, the manifests as %d", id, *pod.SecurityContext.RunAsUser)
	}
	entry := all[*instructions.EntrypointCommand](final)
	if len(entry) != 1 || entry[0].PrependShell || !slices.Equal(entry[0].CmdLine, []string{copies[0].DestPath}) {
		t.Errorf("the image does not start the program that is copied to %s: %v", copies[0].DestPath, entry)
	}
	if cmd := all[*instructions.CmdCommand](final); len(cmd) != 1 || cmd[0].PrependShell || !slices.Equal(cmd[0].CmdLine, []string{"serve"}) {
		t.Errorf("without arguments the image does not serve: %v", cmd)
	}
	port := itoa(int64(pod.Containers[0].Ports[0].ContainerPort))
	if expose := all[*instructions.ExposeCommand](final); len(expose) != 1 || !slices.Equal(expose[0].Ports, []string{port}) {
		t.Errorf("the image does not say that it listens at %s: %v", port, expose)
	}
	if checks := all[*instructions.HealthCheckCommand](final); len(checks) != 0 {
		t.Error("a HEALTHCHECK would need a program in the image")
	}
}

// The program is static, has no path of the machine that built it, and is built by a Go that is new enough.
func TestImageBuild(t *testing.T) {
	parsed, args := stages(t)
	runs := all[*instructions.RunCommand](parsed[0])
	line := strings.Join(runs[len(runs)-1].CmdLine, " ")
	for _, want := range []string{"CGO_ENABLED=0", "go build -trimpath", "-o /out/espalier-server ./cmd/espalier-server"} {
		if !strings.Contains(line, want) {
			t.Errorf("no %q in %q", want, line)
		}
	}
	version := *args[0].Args[0].Value
	if want := regexp.MustCompile(`(?m)^go (1\.\d+)`).FindSubmatch(read(t, filepath.Join(root, "go.mod")))[1]; !strings.HasPrefix(version, string(want)+".") {
		t.Errorf("the image is built with Go %s, go.mod asks for %s", version, want)
	}
	if os.Getenv("ESPALIER_BIN") != "" {
		t.Skip("ESPALIER_BIN is set: this test checks only a binary that it builds itself as the Dockerfile does")
	}
	file, err := elf.Open(program(t))
	if err != nil {
		t.Skipf("%v: what this system builds is no ELF file; the image is for Linux", err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the program wants a dynamic linker, which the image does not have")
		}
	}
	if data := read(t, program(t)); bytes.Contains(data, []byte(absolute(t, root)+"/")) {
		t.Error("the program has the path of the machine that built it")
	}
}

// What the build needs is not ignored, and no more than folders of Go is sent to it.
func TestImageContext(t *testing.T) {
	patterns, err := ignorefile.ReadAll(bytes.NewReader(read(t, "Dockerfile.dockerignore")))
	if err != nil {
		t.Fatal(err)
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	ignored := func(path string) bool {
		yes, err := matcher.MatchesOrParentMatches(path)
		if err != nil {
			t.Fatal(err)
		}
		return yes
	}
	cmd := exec.Command("go", "list", "-deps", "-f", `{{if .Module}}{{if .Module.Main}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`, "./cmd/espalier-server")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOWORK="+absolute(t, root+"/go.work"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Fields(string(out))
	if len(files) < 100 {
		t.Fatalf("the program is made from %d files only?", len(files))
	}
	for _, file := range append(files, absolute(t, root+"/go.mod"), absolute(t, root+"/go.sum")) {
		path, err := filepath.Rel(absolute(t, root), file)
		if err != nil {
			t.Fatal(err)
		}
		if ignored(path) {
			t.Errorf("%s is needed and not sent", path)
		}
	}
	for _, path := range []string{".git/config", ".bin/etcd", "conformance/go.mod", "deploy/Dockerfile", "README.md", "server/server_test.go", "crd/testdata/a.yaml"} {
		if !ignored(path) {
			t.Errorf("%s is not needed and sent", path)
		}
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
