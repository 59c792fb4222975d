package store

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// A defect is a range of etcd versions that must not be trusted with data.
type defect struct {
	from, before string // from ≤ version < before; an empty from has no lower end
	why          string
	advice       string
}

// defects are tried in order: the gravest that applies is reported.
//
// The bypasses of etcd's own access control (CVE-2026-33413, CVE-2026-33343,
// CVE-2026-44283, fixed in 3.7.1) are not in the table: they matter only to those who
// separate tenants by etcd's users and roles. Espalier does not: whoever holds a
// client certificate may do anything.
var defects = []defect{
	{"3.5.0", "3.5.3", "under load a crash can leave members with different data (etcd issue 13766)", "run etcd 3.5.13 or later, and compare the members with `etcdctl endpoint hashkv --cluster` after the upgrade"},
	{"", "3.4.0", "it lacks what watch caches rely on and gets no fixes", "run etcd 3.6 or later"},
	{"3.4.0", "3.4.25", watchProgress, "run etcd 3.4.31 or later, better 3.6"},
	{"3.5.0", "3.5.8", watchProgress, "run etcd 3.5.13 or later"},
}

const watchProgress = "watches report progress before they have delivered all events up to it, so that reads from a watch cache go back in time (etcd issue 15220)"

// checkVersion returns an error if the etcd at endpoint has a version that is
// known to lose or corrupt data.
func checkVersion(endpoint, reported string) error {
	v, err := version.ParseSemantic(reported)
	if err != nil {
		return fmt.Errorf("etcd at %s reports the version %q, which is not one: %w", endpoint, reported, err)
	}
	for _, d := range defects {
		if d.from != "" && v.LessThan(version.MustParseSemantic(d.from)) || !v.LessThan(version.MustParseSemantic(d.before)) {
			continue
		}
		return fmt.Errorf("etcd at %s has version %s, which must not be used: %s; %s", endpoint, reported, d.why, d.advice)
	}
	return nil
}
