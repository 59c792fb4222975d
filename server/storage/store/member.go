package store

import (
	"slices"
	"strings"

	"k8s.io/component-base/metrics"
)

// maxMembers bounds the series of members: tenants can be in many etcds.
const maxMembers = 64

// A Member is what an etcd member has answered to the last request for its status. No
// request is sent for it: members are asked each second in any case.
type Member struct {
	// Endpoint is as it was given.
	Endpoint string
	// Usable says that it answers, and knows a leader.
	Usable bool
	// Version is empty if it has not answered yet; so is all below.
	Version string
	// Size is that of its database file, Used what of it is in use.
	Size, Used int64
	// Quota is its --quota-backend-bytes; 0 if it does not say so, as before etcd 3.6.
	Quota int64
	// Alarms are those that any member has raised: NOSPACE, CORRUPT.
	Alarms []string
}

// Members returns the members of etcd that the server was given, in their order. Those that
// are sockets of this machine are left out.
func (b *Backend) Members() []Member {
	l := b.links
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Member, 0, len(l.all))
	for _, one := range l.all {
		m := Member{Endpoint: one.endpoint, Usable: one.condition() == fine}
		if s := one.status; s != nil {
			m.Version, m.Size, m.Used, m.Quota = s.Version, s.DbSize, s.DbSizeInUse, s.DbSizeQuota
			m.Alarms = alarmsOf(s.Errors)
		}
		all = append(all, m)
	}
	return all
}

// alarmsOf finds the alarms in the errors of a status, which has them as texts:
// memberID:1 alarm:NOSPACE.
func alarmsOf(errors []string) (alarms []string) {
	for _, alarm := range []string{"NOSPACE", "CORRUPT"} {
		if slices.ContainsFunc(errors, func(text string) bool { return strings.Contains(text, "alarm:"+alarm) }) {
			alarms = append(alarms, alarm)
		}
	}
	return alarms
}

func memberDesc(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc("espalier_etcd_"+name, help, append([]string{"endpoint"}, labels...), nil, metrics.ALPHA, "")
}

// Of each member. The version and alarms are labels of few values.
var (
	memberInfo   = memberDesc("member_info", "Version of an etcd member, as it has answered last; the value is always 1.", "version")
	memberUsable = memberDesc("member_usable", "1 while an etcd member answers this replica and knows a leader, 0 otherwise.")
	memberSize   = memberDesc("database_bytes", "Size of the database file of an etcd member.")
	memberUsed   = memberDesc("database_used_bytes", "What of the database file of an etcd member is in use; to defragment frees the rest.")
	memberQuota  = memberDesc("quota_bytes", "The --quota-backend-bytes of an etcd member, which etcd 3.6 and later tell.")
	memberAlarm  = memberDesc("alarm", "1 while etcd has this alarm: NOSPACE, CORRUPT.", "alarm")
)

// memberDescs are those of all metrics of members.
var memberDescs = []*metrics.Desc{memberInfo, memberUsable, memberSize, memberUsed, memberQuota, memberAlarm}

// collectMembers sends the metrics of the members of all backends, each member once.
func collectMembers(ch chan<- metrics.Metric) {
	seen := map[string]bool{}
	for _, m := range openMembers() {
		if seen[m.Endpoint] || len(seen) == maxMembers {
			continue
		}
		seen[m.Endpoint] = true
		gauge := func(d *metrics.Desc, value float64, labels ...string) {
			ch <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, value, append([]string{m.Endpoint}, labels...)...)
		}
		usable := 0.0
		if m.Usable {
			usable = 1
		}
		gauge(memberUsable, usable)
		if m.Version == "" {
			continue
		}
		gauge(memberInfo, 1, m.Version)
		gauge(memberSize, float64(m.Size))
		gauge(memberUsed, float64(m.Used))
		if m.Quota > 0 {
			gauge(memberQuota, float64(m.Quota))
		}
		for _, alarm := range m.Alarms {
			gauge(memberAlarm, 1, alarm)
		}
	}
}

// openMembers are those of all open backends: first of those that are not beside another one.
func openMembers() (all []Member) {
	backends.Lock()
	defer backends.Unlock()
	var beside []Member
	for b := range backends.open {
		if b.config.Beside == nil {
			all = append(all, b.Members()...)
		} else {
			beside = append(beside, b.Members()...)
		}
	}
	slices.SortFunc(beside, func(a, b Member) int { return strings.Compare(a.Endpoint, b.Endpoint) })
	return append(all, beside...)
}
