package offline

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// SyncAppArmor sets the AppArmor profiles of a new pod that only its annotations have, as
// older clients write them. It returns warnings for the client.
func SyncAppArmor(p *corev1.Pod) []string {
	if p.Spec.OS != nil && p.Spec.OS.Name == corev1.Windows {
		return nil
	}
	var ofPod *corev1.AppArmorProfile
	if p.Spec.SecurityContext != nil {
		ofPod = p.Spec.SecurityContext.AppArmorProfile
	}
	var warnings []string
	sync := func(name string, to **corev1.SecurityContext) {
		key := corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + name
		text, ok := p.Annotations[key]
		if !ok || *to != nil && (*to).AppArmorProfile != nil {
			return
		}
		profile := appArmorProfile(text)
		if ofPod != nil && equality.Semantic.DeepEqual(profile, ofPod) {
			return
		}
		warnings = append(warnings, fmt.Sprintf(`metadata.annotations[%s]: deprecated since v1.30; use the "appArmorProfile" field instead`, key))
		if profile == nil {
			return
		}
		if *to == nil {
			*to = &corev1.SecurityContext{}
		}
		(*to).AppArmorProfile = profile
	}
	for i := range p.Spec.InitContainers {
		sync(p.Spec.InitContainers[i].Name, &p.Spec.InitContainers[i].SecurityContext)
	}
	for i := range p.Spec.Containers {
		sync(p.Spec.Containers[i].Name, &p.Spec.Containers[i].SecurityContext)
	}
	return warnings
}

// appArmorProfile reads the value of an annotation; nil if it names no profile.
func appArmorProfile(text string) *corev1.AppArmorProfile {
	switch text {
	case corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	}
	if name, ok := strings.CutPrefix(text, corev1.DeprecatedAppArmorBetaProfileNamePrefix); ok && name != "" {
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
	}
	return nil
}
