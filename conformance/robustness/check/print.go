package check

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// Print writes a history as two tables: what clients saw, in the order of time, and what
// etcd's log has, in the order of revisions. It is made for minimised histories.
func Print(w io.Writer, h *history.History) {
	if h == nil {
		return
	}
	if h.Schedule != "" {
		fmt.Fprintf(w, "repeat: %s\n", h.Schedule)
	}
	type line struct {
		at   int64
		text string
	}
	var lines []line
	for i := range h.Operations {
		o := &h.Operations[i]
		to := stamp(o.Return)
		if o.Outcome == history.Unknown {
			to = "…"
		}
		lines = append(lines, line{o.Call, fmt.Sprintf("%s\t%s\toperation %d\tclient %d, replica %d\t%s\t%s", stamp(o.Call), to, i, o.Client, o.Replica, request(o), answer(o))})
	}
	for i := range h.Sessions {
		s := &h.Sessions[i]
		who := fmt.Sprintf("client %d, replica %d", s.Client, s.Replica)
		lines = append(lines, line{s.Call, fmt.Sprintf("%s\t%s\tsession %d\t%s\t%s\t%s", stamp(s.Call), stamp(s.End), i, who, opening(s), s.Error)})
		for j := range s.Events {
			e := &s.Events[j]
			what := e.Type
			if e.InitialEnd {
				what += " (end of initial events)"
			}
			lines = append(lines, line{e.At, fmt.Sprintf("%s\t\tsession %d, event %d\t%s\t%s\t%s", stamp(e.At), i, j, who, what, shows(&e.Item))})
		}
	}
	for _, a := range h.Acks {
		what := fmt.Sprintf("schema %d acknowledged, storage %s", a.Schema, a.Storage)
		if a.Deleted {
			what = "CRD seen to be gone"
		}
		lines = append(lines, line{a.At, fmt.Sprintf("%s\t\tschema\t%s\t%s\tat %d", stamp(a.At), plural(a.Resource), what, a.Revision)})
	}
	for _, f := range h.Faults {
		lines = append(lines, line{f.Begin, fmt.Sprintf("%s\t%s\tfault\t\t%s\t", stamp(f.Begin), stamp(f.End), f.Name)})
	}
	for i := range h.Caches {
		c := &h.Caches[i]
		var held []string
		for j := range c.Items {
			held = append(held, fmt.Sprintf("%s@%d", c.Items[j].Name, c.Items[j].Revision))
		}
		lines = append(lines, line{c.At, fmt.Sprintf("%s\t\tcache\tclient %d, replica %d\tat %d\t%s", stamp(c.At), c.Client, c.Replica, c.Revision, strings.Join(held, " "))})
	}
	for _, l := range h.Leads {
		lines = append(lines, line{l.At, fmt.Sprintf("%s\t\tlead\t%s\ttoken %d\tat %d", stamp(l.At), l.Holder, l.Token, l.Revision)})
	}
	for _, q := range h.Quotas {
		lines = append(lines, line{q.At, fmt.Sprintf("%s\t\tquota\t\t%d of %d\tat %d", stamp(q.At), q.Count, q.Hard, q.Revision)})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "from\tto\twhat\twho\trequest\tanswer")
	for _, l := range lines {
		fmt.Fprintln(table, l.text)
	}
	table.Flush()
	if len(h.Writes) == 0 {
		return
	}
	fmt.Fprintln(table, "\nrevision\tbefore\twrite\tkey\twhat\tvalue")
	for i := range h.Writes {
		at := &h.Writes[i]
		what := "put"
		switch {
		case at.Deleted:
			what = "delete"
		case at.Created:
			what = "create"
		}
		item := at.Item
		item.Revision = 0
		fmt.Fprintf(table, "%d\t%d\twrite %d\t%s\t%s\t%s\n", at.Revision, at.Previous, i, at.Key, what, shows(&item))
	}
	table.Flush()
}

// stamp is a time in milliseconds since the run began.
func stamp(at int64) string { return fmt.Sprintf("%.3f", float64(at)/float64(time.Millisecond)) }

func request(o *history.Operation) string {
	text := describe(o)
	if o.Revision != 0 {
		text += fmt.Sprintf(" if at %d", o.Revision)
	}
	if o.UID != "" {
		text += " if " + o.UID
	}
	return text
}

func answer(o *history.Operation) string {
	text := string(o.Outcome)
	if o.Outcome == history.Refused || o.Outcome == history.Unknown {
		return strings.TrimSpace(fmt.Sprintf("%s %d %s", text, o.Code, o.Reason))
	}
	if o.Verb == history.List {
		text += fmt.Sprintf(" at %d:", o.ListRevision)
		for i := range o.Items {
			text += fmt.Sprintf(" %s@%d", o.Items[i].Name, o.Items[i].Revision)
		}
		if len(o.PageRevisions) > 1 {
			text += fmt.Sprintf(" (pages at %v)", o.PageRevisions)
		}
		return text
	}
	if o.Got.UID != "" || o.Got.Revision != 0 {
		text += " " + shows(&o.Got)
	}
	return text
}

func opening(s *history.Session) string {
	text := "watch " + plural(s.Resource)
	if s.From != 0 {
		text += fmt.Sprintf(" from %d", s.From)
	}
	if s.Initial {
		text += ", initial events"
	}
	if s.Selector != "" {
		text += ", " + s.Selector
	}
	return text
}

// shows is an item in a few words.
func shows(item *history.Item) string {
	var parts []string
	if item.Name != "" {
		parts = append(parts, item.Name)
	}
	if item.Revision != 0 {
		parts = append(parts, fmt.Sprintf("at %d", item.Revision))
	}
	if item.UID != "" {
		parts = append(parts, item.UID)
	}
	if len(item.Log) > 0 {
		parts = append(parts, tail(item.Log))
	}
	for _, manager := range slices.Sorted(maps.Keys(item.Marks)) {
		parts = append(parts, manager+"="+item.Marks[manager])
	}
	if item.Name != "" {
		parts = append(parts, fmt.Sprintf("schema %d", item.Schema))
	}
	if item.APIVersion != "" {
		parts = append(parts, item.APIVersion)
	}
	if item.Deleting {
		parts = append(parts, "deleting")
	}
	if len(item.Finalizers) > 0 {
		parts = append(parts, "finalizers "+joined(item.Finalizers))
	}
	if len(item.Owners) > 0 {
		parts = append(parts, "owners "+strings.Join(item.Owners, ","))
	}
	for _, label := range slices.Sorted(maps.Keys(item.Labels)) {
		parts = append(parts, label+"="+item.Labels[label])
	}
	return strings.Join(parts, " ")
}
