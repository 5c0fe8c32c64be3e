/** How the figures of the producer stand in the text of GET /metrics: names and units as Prometheus advises, each with its help. */
import type { FieldExposition, RecordExposition } from '../metrics/metric.ts'

const gauge = (name: string, help: string): FieldExposition => ({ name, help, isCounter: false })
const counter = (name: string, help: string): FieldExposition => ({ name, help, isCounter: true })

/** `producer.stats`. It names no tenant, identity, channel or source, because anybody on this machine may scrape it. */
export const statsExposition: RecordExposition = {
  info: ['software', 'name', 'generation'],
  fields: {
    uptime: gauge('uptime_seconds', 'Time since the server started.'),
    connections: gauge('connections', 'Connections that are logged in.'),
    channels: gauge('channels', 'Channels that exist.'),
    unstored_bytes: gauge('unstored_bytes', 'Bytes of values that are not on the disk yet.'),
    resident_bytes: gauge('resident_bytes', 'Memory of the process.'),
    storage: { ...gauge('storage_ok', 'Whether values are stored: 0 if the disk is full or has failed.'), is: 'ok' },
    faults: counter('faults', 'Exceptions in the code of the server since it started.'),
    unauthenticated_connections: gauge('unauthenticated_connections', 'Connections that are not logged in.'),
    evicted_connections: counter('evicted_connections', 'Connections that gave way to others before they logged in.'),
    refused_connections: counter('refused_connections', 'Connections that found no place.'),
    refused_passwords: counter('refused_passwords', 'Passwords that found no place among those to be checked.'),
    refused_approvals: counter('refused_approvals', 'EXECUTEs that found no place to wait for approval.'),
    refused_scrapes: counter('refused_scrapes', 'Requests of GET /metrics that were refused, or cut off.'),
    open_files: gauge('open_files', 'Files and connections that the process has open.'),
    max_open_files: gauge('max_open_files', 'How many it may have open.'),
    refused_source_connections: counter(
      'refused_source_connections',
      'Connections of sources that were refused because too few file descriptors were left.',
    ),
    forgotten_names: counter('forgotten_names', 'Names of lost channels whose losses no GAP reports.'),
    backup_copied_bytes: gauge('backup_copied_bytes', 'Bytes that the backup in progress has copied.'),
    backup_total_bytes: gauge('backup_bytes', 'Bytes of the backup in progress.'),
    disk_size_bytes: gauge('disk_size_bytes', 'Size of the file system with the data directory.'),
    disk_free_bytes: gauge('disk_free_bytes', 'Space on it that is left for the server.'),
    accepted_values: counter('accepted_values', 'Values that channels have accepted since the server started.'),
    sent_values: counter('sent_values', 'Values that were sent to connections since the server started.'),
    audit_records: counter('audit_records', 'The number of the newest record of the audit log.'),
    dropped_last_hour: {
      ...gauge('dropped_last_hour', 'Values that all channels have dropped in the last hour.'),
      label: 'cause',
    },
  },
}

/** `producer.channels`: the ledger of each channel, its lag and its losses. */
export const channelsExposition: RecordExposition = {
  labels: { channel: 'channel', identity: 'identity', name: 'name' },
  after: 'channel',
  fields: {
    state: { ...gauge('connected', 'Whether a connection takes the values of the channel.'), is: 'connected' },
    durable: gauge('durable', 'Whether its values are stored.'),
    accepted: counter('accepted', 'Values that the channel has accepted.'),
    committed: counter('committed', 'Values that its consumer has committed.'),
    in_flight: gauge('in_flight', 'Values that were sent and are not committed.'),
    queued: gauge('queued', 'Values that wait to be sent.'),
    queued_bytes: gauge('queued_bytes', 'Bytes of all values that are not committed.'),
    unstored: gauge('unstored', 'Values that are not on the disk yet.'),
    gaps: counter('gaps', 'Losses that were reported to its consumer.'),
    oldest: {
      ...gauge('lag_seconds', 'Age of the oldest value that is not committed; 0 if there is none.'),
      convert: 'age',
    },
    dropped: { ...counter('dropped', 'Values that were lost, by the reason.'), label: 'cause' },
    bound: gauge('bindings', 'Metric ids that are bound to it.'),
    max_bytes: gauge('max_bytes', 'Bytes of values that may wait in it.'),
    max_age_ms: { ...gauge('max_age_seconds', 'How long a value may wait in it.'), convert: 'milliseconds' },
  },
}

/** `producer.sensors`: some counters of sources are sums since the start, others say how much there is now. */
export const sensorsExposition: RecordExposition = {
  labels: { name: 'sensor' },
  fields: {
    state: { ...gauge('failed', 'Whether the sensor has failed.'), is: 'failed' },
    counters: { name: 'counters', help: 'The counters of the sensor, as producer.sensors has them.', label: 'counter' },
  },
}
