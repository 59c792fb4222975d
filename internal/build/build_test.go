package build

import (
	"runtime/debug"
	"testing"
)

func TestRead(t *testing.T) {
	apiserver := []*debug.Module{{Path: "k8s.io/api", Version: "v0.1.0"}, {Path: "k8s.io/apiserver", Version: "v0.37.2"}, {Path: "k8s.io/client-go", Version: "v0.2.0"}}
	for _, c := range []struct {
		name  string
		build debug.BuildInfo
		want  Info
	}{
		{"nothing is known", debug.BuildInfo{}, Info{}},
		{"a clean repository", debug.BuildInfo{Settings: []debug.BuildSetting{
			{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2024-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "false"},
		}}, Info{Commit: "abc", Date: "2024-01-02T03:04:05Z", Known: true}},
		{"a changed repository", debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}}}, Info{Known: true, Modified: true}},
		{"a release of Kubernetes", debug.BuildInfo{Deps: apiserver}, Info{Kubernetes: "v1.37.2"}},
		{"another way to count releases", debug.BuildInfo{Deps: []*debug.Module{{Path: "k8s.io/apiserver", Version: "v1.37.2"}}}, Info{}},
	} {
		if got := Read(&c.build); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestThisIsAboutTheRunningProgram(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Skip("the program was built without modules")
	}
	if got, want := This(), Read(info); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
