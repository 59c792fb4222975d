package server

import (
	"cmp"
	"strings"

	apiversion "k8s.io/apimachinery/pkg/version"
	basecompatibility "k8s.io/component-base/compatibility"
	baseversion "k8s.io/component-base/version"

	"github.com/espalier-dev/espalier/internal/build"
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
	this := build.This()
	info.GitVersion = kubernetesRelease(this)
	if metadata := buildMetadata(v.program); metadata != "" {
		info.GitVersion += "+espalier." + metadata
	}
	info.GitCommit, info.BuildDate, info.GitTreeState = this.Commit, this.Date, ""
	switch {
	case this.Modified:
		info.GitTreeState = "dirty"
	case this.Known:
		info.GitTreeState = "clean"
	}
	return info
}

// kubernetesRelease is the release that the libraries belong to, or at least the
// series of releases.
func kubernetesRelease(this build.Info) string {
	return cmp.Or(this.Kubernetes, "v"+baseversion.DefaultKubeBinaryVersion+".0")
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
