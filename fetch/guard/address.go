// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"syscall"

	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// hops sends each request, also of redirects.
type hops struct{ *Client }

// RoundTrip checks the address of a URL that a server has chosen. A server that was found at a loopback address without its own doing stays
// allowed there.
func (c hops) RoundTrip(request *http.Request) (*http.Response, error) {
	what, at := trustOf(request.Context()), server(request.URL)
	found, _ := c.local.Load(at)
	local := found == true
	what.led = (what.led || request.Response != nil) && (!local || at != what.first)
	if what.led && local { // A connection that is kept is not checked again.
		return nil, &modeluri.AddressError{Addr: netip.IPv6Loopback(), Loopback: true}
	}
	if _, err := modeluri.Host(request.URL, what.led); err != nil && !what.agent {
		return nil, err
	}
	if proxy, err := c.proxyOf(request); err != nil || proxy != nil {
		what.led = false // What a proxy connects to is its decision, and it may have a loopback address itself.
	} else {
		what.direct = at
	}
	return c.transport.RoundTrip(request.WithContext(context.WithValue(request.Context(), trustKey{}, what)))
}

// control checks an address after the name is resolved and before it is connected to, so that no later answer of
// the name server can differ.
func (c *Client) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	what := trustOf(ctx)
	if what.agent && slices.Contains(agents, target.Addr()) {
		return nil
	}
	if what.direct != "" && !what.led { // What was elsewhere at first, a name server has moved since.
		loopback := modeluri.IsLoopback(target.Addr())
		first, _ := c.local.LoadOrStore(what.direct, loopback)
		what.led = loopback && first == false
	}
	return modeluri.CheckAddress(target.Addr(), what.led)
}
