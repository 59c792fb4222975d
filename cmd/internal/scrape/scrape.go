package scrape

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The bounds of a reading. A large kube-apiserver has some 30 MB and 200,000 samples.
const (
	maxBytes   = 512 << 20
	maxLine    = 1 << 20
	maxSamples = 500_000
)

// A Sample is one value of a metric.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Metrics are samples by the name of their metric.
type Metrics map[string][]Sample

// Read reads the samples of the metrics that are wanted.
func Read(r io.Reader, wanted func(name string) bool) (Metrics, error) {
	limited := &io.LimitedReader{R: r, N: maxBytes}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	m, n := Metrics{}, 0
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name := line[:max(0, strings.IndexAny(line, "{ \t"))]
		if !wanted(name) {
			continue
		}
		s, err := parse(line[len(name):])
		if err != nil {
			return nil, fmt.Errorf("the metric %s: %w", name, err)
		}
		if n++; n > maxSamples {
			return nil, fmt.Errorf("there are more than %d samples", maxSamples)
		}
		m[name] = append(m[name], s)
	}
	if limited.N <= 0 {
		return nil, fmt.Errorf("the metrics have more than %d MiB", maxBytes>>20)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return m, nil
}

var errLine = errors.New("it is not in Prometheus' text format")

// parse reads what follows the name: labels and a value.
func parse(text string) (s Sample, err error) {
	if strings.HasPrefix(text, "{") {
		if s.Labels, text, err = parseLabels(text[1:]); err != nil {
			return s, err
		}
	}
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return s, errLine
	}
	if s.Value, err = strconv.ParseFloat(fields[0], 64); err != nil {
		return s, errLine
	}
	return s, nil
}

var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// parseLabels reads labels up to the closing brace.
func parseLabels(text string) (labels map[string]string, rest string, err error) {
	labels = map[string]string{}
	for {
		text = strings.TrimLeft(text, ", ")
		if after, ok := strings.CutPrefix(text, "}"); ok {
			return labels, after, nil
		}
		name, after, ok := strings.Cut(text, `="`)
		if !ok {
			return nil, "", errLine
		}
		end := 0
		for end < len(after) && after[end] != '"' {
			if after[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(after) {
			return nil, "", errLine
		}
		labels[name] = unescape.Replace(after[:end])
		text = after[end+1:]
	}
}

// Sum adds up the samples of a metric by some of their labels.
func (m Metrics) Sum(name string, by ...string) []Sample {
	sums := map[string]*Sample{}
	for _, s := range m[name] {
		labels := map[string]string{}
		for _, l := range by {
			labels[l] = s.Labels[l]
		}
		k := key(labels)
		if sums[k] == nil {
			sums[k] = &Sample{Labels: labels}
		}
		sums[k].Value += s.Value
	}
	var all []Sample
	for _, k := range slices.Sorted(maps.Keys(sums)) {
		all = append(all, *sums[k])
	}
	return all
}

// key is the same for the same labels.
func key(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "%s=%q,", name, labels[name])
	}
	return b.String()
}

// Since returns by how much each sample has grown since a former reading. What has shrunk belongs to a
// server that was restarted, or to another replica: it counts as a whole.
func (m Metrics) Since(former Metrics) Metrics {
	grown := Metrics{}
	for name, samples := range m {
		before := map[string]float64{}
		for _, s := range former[name] {
			before[key(s.Labels)] = s.Value
		}
		for _, s := range samples {
			if was := before[key(s.Labels)]; s.Value >= was {
				s.Value -= was
			}
			grown[name] = append(grown[name], s)
		}
	}
	return grown
}

// Value returns the sum of all samples of a metric whose labels have these values, and whether there is one.
func (m Metrics) Value(name string, labels ...string) (sum float64, ok bool) {
	for _, s := range m[name] {
		if s.Has(labels...) {
			sum, ok = sum+s.Value, true
		}
	}
	return sum, ok
}

// Has reports whether labels, given as name, value, name, value, are those of the sample.
func (s Sample) Has(labels ...string) bool {
	for i := 0; i+1 < len(labels); i += 2 {
		if s.Labels[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}

// Quantile estimates a quantile of the histogram of a name, of the samples whose labels have these values, in the
// unit of the histogram: the upper bound of the bucket that it is in. It is not a number if there is no observation, and infinite beyond
// the last bound.
func (m Metrics) Quantile(q float64, name string, labels ...string) float64 {
	sums := map[float64]float64{}
	for _, s := range m[name+"_bucket"] {
		if bound, err := strconv.ParseFloat(s.Labels["le"], 64); err == nil && s.Has(labels...) {
			sums[bound] += s.Value
		}
	}
	bounds := slices.SortedFunc(maps.Keys(sums), cmp.Compare[float64])
	if len(bounds) == 0 {
		return math.NaN()
	}
	total := sums[bounds[len(bounds)-1]]
	if total == 0 {
		return math.NaN()
	}
	for _, bound := range bounds {
		if sums[bound] >= q*total {
			return bound
		}
	}
	return math.Inf(1)
}
