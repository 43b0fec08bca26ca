package client_test

import (
	"context"
	"errors"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/client"
)

// A worker that ends on SIGTERM, and gives back what it has in hand.
func ExampleClient_Consume() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := client.New(client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	err = c.Consume(ctx, client.ConsumeConfig{Topic: "orders", Group: "billing"}, func(ctx context.Context, d *client.Delivery) error {
		log.Printf("%d:%d %s", d.Partition, d.Offset, d.Payload)
		return nil
	})
	log.Print(err) // the cause of the end of ctx
}

// A publish that waits for room, and what its errors mean.
func ExampleClient_Publish() {
	c, err := client.New(client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	_, err = c.Publish(context.Background(), "orders", client.Message{Key: []byte("user-a"), Payload: []byte("order 7")}, client.Wait(5*time.Second))
	var refused *core.Error
	switch {
	case err == nil: // stored
	case errors.As(err, &refused) && refused.Retryable(): // not stored: try again after refused.RetryAfter
	case client.Unknown(err): // perhaps stored
	}
}
