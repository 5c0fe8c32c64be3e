/**
 * The state that survives comes back: channels with their queues, metric instances, bindings, results that were to come.
 * Order matters: instances before bindings, blocks before GAPs.
 */

import type { Identity } from '../../auth/permissions.ts'
import { XdrReader } from '../../protocol/bytes/reader.ts'
import { readArguments } from '../../protocol/monitor/arguments.ts'
import { BLOCK_WIDTH, type DialRow, GAP_WIDTH, type InstanceRow, type Recovered } from '../../storage/store.ts'
import { instanceRow } from '../kernel/channels/bindings.ts'
import type { Block } from '../kernel/channels/block.ts'
import type { Channel } from '../kernel/channels/channel.ts'
import { numberRows } from '../kernel/channels/registry.ts'
import type { DialProof } from '../kernel/commands/services.ts'
import { StatusError } from '../kernel/core/errors.ts'
import { SERVER_TENANT, type Steps } from '../kernel/core/fair-work.ts'
import type { MetricInstance } from '../kernel/metrics/instance.ts'
import type { Notices } from '../kernel/producer/notices.ts'
import type { Producer } from './compose.ts'

/** Names of metrics that a notice shows. */
const MAX_NAMED = 10

interface RecoveredBindings {
  readonly matched: Promise<void>[]
  /** The names of metrics that are bound and not there, by the id of the user. */
  readonly absent: Map<number, Set<string>>
}

/** Nobody else is served yet. */
const EVERYBODY = { tenant: SERVER_TENANT }

export async function recoverState(
  recovered: Recovered,
  producer: Producer,
  notices: Pick<Notices, 'emit'>,
): Promise<void> {
  const channels = recoverChannels(recovered, producer)
  const { matched, absent } = await producer.work.run(EVERYBODY, recoverBindings(recovered, producer, channels))
  await Promise.all(matched)
  const dials = new Map(recovered.dials.map((row) => [row.channel, row]))
  for (const channel of channels.values()) {
    if (channel.row.url !== '') producer.dialler.watch(channel, proofIn(dials.get(channel.id)))
  }
  for (const { channel, metric, through } of recovered.stops) channels.get(channel)?.queue.restoreStop(metric, through)
  recoverResults(recovered, producer, channels)
  producer.executor.recover()
  // Rules may have changed in the last moment before the process died.
  await producer.rightsRevocation.reapply()
  const read = (block: Block): Promise<Uint8Array | undefined> => producer.registry.read(block)
  for (const { bindings, queue } of channels.values()) {
    await queue.restoreSeries(read, (metric) => {
      const selection = bindings.get(metric)?.instance.selection
      if (selection === undefined) return false
      return selection.isAbsent || selection.hasUnknownLabels ? undefined : selection.carriesLabels()
    })
  }
  for (const [user, names] of absent) {
    const some = [...names].slice(0, MAX_NAMED).join(', ')
    const detail = `not there since the start, and bound: ${some}${names.size > MAX_NAMED ? ' and others' : ''}`
    notices.emit({ severity: 'warning', subject: 'metrics', detail }, user)
  }
}

/** Only a row without a verifier means that there is no secret. */
function proofIn(row: DialRow | undefined): DialProof | undefined {
  if (row === undefined) return undefined
  return row.bearer === undefined ? (row.scram ?? 'certificate') : { bearer: row.bearer }
}

