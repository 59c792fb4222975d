package cli

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/espalier-dev/espalier/internal/build"
)

func TestAboutBuild(t *testing.T) {
	info := &debug.BuildInfo{
		Deps:     []*debug.Module{{Path: "k8s.io/api", Version: "v0.1.0"}, {Path: "k8s.io/apiserver", Version: "v0.37.2"}},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-11-15T10:00:00Z"}, {Key: "vcs.modified", Value: "true"}},
	}
	want := "version     " + Version() + "\ncommit      abc, and changes\ndate        2026-11-15T10:00:00Z\nkubernetes  v1.37.2\ngo          " +
		runtime.Version() + "\nplatform    " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	if got := aboutBuild(build.Read(info)).String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	bare := aboutBuild(build.Read(&debug.BuildInfo{}))
	if bare.Kubernetes != "unknown" || bare.Commit != "" || bare.Modified {
		t.Errorf("without build information: %+v", bare)
	}
}
