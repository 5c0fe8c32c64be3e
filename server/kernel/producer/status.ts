/**
 * `producer.sensors`, `producer.stats` and `producer.channels`: what each source accepted and refused, the state of the
 * producer as a whole, and the ledger of each channel.
 */

import { performance } from 'node:perf_hooks'
import { formatIdentity } from '../../../auth/identity.ts'
import { ADMIN_ROLE, type Identity, maySee } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { BackupProgress } from '../../../storage/store.ts'
import type { FileSystemSpace, Quotas } from '../accounts/quotas.ts'
import type { Channel } from '../channels/channel.ts'
import { type Drops, dropCauses } from '../channels/ledger.ts'
import { channelNameProblem } from '../channels/names.ts'
import type { QueueStatus } from '../channels/queue-status.ts'
import type { Registry } from '../channels/registry.ts'
import type { Clock } from '../core/clock.ts'
import type { Fences } from '../metrics/fences.ts'
import type { Hub } from '../metrics/hub.ts'
import { RecordList } from '../metrics/measure.ts'
import type { Sensor, SensorStatus } from '../metrics/metric.ts'
import { channelIdOf, type FindChannel } from './bindings.ts'
import { channelsExposition, sensorsExposition, statsExposition } from './exposition.ts'
import type { ProducerView } from './sensor.ts'

const { ARRAY, BOOLEAN, DOUBLE, REC, STRING, UINT32, UINT64 } = BasicType

/** An entry of `producer.sensors`. */
export type StatusEntry = Pick<Sensor, 'owner' | 'status'>

/** What the hub knows of sensors. */
type SensorStates = Pick<Hub, 'fences' | 'faults'>

export function sensorsView(sensors: () => readonly StatusEntry[], { fences, faults }: SensorStates): ProducerView {
  return {
    metric: {
      name: 'producer.sensors',
      kind: 'continuous',
      type: ARRAY,
      unit: '',
      description: 'The sensors with their counters.',
      parameters: [],
      exposition: sensorsExposition,
    },
    show(identity) {
      const records = new RecordList()
      for (const sensor of sensors()) {
        const status = maySee(identity, sensor.owner) ? sensor.status?.() : undefined
        if (status && !records.add(describeStatus(fenced(sensor, faults.shown(sensor, status), fences)))) break
      }
      return records.value()
    },
  }
}

function fenced(sensor: StatusEntry, status: SensorStatus, fences: Fences): SensorStatus {
  if (!fences.knows(sensor)) return status
  const counters = { ...status.counters, keptOut: fences.discarded(sensor) }
  return { ...status, state: fences.has(sensor) ? 'fenced' : status.state, counters }
}

function describeStatus({ name, state, detail, counters }: SensorStatus): Field[] {
  const counts = Object.entries(counters).map(([counter, value]) => count(counter, value))
  return [
    { name: 'name', type: STRING, value: name },
    { name: 'state', type: STRING, value: state },
    { name: 'detail', type: STRING, value: detail },
    { name: 'counters', type: REC, value: counts },
  ]
}

/** A number that is no count, such as NaN, must not take the others away: it is shown as the nearest that is one, or as 0. */
function count(name: string, value: number): Field {
  const whole = value > 0 ? Math.round(Math.min(value, Number.MAX_SAFE_INTEGER)) : 0
  return { name, type: UINT64, value: BigInt(whole) }
}

export interface Stats {
  readonly software: string
  readonly name: string
  /** Names the history of transaction ids. */
  readonly generation: string
  readonly uptimeSeconds: number
  readonly connections: number
  readonly channels: number
  /** Bytes that are not yet in a durable transaction. */
  readonly unstoredBytes: number
  readonly residentBytes: number
  /** How long the event loop has worked since the start; the rest of the time it has waited. */
  readonly busySeconds: number
  /** `ok`, or `full` if the disk is full. */
  readonly storage: string
  /** Exceptions in the server's own code since the start, each of which cost its session, channel or sensor. */
  readonly faults: number
  /** Only for admins. */
  readonly admission?: {
    /** Connections that have not logged in, HTTP requests among them. */
    readonly unauthenticated: number
    /** Those that gave way to others so far. */
    readonly evicted: number
    /** Connections that found no place so far. */
    readonly refused: number
    /** Passwords that found no place in the queue of those to be checked so far. */
    readonly refusedPasswords: number
    /** Requests of GET /metrics that found no turn so far. */
    readonly refusedScrapes: number
    /** EXECUTEs that found no place to wait for approval so far. */
    readonly refusedApprovals: number
  }
  /** Only for admins: files and connections that are open, and how many may be; 0 if that is not known. */
  readonly files?: { readonly open: number; readonly max: number; readonly refused: number }
  /** Only for admins: names of lost channels that found no place, so that no GAP reports the losses. */
  readonly forgottenNames?: number
  /** Only for admins: the backup that is being made. */
  readonly backup?: BackupProgress
  /** Only for admins. */
  readonly server?: ServerFacts
}

