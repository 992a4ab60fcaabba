// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/kinds/sizes"
)

// sizesFlag names the file with the sizes of the cluster, or the namespace of the ConfigMap that
// has it.
type sizesFlag struct{ file, operator string }

func (f *sizesFlag) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "sizes", "", "file with the sizes of the cluster, which is checked too")
	_ = cmd.MarkFlagFilename("sizes", "yaml", "yml", "json") // The flag exists.
}

// bindCluster binds the flag of the namespace as well.
func (f *sizesFlag) bindCluster(cmd *cobra.Command) {
	f.bind(cmd)
	cmd.Flags().StringVar(&f.operator, "operator-namespace", "modelbox-system", "namespace of the ConfigMap modelbox-sizes")
}

// read returns the sizes, nil without a file.
func (f *sizesFlag) read() (modelbox.Sizes, error) {
	if f.file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(f.file)
	if err != nil {
		return nil, err
	}
	return parse(f.file, data)
}

func parse(of string, data []byte) (modelbox.Sizes, error) {
	out, errs := sizes.Parse(data)
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s: %s", of, rules.FormatErrors(errs))
	}
	return out, nil
}

type sizesOptions struct {
	clusterFlags
	file   sizesFlag
	output string
}

func newSizes(env Env) *cobra.Command {
	o := &sizesOptions{clusterFlags: newClusterFlags(env)}
	cmd := &cobra.Command{
		Use:     "sizes",
		GroupID: online,
		Short:   "List the sizes of the cluster, and which of them you may use",
		Long: `List the sizes that the platform of the cluster defines for resourceType of ModelBoxes, from the ConfigMap
modelbox-sizes or from a file. MAY USE is what the API server answers for the namespace; without a cluster it is "-".`,
		Example: `  {} sizes -n team
  {} sizes --sizes sizes.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.file.bindCluster(cmd)
	o.AddFlags(cmd.Flags())
	bindOutput(cmd, &o.output, "text", "json", "yaml")
	return cmd
}

// sizeRow is a size as it is listed.
type sizeRow struct {
	Name         string `json:"name"`
	CPU          string `json:"cpu"`
	Memory       string `json:"memory"`
	Accelerators string `json:"accelerators"`
	Image        string `json:"image"`
	MayUse       string `json:"mayUse"`
	Description  string `json:"description"`
}

func (o *sizesOptions) run(ctx context.Context) error {
	c, namespace, unreachable := o.connect()
	if unreachable != nil && o.file.file == "" {
		return unreachable
	}
	data, err := o.file.text(ctx, c)
	if err != nil {
		return err
	}
	file, errs := sizes.Decode(data)
	if len(errs) > 0 {
		return fmt.Errorf("the sizes are invalid: %s", rules.FormatErrors(errs))
	}
	rows := []sizeRow{}
	for _, name := range slices.Sorted(maps.Keys(file.Sizes)) {
		row := rowOf(name, file.Sizes[name])
		if unreachable == nil {
			may, err := allowed(ctx, c, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "use", Group: rights, Resource: "sizes", Name: name})
			if err != nil {
				return err
			}
			row.MayUse = map[bool]string{true: "yes", false: "no"}[may]
		}
		rows = append(rows, row)
	}
	return o.print(o.output, rows, func(w io.Writer) error {
		table := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
		fmt.Fprintln(table, "NAME\tCPU\tMEMORY\tACCELERATORS\tIMAGE\tMAY USE\tDESCRIPTION")
		for _, r := range rows {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.CPU, r.Memory, r.Accelerators, r.Image, r.MayUse, r.Description)
		}
		return table.Flush()
	})
}

func rowOf(name string, size sizes.Size) sizeRow {
	row := sizeRow{Name: name, CPU: "-", Memory: "-", Accelerators: "-", Image: "-", MayUse: "-", Description: size.Description}
	for name, set := range map[corev1.ResourceName]*string{
		corev1.ResourceCPU: &row.CPU, corev1.ResourceMemory: &row.Memory, corev1.ResourceName(rules.Device(&size.Resources)): &row.Accelerators,
	} {
		if limit, ok := size.Resources.Limits[name]; ok {
			*set = limit.String()
		} else if request, ok := size.Resources.Requests[name]; ok {
			*set = request.String()
		}
	}
	if size.Server != nil {
		row.Image = size.Server.Image
	}
	return row
}

// text returns the file, or that of the ConfigMap.
func (f *sizesFlag) text(ctx context.Context, c client.Client) ([]byte, error) {
	if f.file != "" {
		return os.ReadFile(f.file)
	}
	stored := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: f.operator, Name: "modelbox-sizes"}, stored); err != nil {
		return nil, fmt.Errorf("%w; name a file with --sizes", err)
	}
	return []byte(stored.Data["sizes.yaml"]), nil
}

// rights is the API group of what exists in RBAC only.
const rights = "rights.modelbox-operator.github.io"

// allowed asks the API server whether the user may do something.
func allowed(ctx context.Context, c client.Client, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking whether you may %s %s %s: %w", what.Verb, what.Resource, what.Name, err)
	}
	return review.Status.Allowed, nil
}
