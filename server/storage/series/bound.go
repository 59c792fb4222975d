package series

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/component-base/metrics/legacyregistry"
)

// chosen are what the names of metrics begin with that have the names of webhooks and
// policies as labels.
var chosen = []string{
	"apiserver_admission_webhook_", "apiserver_admission_match_condition_",
	"apiserver_validating_admission_policy_", "apiserver_mutating_admission_policy_",
}

// Bound drops all series of a metric with the names of webhooks or policies, if it has
// more than most, and returns how many it has dropped. Users who choose names could fill
// the memory of the process otherwise.
func Bound(most int) (dropped int, err error) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil && len(families) == 0 {
		return 0, fmt.Errorf("failed to read the metrics: %w", err)
	}
	for _, f := range families {
		all := f.GetMetric()
		if len(all) <= most || !slices.ContainsFunc(chosen, func(prefix string) bool { return strings.HasPrefix(f.GetName(), prefix) }) {
			continue
		}
		v := registered(f, all[0])
		if v == nil {
			continue
		}
		for _, m := range all {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if v.Delete(labels) {
				dropped++
			}
		}
	}
	return dropped, nil
}