interface ServerFacts {
  /** What it listens on, as `tcp://127.0.0.1:7650`. */
  readonly listeners: readonly string[]
  /** The file system with the data directory. */
  readonly disk: FileSystemSpace
  /** Values that were accepted into channels, and that were given to connections, since the start. */
  readonly accepted: number
  readonly sent: number
  /** The number of the newest record of the audit log. */
  readonly auditRecords: number
  /** Values that all channels have dropped in the last hour. */
  readonly drops: Drops
}

export interface StatsOptions {
  readonly software: string
  readonly name: string
  readonly generation: string
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly quotas: Quotas
  readonly registry: Pick<Registry, 'all' | 'count'>
  readonly names: { readonly forgotten: number }
  readonly sessions: {
    readonly count: number
    readonly admission: { readonly unauthenticated: number; readonly evicted: number; readonly refused: number }
  }
  readonly hasher: { readonly refused: number }
  readonly scrapes: { readonly refused: number }
  readonly host: { readonly unstored: number; readonly accepted: number; readonly sent: number }
  readonly storage: { readonly state: string }
  readonly backups: { readonly progress: BackupProgress | undefined }
  readonly faults: { readonly count: number }
  readonly approvals: { readonly refused: number }
  readonly audit: { readonly stored: number }
  readonly hourOfDrops: { readonly drops: Drops }
  readonly openFiles: { readonly open: number; readonly max: number | undefined; readonly refused: number }
  readonly listeners: () => readonly string[]
  readonly diskSpace: () => FileSystemSpace
}

const NO_BACKUP: BackupProgress = { copiedBytes: 0, totalBytes: 0 }

/** Returns the stats that a reader may see. The uptime counts from the call of this function. */
export function statsOf(server: StatsOptions): (reader: Pick<Identity, 'tenant' | 'role'>) => Stats {
  const { software, name, generation, clock, quotas, registry, names } = server
  const { sessions, hasher, scrapes, host, storage, backups, faults } = server
  const { approvals, audit, hourOfDrops, openFiles, listeners, diskSpace } = server
  const started = clock.monotonicMs()
  const ofTenant = (tenant: string) => ({
    connections: quotas.of(tenant).connections.used,
    channels: [...registry.all()].filter(({ owner }) => owner.tenant === tenant).length,
  })
  const ofAll = () => {
    const { unauthenticated, evicted, refused } = sessions.admission
    const refusals = { refusedPasswords: hasher.refused, refusedScrapes: scrapes.refused }
    const refusedApprovals = approvals.refused
    const admission = { unauthenticated, evicted, refused, ...refusals, refusedApprovals }
    const { accepted, sent } = host
    const { drops } = hourOfDrops
    const facts = { listeners: listeners(), disk: diskSpace(), accepted, sent, auditRecords: audit.stored, drops }
    return {
      connections: sessions.count,
      channels: registry.count,
      admission,
      files: { open: openFiles.open, max: openFiles.max ?? 0, refused: openFiles.refused },
      forgottenNames: names.forgotten,
      backup: backups.progress ?? NO_BACKUP,
      server: facts,
    }
  }
  return ({ tenant, role }) => ({
    software,
    name,
    generation,
    uptimeSeconds: (clock.monotonicMs() - started) / 1000,
    ...(role === ADMIN_ROLE ? ofAll() : ofTenant(tenant)),
    unstoredBytes: host.unstored,
    residentBytes: process.memoryUsage.rss(),
    busySeconds: performance.eventLoopUtilization().active / 1000,
    storage: storage.state,
    faults: faults.count,
  })
}

export function statsView(stats: (identity: Identity) => Stats): ProducerView {
  return {
    metric: {
      name: 'producer.stats',
      kind: 'continuous',
      type: REC,
      unit: '',
      description: 'The producer as a whole: uptime, connections, channels, storage.',
      parameters: [],
      exposition: statsExposition,
    },
    show(identity) {
      const stat = stats(identity)
      const { software, name, generation, uptimeSeconds, connections, channels, unstoredBytes, residentBytes } = stat
      const { busySeconds, storage, faults, admission, files, forgottenNames, backup, server } = stat
      return {
        type: REC,
        value: [
          { name: 'software', type: STRING, value: software },
          { name: 'name', type: STRING, value: name },
          { name: 'generation', type: STRING, value: generation },
          { name: 'uptime', type: DOUBLE, value: uptimeSeconds },
          count('connections', connections),
          count('channels', channels),
          count('unstored_bytes', unstoredBytes),
          count('resident_bytes', residentBytes),
          { name: 'busy', type: DOUBLE, value: busySeconds },
          { name: 'storage', type: STRING, value: storage },
          count('faults', faults),
          ...(admission === undefined
            ? []
            : [
                count('unauthenticated_connections', admission.unauthenticated),
                count('evicted_connections', admission.evicted),
                count('refused_connections', admission.refused),
                count('refused_passwords', admission.refusedPasswords),
                count('refused_scrapes', admission.refusedScrapes),
                count('refused_approvals', admission.refusedApprovals),
              ]),
          ...(files === undefined
            ? []
            : [
                count('open_files', files.open),
                count('max_open_files', files.max),
                count('refused_source_connections', files.refused),
              ]),
          ...(forgottenNames === undefined ? [] : [count('forgotten_names', forgottenNames)]),
          ...(backup === undefined
            ? []
            : [count('backup_copied_bytes', backup.copiedBytes), count('backup_total_bytes', backup.totalBytes)]),
          ...(server === undefined
            ? []
            : [
                {
                  name: 'listeners',
                  type: ARRAY,
                  value: { element: STRING, items: [...server.listeners] },
                } as const,
                count('disk_size_bytes', server.disk.sizeBytes),
                count('disk_free_bytes', server.disk.freeBytes),
                count('accepted_values', server.accepted),
                count('sent_values', server.sent),
                count('audit_records', server.auditRecords),
                {
                  name: 'dropped_last_hour',
                  type: REC,
                  value: dropCauses.map((cause) => count(cause, server.drops[cause])),
                } as const,
              ]),
        ],
      }
    },
  }
}

