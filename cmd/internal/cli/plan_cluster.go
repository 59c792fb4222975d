package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/version"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/impact"
	"github.com/espalier-dev/espalier/crd/manifest"
)

// planCluster plans with the objects of a cluster.
func (a *App) planCluster(ctx context.Context, after map[string]*manifest.Document, o *planOptions) (report.Plans, error) {
	var plans report.Plans
	for _, name := range sortedNames(after) {
		old, err := cluster.CRD(ctx, o.from, name)
		if err != nil {
			return nil, fmt.Errorf("%w\nSee that kubectl can read it: kubectl get crd %s%s", err, name, kubectlFlags(o.from))
		}
		if len(old) == 0 {
			old = nil
		}
		p, err := newPlanning(after[name], old, o.from.String(), o.list)
		if err != nil {
			return nil, err
		}
		plan := p.created("the " + o.from.String())
		if old != nil {
			p.Unplanned = ""
			if plan, err = a.planExisting(ctx, p, o); err != nil {
				return nil, err
			}
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

// planExisting has the server plan, if it can, or reads the objects.
func (a *App) planExisting(ctx context.Context, p *planning, o *planOptions) (*report.Plan, error) {
	err := a.planOnServer(ctx, p, o)
	switch reason := cluster.Reason(err); {
	case err == nil:
		return p.Plan, nil
	case reason == "NotFound" || reason == "MethodNotAllowed":
		// Another server.
	case reason == "Forbidden":
		p.Notes = append(p.Notes, "the server did not let you plan on it (create customresourcedefinitions/plan in apiextensions.k8s.io); plan read the objects instead")
	default:
		return nil, fmt.Errorf("planning %s on the %s failed: %w", p.CRD, o.from, err)
	}
	if err := p.compile(true); err != nil {
		return nil, err
	}
	if p.change != nil {
		if err := a.planListed(ctx, p, o); err != nil {
			return nil, fmt.Errorf("reading the objects of %s in the %s failed: %w", p.CRD, o.from, err)
		}
	}
	return p.finish(ctx)
}

// planAnswer is a page of a plan that a server has made.
type planAnswer struct {
	Kind       string         `json:"kind"`
	APIVersion string         `json:"apiVersion"`
	Generation int64          `json:"generation"`
	Revision   string         `json:"revision"`
	Digest     string         `json:"digest"`
	ID         string         `json:"id"`
	Total      int64          `json:"total"`
	Continue   string         `json:"continue"`
	Refused    []string       `json:"refused"`
	Summary    impact.Summary `json:"summary"`
}

const (
	planAPI          = "plan.espalier.dev/v1alpha1"
	approvedPlan     = "espalier.dev/approved-plan"
	maxPlanAttempts  = 3
	objectsInOnePage = 500 // of a list
)

// errChanged ends a plan whose pages do not belong together.
var errChanged = errors.New("the CRD changes all the time: plan again later")

// planOnServer has the server make the plan. The pages of a plan belong to one revision; if the
// server has forgotten it, or the CRD has changed, the plan starts again.
func (a *App) planOnServer(ctx context.Context, p *planning, o *planOptions) (err error) {
	for range maxPlanAttempts {
		summary := impact.Summary{Most: o.list}
		var last planAnswer
		if last, err = a.planPages(ctx, p, o, &summary); err == nil {
			p.answered(&last, summary, o.from)
			return nil
		}
		if cluster.Reason(err) != "Expired" && !errors.Is(err, errChanged) {
			return err
		}
	}
	return err
}

// planPages adds all pages of a plan.
func (a *App) planPages(ctx context.Context, p *planning, o *planOptions, into *impact.Summary) (last planAnswer, err error) {
	bar := &progress{}
	defer func() { bar.stop() }()
	for first := true; first || last.Continue != ""; first = false {
		query := url.Values{"list": {strconv.Itoa(o.list)}}
		if last.Continue != "" {
			query.Set("continue", last.Continue)
		}
		text, err := cluster.Post(ctx, o.from, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+p.CRD+"/plan?"+query.Encode(), p.document.JSON)
		if err != nil {
			return last, err
		}
		var page planAnswer
		if err := json.Unmarshal(text, &page); err != nil || page.Kind != "Plan" || page.APIVersion != planAPI {
			return last, fmt.Errorf("this espalier does not understand the server's answer (%s %s, not Plan of %s): use the release of the server", page.Kind, page.APIVersion, planAPI)
		}
		switch {
		case first:
			bar = a.progress(int(min(page.Total, 1<<40)), "objects")
		case page.ID != last.ID:
			return last, errChanged
		case page.Continue != "" && page.Continue == last.Continue:
			return last, errors.New("the server answers the same page again")
		}
		bar.add(int(page.Summary.Objects))
		into.Merge(&page.Summary)
		last = page
	}
	return last, nil
}

// plainID is what an identifier of a plan looks like: users paste it into a shell.
var plainID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`)

// answered fills in what the server has answered.
func (p *planning) answered(last *planAnswer, summary impact.Summary, from cluster.Source) {
	p.Summary = summary
	p.complete()
	p.Generation, p.Revision, p.Digest, p.ID = last.Generation, last.Revision, last.Digest, last.ID
	for _, message := range last.Refused {
		if !slices.ContainsFunc(p.Refused, func(n report.Note) bool { return n.Message == message }) {
			p.refuse(message, 0)
		}
	}
	if len(last.Refused) > 0 && last.ID == "" {
		p.Unplanned = unknownUntilCorrect
	}
	if p.Summary.Losing > 0 && len(p.Refused) == 0 && plainID.MatchString(p.ID) {
		p.Approve = fmt.Sprintf("kubectl annotate --overwrite crd %s %s=%s%s", p.CRD, approvedPlan, p.ID, kubectlFlags(from))
		p.Notes = append(p.Notes, fmt.Sprintf("if you approve the plan, put the annotation %s into %s as well, so that applying the file keeps it", approvedPlan, p.File))
	}
}

// planListed reads the objects as clients do, in pages. If the server forgets the revision of a
// list, the pages of the next attempt are larger, so that it takes fewer of them.
func (a *App) planListed(ctx context.Context, p *planning, o *planOptions) (err error) {
	read := readVersion(p.old)
	if read == "" {
		p.Unplanned = "the server serves no version of it: its objects cannot be read"
		return nil
	}
	p.Notes = append(p.Notes, fmt.Sprintf("this server does not show in which version an object is stored: plan read them as clients do, in %s; status.storedVersions: %s",
		read, strings.Join(p.old.Status.StoredVersions, ", ")))
	for limit := objectsInOnePage; limit < objectsInOnePage*64; limit *= 4 {
		p.Summary, p.batch, p.size = impact.Summary{Most: o.list}, nil, 0
		if err = a.planList(ctx, p, o, read, limit); cluster.Reason(err) != "Expired" {
			return err
		}
	}
	return err
}

func (a *App) planList(ctx context.Context, p *planning, o *planOptions, read string, limit int) error {
	path := "/apis/" + url.PathEscape(p.old.Group) + "/" + url.PathEscape(read) + "/" + url.PathEscape(p.old.Plural) + "?"
	bar := &progress{}
	defer func() { bar.stop() }()
	last := ""
	for first := true; first || last != ""; first = false {
		query := url.Values{"limit": {strconv.Itoa(limit)}}
		if last != "" {
			query.Set("continue", last)
		}
		n := 0
		page, err := cluster.List(ctx, o.from, path+query.Encode(), func(object []byte) error {
			n++
			return p.add(ctx, object)
		})
		switch {
		case err != nil:
			return err
		case first:
			bar = a.progress(n+int(min(page.Remaining, 1<<40)), "objects")
		case page.Continue != "" && page.Continue == last:
			return errors.New("the server answers the same page again")
		}
		bar.add(n)
		last = page.Continue
	}
	return nil
}

// readVersion is the version in which objects are read: that of storage if it is served, or else
// the newest that is.
func readVersion(d *crd.CRD) string {
	newest := ""
	for i := range d.Versions {
		v := &d.Versions[i]
		switch {
		case !v.Served:
		case v.Storage:
			return v.Name
		case newest == "" || version.CompareKubeAwareVersionStrings(v.Name, newest) > 0:
			newest = v.Name
		}
	}
	return newest
}
