package offline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Version is a minor version of Kubernetes 1.
type Version int

// The versions whose kinds and fields are known. The rules are those of Latest.
const (
	Oldest Version = 33
	Latest Version = 37
)

// String returns "1.37".
func (v Version) String() string { return "1." + strconv.Itoa(int(v)) }

func (v Version) before(other Version) bool { return v < other }

// Versions returns all versions that are known, the latest first.
func Versions() []string {
	var all []string
	for v := Latest; v >= Oldest; v-- {
		all = append(all, v.String())
	}
	return all
}

// ParseVersion reads a version such as 1.34, v1.34 or 1.34.2.
func ParseVersion(text string) (Version, error) {
	parts := strings.Split(strings.TrimPrefix(text, "v"), ".")
	if len(parts) >= 2 && parts[0] == "1" {
		if minor, err := strconv.Atoi(parts[1]); err == nil && Version(minor) >= Oldest && Version(minor) <= Latest {
			return Version(minor), nil
		}
	}
	return 0, fmt.Errorf("version %q of Kubernetes is not known: use %s to %s", text, Oldest, Latest)
}

func newer([]byte, runtime.Object, Version) []*FieldError { return nil }

// Since returns the version of Kubernetes that has served the kind first.
func (k *Kind) Since() Version { return Oldest }

// HasGroup reports whether there are built-in kinds of a group.
func HasGroup(group string) bool {
	return slices.ContainsFunc(All(), func(k *Kind) bool { return k.Group == group })
}