/** A record has at most this many bindings, so that a channel with very many hides no other; `producer.bindings` has all. */
const MAX_BINDINGS = 256

/**
 * Users see their own channels, the role admin sees all [MON 8 Ledger]. `channels` returns those that an identity may see, and
 * `find` one of them.
 */
export function channelsView(channels: (identity: Identity) => Iterable<Channel>, find: FindChannel): ProducerView {
  return {
    metric: {
      name: 'producer.channels',
      kind: 'continuous',
      type: ARRAY,
      unit: '',
      description: 'Your channels with their ledgers: accepted = committed + in flight + queued + dropped.',
      parameters: [
        {
          name: 'channel',
          type: STRING,
          description: 'Only this channel: its id, `0` for the current one, or its name.',
        },
        { name: 'after', type: UINT32, description: 'Only channels with a higher id.' },
      ],
      exposition: channelsExposition,
    },
    check(args) {
      const only = args.get('channel') as string | undefined
      if (only === undefined || channelNameProblem(only) === undefined) return
      channelIdOf(only)
    },
    *show(identity, args) {
      const only = args.get('channel') as string | undefined
      const after = (args.get('after') as number | undefined) ?? 0
      const shown: Channel[] = []
      // No name consists of digits.
      const isId = only !== undefined && /^\d+$/.test(only)
      for (const channel of isId ? [find(identity, Number(only))] : channels(identity)) {
        yield
        if (channel === undefined || channel.id <= after || !channel.isCoveredBy(identity.scope)) continue
        if (only === undefined || isId || channel.row.name === only) shown.push(channel)
      }
      const records = new RecordList()
      for (const channel of shown.sort((a, b) => a.id - b.id)) {
        yield
        if (channel.deleted) continue
        const status = yield* channel.queue.measure()
        if (!channel.deleted && !records.add(describe(channel, status))) break
      }
      return records.value()
    },
  }
}

function describe(channel: Channel, status: QueueStatus): Field[] {
  const { row } = channel
  const items: Field[][] = []
  for (const { instance, mode } of channel.bindings.values()) {
    if (items.length === MAX_BINDINGS) break
    items.push([
      { name: 'metric', type: UINT32, value: instance.id },
      { name: 'name', type: STRING, value: instance.selection.name },
      { name: 'mode', type: STRING, value: mode },
    ])
  }
  return [
    { name: 'channel', type: UINT32, value: channel.id },
    { name: 'identity', type: STRING, value: formatIdentity(channel.owner) },
    { name: 'name', type: STRING, value: row.name },
    { name: 'url', type: STRING, value: row.url },
    { name: 'state', type: STRING, value: channel.state },
    { name: 'durable', type: BOOLEAN, value: row.durable },
    count('accepted', status.accepted),
    count('committed', status.committed),
    count('in_flight', status.inFlight),
    count('queued', status.queued),
    count('queued_bytes', status.queuedBytes),
    count('stored', status.stored),
    count('unstored', status.unstored),
    count('gaps', status.gaps),
    count('oldest', status.oldest),
    { name: 'dropped', type: REC, value: dropCauses.map((cause) => count(cause, status.dropped[cause])) },
    { name: 'bindings', type: ARRAY, value: { element: REC, items } },
    { name: 'bound', type: UINT32, value: channel.bindings.size },
    { name: 'results', type: UINT32, value: channel.results.size },
    { name: 'window', type: UINT32, value: row.window },
    count('window_bytes', row.windowBytes),
    count('max_bytes', row.maxBytes),
    count('max_age_ms', row.maxAgeMs),
    count('expire_ms', row.expireMs),
    { name: 'overflow', type: STRING, value: row.overflow },
  ]
}
