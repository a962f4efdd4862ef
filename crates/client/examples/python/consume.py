"""Takes deliveries of a pull endpoint, and acknowledges each after its effect.

    pip install grpcio grpcio-tools
    mkdir gen && python -m grpc_tools.protoc -I proto --python_out=gen --grpc_python_out=gen proto/turnbuckle/v1/*.proto
    PYTHONPATH=gen TURNBUCKLE_TOKEN=... python crates/client/examples/python/consume.py 127.0.0.1:7420 tenants/acme/endpoints/billing
"""

import os
import queue
import sys
import time

import grpc
from turnbuckle.v1.pull_pb2 import PullActions, PullOpen, PullStreamRequest
from turnbuckle.v1.pull_pb2_grpc import PullStub

server, endpoint = sys.argv[1:3]
metadata = [("authorization", "Bearer " + os.environ["TURNBUCKLE_TOKEN"])]
done = set()  # a service keeps these keys with its effects, in the same transaction


def consume(stub):
    said = queue.SimpleQueue()  # what we say; None would end the stream
    said.put(PullStreamRequest(open=PullOpen(endpoint=endpoint, max_outstanding=10)))
    for message in stub.Stream(iter(said.get, None), metadata=metadata):
        for delivery in message.deliveries.deliveries:
            if delivery.idempotency_key not in done:
                print(delivery.event.event_id, delivery.event.data.decode(), flush=True)
                done.add(delivery.idempotency_key)
            said.put(PullStreamRequest(actions=PullActions(acks=[delivery.lease_token])))


with grpc.insecure_channel(server) as channel:
    while True:
        try:
            consume(PullStub(channel))
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE:
                raise
            time.sleep(1)
