package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/finding"
)

// metadata is what is read of the metadata of an object.
type metadata struct {
	Name              string     `json:"name"`
	Namespace         string     `json:"namespace"`
	DeletionTimestamp *time.Time `json:"deletionTimestamp"`
	Finalizers        []string   `json:"finalizers"`
}

// conditions are those of an object.
type conditions []struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// of returns the status of a condition, and what it says.
func (c conditions) of(name string) (status, text string) {
	for _, one := range c {
		if one.Type == name {
			return one.Status, one.Reason + ": " + one.Message
		}
	}
	return "", ""
}

// clientConfig says where a webhook is.
type clientConfig struct {
	URL     string `json:"url"`
	CA      []byte `json:"caBundle"`
	Service *struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"service"`
}

type crdVersion struct {
	Name    string `json:"name"`
	Served  bool   `json:"served"`
	Storage bool   `json:"storage"`
}

// crd is what is read of a CRD.
type crd struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
		} `json:"names"`
		Versions   []crdVersion `json:"versions"`
		Conversion struct {
			Strategy string `json:"strategy"`
			Webhook  struct {
				Client clientConfig `json:"clientConfig"`
			} `json:"webhook"`
		} `json:"conversion"`
	} `json:"spec"`
	Status struct {
		Conditions     conditions `json:"conditions"`
		StoredVersions []string   `json:"storedVersions"`
	} `json:"status"`
}

const (
	// maxProbes bounds the lists that try conversion webhooks.
	maxProbes = 50
	// stuck is how long a deletion may take.
	stuck = 5 * time.Minute
)

// crds looks at all CRDs, and tries their conversion webhooks.
func (e *examination) crds(ctx context.Context) error {
	var probes []crd
	err := cluster.Read(ctx, e.from, func(name string, text []byte) error {
		var c crd
		if err := json.Unmarshal(text, &c); err != nil {
			return fmt.Errorf("the CRD %s: %w", name, err)
		}
		e.crd(&c)
		if c.Spec.Conversion.Strategy == "Webhook" && len(probes) < maxProbes {
			probes = append(probes, c)
		}
		return nil
	})
	for i := range probes {
		e.conversion(ctx, &probes[i])
	}
	return err
}

// crd looks at one CRD.
func (e *examination) crd(c *crd) {
	where := "CRD " + c.Metadata.Name
	if status, text := c.Status.Conditions.of("NamesAccepted"); status == "False" {
		e.add(Finding{Check: "crd-names", Severity: finding.Error, Where: where, Message: "its names are not accepted: " + text,
			Why: "Its objects are not served: another CRD has the name.", Fix: "delete one of both CRDs, or give it other names"})
	} else if status, text := c.Status.Conditions.of("Established"); status != "True" && c.Metadata.DeletionTimestamp == nil {
		e.add(Finding{Check: "crd-not-established", Severity: finding.Error, Where: where, Message: "it is not established (" + text + ")",
			Why: "Its objects are not served.", Fix: "see its conditions: kubectl get crd " + c.Metadata.Name + " -o yaml"})
	}
	if status, text := c.Status.Conditions.of("NonStructuralSchema"); status == "True" {
		e.add(Finding{Check: "crd-non-structural", Severity: finding.Warning, Where: where, Message: "its schema is not structural: " + text,
			Why: "Pruning and defaults do not work, and the CRD cannot be changed in apiextensions.k8s.io/v1.", Fix: "correct the schema: kubectl get crd " + c.Metadata.Name + " -o yaml | espalier check -"})
	}
	if at := c.Metadata.DeletionTimestamp; at != nil && e.now.Sub(*at) > stuck {
		_, text := c.Status.Conditions.of("Terminating")
		e.add(Finding{Check: "crd-terminating", Severity: finding.Warning, Where: where, Message: fmt.Sprintf("it has been deleted for %s (%s; finalizers: %s)", about(e.now.Sub(*at)), text, strings.Join(c.Metadata.Finalizers, ", ")),
			Why: "Its objects have finalizers, or cannot be deleted.", Fix: "see which objects are left: kubectl get " + c.Metadata.Name + " -A"})
	}
	for _, stored := range c.Status.StoredVersions {
		at := slices.IndexFunc(c.Spec.Versions, func(v crdVersion) bool { return v.Name == stored })
		switch {
		case at < 0:
			e.add(Finding{Check: "crd-stored-version-gone", Severity: finding.Error, Where: where, Message: "status.storedVersions has " + stored + ", which is no version of it",
				Why: "Objects that are stored in it cannot be read.", Fix: "add the version again, with served: false; rewrite the objects (espalier migrate " + c.Metadata.Name + "); then remove it"})
		case !c.Spec.Versions[at].Served && !c.Spec.Versions[at].Storage:
			e.add(Finding{Check: "crd-stored-version-unserved", Severity: finding.Warning, Where: where, Message: "objects may be stored in " + stored + ", which is not served any more",
				Why: "The version cannot be removed as long as it is in status.storedVersions.", Fix: "rewrite the objects: espalier migrate " + c.Metadata.Name})
		}
	}
}

// conversion tries the conversion webhook of a CRD: the server converts an object in a list of one, if there are any.
func (e *examination) conversion(ctx context.Context, c *crd) {
	where := "CRD " + c.Metadata.Name
	e.bundle(where, c.Spec.Conversion.Webhook.Client.CA, finding.Error)
	for _, v := range c.Spec.Versions {
		if !v.Served || v.Storage {
			continue
		}
		path := "/apis/" + url.PathEscape(c.Spec.Group) + "/" + url.PathEscape(v.Name) + "/" + url.PathEscape(c.Spec.Names.Plural) + "?limit=1"
		_, err := cluster.List(ctx, e.from, path, func([]byte) error { return nil })
		switch reason := cluster.Reason(err); {
		case err == nil || ctx.Err() != nil:
		case reason == "Forbidden":
			e.skip("conversion of "+c.Metadata.Name, reasonOf(err))
		default:
			e.add(Finding{Check: "conversion-fails", Severity: finding.Error, Where: where, Message: "its objects cannot be read as " + v.Name + ": " + err.Error(),
				Why: "The server asks the conversion webhook " + c.Spec.Conversion.Webhook.Client.String() + ", and does not get an answer that it can use.", Fix: "check that the webhook runs, and that caBundle has its CA; on an Espalier server also --webhook-allowed-networks"})
		}
	}
}

// String says where a webhook is.
func (c clientConfig) String() string {
	if c.Service != nil {
		return "at the Service " + c.Service.Namespace + "/" + c.Service.Name
	}
	return "at " + c.URL
}

// bundle looks at the CAs of a webhook.
func (e *examination) bundle(where string, ca []byte, severity finding.Severity) {
	all := certificates(ca)
	if len(ca) > 0 && len(all) == 0 {
		e.add(Finding{Check: "webhook-ca-invalid", Severity: severity, Where: where, Message: "caBundle has no certificate in PEM",
			Why: "The server accepts no certificate of the webhook.", Fix: "put the CA of the webhook into caBundle"})
	}
	for _, c := range all {
		e.expiry("webhook-ca", where, "the CA certificate "+c.Subject.CommonName+" in caBundle", c, severity, "put the new CA of the webhook into caBundle")
	}
}
