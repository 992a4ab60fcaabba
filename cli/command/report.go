// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/modelbox-operator/modelbox-operator/cli/adopt"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

// printReport prints what Deployments would become: a kind if that can be, or else the other one.
func (o *adoptOptions) printReport(ctx context.Context, kind *kinds.Kind, args []string) error {
	if len(args) > 0 || o.apply || o.dryRun || o.force || o.all && len(o.files.names) > 0 {
		return usage("--report is for a namespace, for all with -A, or for manifests with -f, and writes nothing")
	}
	list, namespace, err := o.lister()
	if err != nil {
		return err
	}
	preferred := slices.DeleteFunc(slices.Clone(kinds.All), func(k *kinds.Kind) bool { return k == kind || !hasHistory(k) })
	report, err := adopt.NewReport(ctx, list, namespace, append([]*kinds.Kind{kind}, preferred...))
	if err != nil {
		return fmt.Errorf("reading Deployments: %w", err)
	}
	for _, what := range report.NotConsidered {
		fmt.Fprintln(o.ErrOut, "not considered:", what)
	}
	return o.print(o.output, report, func(w io.Writer) error { return o.writeReport(w, report) })
}

// lister returns what lists the objects of the files, or of the cluster, and in which namespace.
func (o *adoptOptions) lister() (list adopt.Lister, namespace string, err error) {
	if len(o.files.names) == 0 {
		c, namespace, err := o.connect()
		if o.all {
			namespace = metav1.NamespaceAll
		}
		return adopt.InCluster(c), namespace, err
	}
	docs, err := o.files.read(&o.Env, "report on")
	var objects []*unstructured.Unstructured
	for _, doc := range docs {
		if doc.Err != nil {
			fmt.Fprintf(o.ErrOut, "not considered: %s:%d: %v\n", doc.File, doc.Line, doc.Err)
			continue
		}
		doc.Object.SetNamespace(cmp.Or(doc.Object.GetNamespace(), *o.Namespace, metav1.NamespaceDefault))
		objects = append(objects, doc.Object)
	}
	return adopt.InManifests(objects), metav1.NamespaceAll, err
}

// writeReport writes a row for each Deployment, with the types of its risks. Claims and Services have
// columns of their own, unless they could not be listed.
func (o *adoptOptions) writeReport(w io.Writer, report *adopt.Report) error {
	columns := slices.DeleteFunc([]string{"PersistentVolumeClaim", "Service"}, func(kind string) bool { return slices.Contains(report.Hidden, kind) })
	table, refused := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0), 0
	write := func(cells ...string) {
		for i := range cells {
			cells[i] = cmp.Or(cells[i], "-")
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	write(strings.ToUpper("namespace\tname\tbecomes\trisks\t" + strings.Join(append(columns, "why not"), "\t")))
	for _, row := range report.Deployments {
		risks := map[string][]string{} // By their column, "" for those without one.
		for _, risk := range row.Risks {
			if slices.Contains(columns, risk.Type) {
				risks[risk.Type] = append(risks[risk.Type], risk.Name)
			} else if !slices.Contains(risks[""], risk.Type) {
				risks[""] = append(risks[""], risk.Type)
			}
		}
		cells := []string{row.Namespace, row.Name, row.Becomes, strings.Join(risks[""], ",")}
		for _, column := range columns {
			cells = append(cells, strings.Join(risks[column], ","))
		}
		why, _, _ := strings.Cut(row.Refused, "\n")
		if write(append(cells, why)...); why != "" {
			refused++
		}
	}
	err := table.Flush()
	fmt.Fprintf(o.ErrOut, "%s: %d can be adopted, %d cannot; left out: %d that objects of the five kinds control\n",
		counted(len(report.Deployments), "Deployment"), len(report.Deployments)-refused, refused, report.Controlled)
	return err
}
