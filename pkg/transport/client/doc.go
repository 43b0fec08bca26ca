// Package client talks to a PodMQ broker over its Unix socket.
//
//	c, err := client.New(client.Config{}) // PODMQ_SOCKET says where
//	placed, err := c.Publish(ctx, "orders", client.Message{Key: []byte("user-a"), Payload: order})
//
//	err = c.Consume(ctx, client.ConsumeConfig{Topic: "orders", Group: "billing"},
//		func(ctx context.Context, d *client.Delivery) error {
//			return bill(ctx, d.Payload) // nil acks it, an error hands it out again
//		})
//
// Consume is what most programs want: it polls, acks, renews leases and outlives
// restarts of the broker. Below it stands the broker's whole HTTP API, a method
// for each call, in the words of pkg/core.
//
// # Errors
//
// What the broker refused is a *core.Error: switch on its Code, ask Retryable
// and RetryAfter when to try again. Every other error comes from the connection
// or the context, and then what became of the call may not be known; Unknown
// tells.
//
// # What is repeated, and what is not
//
// A call that finds nobody listening dials again for Config.DialRetry: nothing
// was sent yet, so this is safe for every call, and a restarting broker costs its
// clients no error. Nothing else is repeated. A publish whose answer is lost may
// have been stored, and only the caller knows whether it may be stored twice.
// (Consume repeats its polls and acks, which are made to be repeated.)
//
// The package does not start a broker, keeps nothing but connections, and logs
// nothing but what Consume would otherwise have to swallow. A Client is safe for
// concurrent use.
package client
