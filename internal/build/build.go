package build

import (
	"runtime/debug"
	"strings"
	"sync"
)

// Info is about the program. What is not known is empty.
type Info struct {
	Commit, Date string
	Modified     bool // there were changes that were not committed
	// Known is whether the state of the repository is.
	Known bool
	// Kubernetes is the release that k8s.io/apiserver belongs to: its v0.37.2 is of
	// Kubernetes v1.37.2.
	Kubernetes string
}

// This is about the running program.
var This = sync.OnceValue(func() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return Info{}
	}
	return Read(build)
})

// Read is about the program of a build's information.
func Read(build *debug.BuildInfo) (i Info) {
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			i.Commit = setting.Value
		case "vcs.time":
			i.Date = setting.Value
		case "vcs.modified":
			i.Known, i.Modified = true, setting.Value == "true"
		}
	}
	for _, dependency := range build.Deps {
		if release, ok := strings.CutPrefix(dependency.Version, "v0."); ok && dependency.Path == "k8s.io/apiserver" {
			i.Kubernetes = "v1." + release
		}
	}
	return i
}
