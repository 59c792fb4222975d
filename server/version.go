package server

import (
	"runtime/debug"
	"strings"

	apiversion "k8s.io/apimachinery/pkg/version"
	basecompatibility "k8s.io/component-base/compatibility"
	baseversion "k8s.io/component-base/version"
)

// reportedVersion is an effective version whose Info, which /version shows, is
// that of the Kubernetes release whose behaviour this server has, with the
// program's own version as build metadata: clients parse the former to decide
// what they may ask for.
type reportedVersion struct {
	basecompatibility.EffectiveVersion
	program string
}

// Info implements basecompatibility.EffectiveVersion.
func (v reportedVersion) Info() *apiversion.Info {
	info := v.EffectiveVersion.Info()
	if info == nil {
		return nil
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	info.GitVersion = kubernetesRelease(build)
	if metadata := buildMetadata(v.program); metadata != "" {
		info.GitVersion += "+espalier." + metadata
	}
	info.GitCommit, info.GitTreeState, info.BuildDate = "", "", ""
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.GitCommit = setting.Value
		case "vcs.time":
			info.BuildDate = setting.Value
		case "vcs.modified":
			info.GitTreeState = "clean"
			if setting.Value == "true" {
				info.GitTreeState = "dirty"
			}
		}
	}
	return info
}

// kubernetesRelease is the release that k8s.io/apiserver belongs to: its
// v0.37.2 is of Kubernetes v1.37.2.
func kubernetesRelease(build *debug.BuildInfo) string {
	for _, dependency := range build.Deps {
		if dependency.Path != "k8s.io/apiserver" {
			continue
		}
		if release, ok := strings.CutPrefix(dependency.Version, "v0."); ok {
			return "v1." + release
		}
	}
	return "v" + baseversion.DefaultKubeBinaryVersion + ".0"
}

// buildMetadata makes a version fit behind the plus sign of another one.
func buildMetadata(version string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '-':
			return r
		}
		return '-'
	}, strings.TrimPrefix(version, "v"))
}