function recoverChannels(recovered: Recovered, { registry, accounts, journal, log }: Producer): Map<number, Channel> {
  const rows = numberRows(recovered.numbers)
  const channels = new Map<number, Channel>()
  const floors = new Map<number, number>()
  const clean = new Map<Channel, boolean>()
  for (const row of recovered.channels) {
    const owner = accounts.identityOf(row.user)
    if (owner === undefined) {
      const { id, user } = row
      log.warn(
        { channel: id, user, values: storedOf(recovered, id) },
        'a channel was removed: its user is not in the database',
      )
      journal.change({ remove: 'channel', id })
      continue
    }
    const channel = registry.restore(row, owner)
    channels.set(row.id, channel)
    const numbers = rows.get(row.id)
    if (numbers === undefined) continue
    const restored = channel.queue.restoreNumbers(recovered.numbers, numbers)
    floors.set(row.id, restored.floor)
    clean.set(channel, restored.clean)
  }
  const { blocks, gaps, settled } = recovered
  for (let row = 0; row * BLOCK_WIDTH < blocks.length; row++) {
    const id = blocks[row * BLOCK_WIDTH] as number
    const channel = blocks[row * BLOCK_WIDTH + 1] as number
    channels.get(channel)?.queue.restoreBlock(blocks, row, floors.get(channel) ?? 0, settled.get(id))
  }
  for (let row = 0; row * GAP_WIDTH < gaps.length; row++) {
    channels.get(gaps[row * GAP_WIDTH + 1] as number)?.queue.restoreGap(gaps, row)
  }
  // The ids that a restored database skips make each end unclean.
  const reason = recovered.restored ? 'restored' : 'restart'
  for (const [channel, wasClean] of clean) channel.queue.recovered(wasClean, reason)
  for (const channel of channels.values()) registry.reportLoss(channel)
  return channels
}

/** The values in the blocks of a channel, some of which may be committed. */
function storedOf({ blocks }: Recovered, channel: number): number {
  let values = 0
  for (let at = 0; at < blocks.length; at += BLOCK_WIDTH) {
    if (blocks[at + 1] === channel) values += blocks[at + 4] as number
  }
  return values
}

/** In steps: there may be a million, and health checks want to be answered. */
function* recoverBindings(
  recovered: Recovered,
  producer: Producer,
  channels: Map<number, Channel>,
): Steps<RecoveredBindings> {
  const rows = new Map(recovered.instances.map((row) => [row.id, row]))
  const places = new Map(recovered.places.map(({ channel, metric, reached }) => [`${channel} ${metric}`, reached]))
  const instances = new Map<number, MetricInstance>()
  const matched: Promise<void>[] = []
  const absent = new Map<number, Set<string>>()
  for (const binding of recovered.bindings) {
    yield
    const { channel: id, metric } = binding
    const channel = channels.get(id)
    const row = rows.get(metric)
    if (channel === undefined) continue
    const instance = instances.get(metric) ?? (row && (yield* recoverInstance(row, channel.owner, producer, absent)))
    if (instance === undefined) {
      producer.journal.change({ remove: 'binding', channel: id, metric })
      continue
    }
    instances.set(metric, instance)
    const matching = producer.bindings.restore(instance, channel, binding, places.get(`${id} ${metric}`))
    if (matching !== undefined) matched.push(matching)
  }
  for (const id of rows.keys()) if (!instances.has(id)) producer.journal.change({ remove: 'instance', id })
  return { matched, absent }
}

function* recoverInstance(
  { id, metric, args }: InstanceRow,
  owner: Identity,
  producer: Producer,
  absent: RecoveredBindings['absent'],
): Steps<MetricInstance> {
  const list = readArguments(new XdrReader(args))
  try {
    const instance = yield* producer.instances.restore(id, owner, metric, list)
    // It was made without a cluster, and means the host of this node from now on.
    if (instance.selection.args.length > list.length) {
      producer.journal.change({ put: 'instance', row: instanceRow(instance) })
    }
    return instance
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    // A plug-in that fails at one start may be back at the next.
    const names = absent.get(owner.userId) ?? new Set()
    absent.set(owner.userId, names)
    if (!names.has(metric)) {
      const { name, tenant } = owner
      const message = 'a metric that is bound is not there: it has no values until a start at which it is back'
      producer.log.warn({ metric, user: name, tenant, detail: error.message }, message)
    }
    names.add(metric)
    return yield* producer.instances.restoreAbsent(id, owner, metric, list)
  }
}

function recoverResults(recovered: Recovered, producer: Producer, channels: Map<number, Channel>): void {
  for (const { id, channel: channelId, user, control, transaction } of recovered.results) {
    const channel = channels.get(channelId)
    if (channel === undefined) continue
    producer.ids.claim(id)
    if (transaction === 0) {
      producer.executor.announced(id, control, user, channel)
    } else if (channel.queue.restoreResult(transaction)) {
      channel.results.add(id)
    } else {
      producer.journal.change({ remove: 'result', id })
    }
  }
}
