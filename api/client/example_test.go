package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/terms"
)

// A batch job is submitted, and followed until it has ended.
func Example() {
	addresses, err := client.Addresses("10.0.0.1:7460,10.0.0.2:7460")
	if err != nil {
		log.Fatal(err)
	}
	c := client.New(addresses)
	defer c.Close()
	ctx := context.Background()
	spec := &terms.Job{Name: "hello", Type: terms.Batch, Tasks: []terms.Task{{
		Name: "main", Instances: 1, Command: []string{"echo", "hi"}}}}
	if _, err := c.SubmitJob(ctx, spec, 0); err != nil {
		log.Fatal(err)
	}
	ended := errors.New("it has ended")
	err = c.Watch(ctx, &starlingv1.WatchRequest{Job: "hello", Kinds: []string{"job"}},
		func(change *starlingv1.WatchResponse) error {
			if job := change.GetJob(); job.GetFinal() {
				fmt.Println(job.GetName(), job.GetStatus())
				return ended
			}
			return nil
		})
	if !errors.Is(err, ended) {
		log.Fatal(err)
	}
}

// Changes are read from where the last connection broke, at whichever peer answers.
func ExampleClient_Watch() {
	c := client.New([]string{"10.0.0.1:7460", "10.0.0.2:7460"})
	defer c.Close()
	request := &starlingv1.WatchRequest{Kinds: []string{"endpoint"}, Job: "web"}
	for {
		err := c.Watch(context.Background(), request, func(change *starlingv1.WatchResponse) error {
			if resume := change.GetResume(); resume > 0 {
				request.After = &resume
			}
			fmt.Println(change.GetType(), change.GetName(), change.GetEndpoint().GetAddress())
			return nil
		})
		if !errors.Is(err, client.ErrUnreachable) {
			log.Fatal(err)
		}
	}
}
