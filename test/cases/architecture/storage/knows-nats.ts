// Only the replicated store and the cluster know NATS.
import '@nats-io/transport-node'
