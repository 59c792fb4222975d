package store

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/klog/v2"
)

// A defect is what versions of etcd are known to do to data.
type defect struct {
	what   string
	issue  string
	refuse bool // a server must not run on such a version; otherwise it warns
	// versions are ranges: from ≤ version < fixed. An empty from has no lower end.
	// Minor versions that no range names never had the defect.
	versions []versionRange
}

type versionRange struct{ from, fixed string }

// defects are all that this server knows. The gravest come first.
//
// What corrupts data, or sends a watch cache back in time without a fault of anything
// else, is refused. What takes a rare meeting of faults is warned of: a server that
// refuses to start on it after an upgrade of its own does more harm than the defect.
//
// The bypasses of etcd's own access control (CVE-2026-33413, CVE-2026-33343,
// CVE-2026-44283, fixed in 3.7.1) are not in the table: they matter only if tenants are
// separated by etcd's users and roles. Espalier does not separate them so: a client
// certificate of etcd permits everything.
var defects = []defect{
	{"under load a crash can leave members with different data; compare them with `etcdctl endpoint hashkv --cluster` after the upgrade", "etcd issue 13766", true,
		[]versionRange{{"3.5.0", "3.5.3"}}},
	{"it lacks features that watch caches rely on, and gets no fixes", "end of life", true,
		[]versionRange{{"", "3.4.0"}}},
	{"watches report progress before they have delivered all events up to it, so that reads from a watch cache go back in time", "etcd issue 15220", true,
		[]versionRange{{"3.4.0", "3.4.25"}, {"3.5.0", "3.5.8"}}},
	{"a member that receives a snapshot while it is defragmented can corrupt its data", "etcd pull request 20650", false,
		[]versionRange{{"3.4.0", "3.4.38"}, {"3.5.0", "3.5.23"}, {"3.6.0", "3.6.5"}}},
	{"watches can lose events after a compaction", "etcd issue 17529", false,
		[]versionRange{{"3.4.0", "3.4.31"}, {"3.5.0", "3.5.13"}}},
	{"a watch that starts at the revision of a compaction can miss the event of a deletion", "etcd issue 19179", false,
		[]versionRange{{"3.4.0", "3.4.36"}, {"3.5.0", "3.5.18"}}},
	{"a watch that starts at a future revision can deliver events that are older", "etcd pull request 20286", false,
		[]versionRange{{"3.4.0", "3.4.38"}, {"3.5.0", "3.5.22"}, {"3.6.0", "3.6.2"}}},
	{"a member that was paused can answer reads with old data", "etcd pull request 21417", false,
		[]versionRange{{"3.4.0", "3.4.42"}, {"3.5.0", "3.5.28"}, {"3.6.0", "3.6.9"}}},
}

// fix returns the version of etcd that does not have the defect any more, or "" if v
// does not have it.
func (d defect) fix(v *version.Version) string {
	for _, r := range d.versions {
		if (r.from == "" || !v.LessThan(version.MustParseSemantic(r.from))) && v.LessThan(version.MustParseSemantic(r.fixed)) {
			return r.fixed
		}
	}
	return ""
}

// findings are the defects of one version.
type findings struct {
	refused bool
	texts   []string
	upgrade string // the first version of the same minor release without any of them
}

// examine finds the defects of a version.
func examine(reported string) (findings, error) {
	v, err := version.ParseSemantic(reported)
	if err != nil {
		return findings{}, err
	}
	var f findings
	for _, d := range defects {
		fix := d.fix(v)
		if fix == "" {
			continue
		}
		f.refused = f.refused || d.refuse
		f.texts = append(f.texts, fmt.Sprintf("%s (%s, fixed in %s)", d.what, d.issue, fix))
		if f.upgrade == "" || version.MustParseSemantic(f.upgrade).LessThan(version.MustParseSemantic(fix)) {
			f.upgrade = fix
		}
	}
	if f.upgrade == "3.4.0" {
		f.upgrade = "3.6.9" // there is no reason to stop at a version with all the rest
	}
	return f, nil
}

// checkVersion returns an error if the etcd at endpoint has a version that is
// known to lose or corrupt data.
func checkVersion(endpoint, reported string) error {
	f, err := examine(reported)
	switch {
	case err != nil:
		return fmt.Errorf("etcd at %s reports the version %q, which is not one: %w", endpoint, reported, err)
	case f.refused:
		return fmt.Errorf("etcd at %s has version %s, which must not be used: %s; run etcd %s or later", endpoint, reported, f.texts[0], f.upgrade)
	}
	return nil
}

// versions remembers the versions of members, which change while a server runs: etcd
// is upgraded one member after the other. A change never stops the server.
type versions struct {
	mu sync.Mutex
	of map[string]string
}

// note warns once of each version of a member with a defect.
func (n *versions) note(endpoint, reported string) {
	n.mu.Lock()
	before, known := n.of[endpoint]
	if n.of == nil {
		n.of = map[string]string{}
	}
	n.of[endpoint] = reported
	n.mu.Unlock()
	if known && before == reported {
		return
	}
	if known {
		klog.InfoS("An etcd member has another version now", "endpoint", endpoint, "version", reported, "before", before)
	}
	f, err := examine(reported)
	switch {
	case err != nil:
		klog.ErrorS(err, "An etcd member reports a version that is not one: its known defects are not checked", "endpoint", endpoint, "version", reported)
	case f.refused:
		klog.ErrorS(nil, "An etcd member has a version that must not be used; this server does not start on it again. Upgrade etcd",
			"endpoint", endpoint, "version", reported, "upgradeTo", f.upgrade, "defects", strings.Join(f.texts, "; "))
	case len(f.texts) > 0:
		klog.InfoS("An etcd member has a version with known defects. Upgrade etcd",
			"endpoint", endpoint, "version", reported, "upgradeTo", f.upgrade, "defects", strings.Join(f.texts, "; "))
	}
}

// warning is for the health paths: members with known defects, "" if there are none.
func (n *versions) warning() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	oldest, upgrade, count := "", "", 0
	for _, reported := range n.of {
		f, err := examine(reported)
		if err != nil || len(f.texts) == 0 {
			continue
		}
		if count++; oldest == "" || version.MustParseSemantic(reported).LessThan(version.MustParseSemantic(oldest)) {
			oldest, upgrade = reported, f.upgrade
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d members have versions with known defects, the oldest %s; upgrade etcd to %s or later (the log names the defects)", count, len(n.of), oldest, upgrade)
}
