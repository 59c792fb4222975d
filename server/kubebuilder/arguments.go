package kubebuilder

import (
	"fmt"
	"strings"

	_ "k8s.io/apiserver/pkg/features" // the feature gates of servers
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// Controllers are those of a test server in place of envtest's, as Options has them. What
// controllers create is off: envtest runs none, so that tests create a service account
// "default" themselves, and count config maps.
var Controllers = []string{"*", "-root-ca-certificate-publisher-controller", "-serviceaccount-controller"}

// DisabledPlugins are the admission plugins that envtest turns off: no namespace has a
// service account.
var DisabledPlugins = []string{"ServiceAccount"}

// Arguments returns kube-apiserver's arguments as this server takes them, and what it
// dropped from them. It is for tests that were written for kube-apiserver: it drops
// plugins, feature gates and modes that this server does not have.
func Arguments(args []string) (kept, words []string) {
	for i := 0; i < len(args); i++ {
		name, value, ok := strings.Cut(args[i], "=")
		adapt := adapters[strings.TrimPrefix(name, "--")]
		if adapt == nil || !strings.HasPrefix(name, "--") {
			kept = append(kept, args[i])
			continue
		}
		if !ok {
			if i++; i == len(args) {
				return append(kept, name), words // the parser has something to say
			}
			value = args[i]
		}
		value, said := adapt(strings.TrimPrefix(name, "--"), value)
		words = append(words, said...)
		if value != "" || len(said) == 0 {
			kept = append(kept, name+"="+value)
		}
	}
	return kept, words
}

// adapters return what is left of the value of a flag, and a word on what is not.
var adapters = map[string]func(flag, value string) (string, []string){
	"enable-admission-plugins": func(flag, value string) (string, []string) { return fromList(flag, value, aboutPods) },
	"authorization-mode":       func(flag, value string) (string, []string) { return fromList(flag, value, []string{"Node"}) },
	"feature-gates":            knownGates,
	"storage-media-type":       none("objects are stored as JSON"),
	"watch-cache-sizes":        none("watch caches are as large as they need to be"),
}

func none(why string) func(flag, value string) (string, []string) {
	return func(flag, _ string) (string, []string) {
		return "", []string{fmt.Sprintf("--%s is ignored: %s", flag, why)}
	}
}

func fromList(flag, value string, others []string) (string, []string) {
	kept, words := without(strings.Split(value, ","), flag, others)
	return strings.Join(kept, ","), words
}

// knownGates leaves feature gates out that a server for pods has, and this one has
// not.
func knownGates(flag, value string) (string, []string) {
	known := utilfeature.DefaultMutableFeatureGate.GetAll()
	var kept, words []string
	for gate := range strings.SplitSeq(value, ",") {
		name, _, _ := strings.Cut(gate, "=")
		name = strings.TrimPrefix(strings.TrimSpace(name), "kube:")
		special := name == "AllAlpha" || name == "AllBeta"
		if _, ok := known[featuregate.Feature(name)]; !ok && !special {
			words = append(words, fmt.Sprintf("--%s: %s is ignored: there is no such gate here", flag, name))
			continue
		}
		kept = append(kept, gate)
	}
	return strings.Join(kept, ","), words
}
