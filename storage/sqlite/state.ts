/**
 * All tables but those of blocks, users, rights and the audit log. Rows that rarely change (channels, instances, bindings ...) are
 * objects; those of every batch (numbers of channels, GAPs, clocks) are taken directly from its arrays.
 */
import type { Database, Statement } from 'better-sqlite3'
import {
  type Batch,
  type BindingRow,
  CHANNEL_WIDTH,
  type Change,
  type ChannelRow,
  type DialRow,
  type ExecutionRow,
  GAP_WIDTH,
  type InstanceRow,
  type LostNameRow,
  type PlaceRow,
  type QmfAgentRow,
  type Recovered,
  type ResultRow,
  type StopRow,
  type UpstreamBindingRow,
  type UpstreamRow,
} from '../store.ts'
import type { AuditChange } from './audit.ts'
import { RowSum } from './damage/checksum.ts'
import { IS_KEPT, inOrder, type Ordered } from './damage/order.ts'
import { NumbersTable } from './numbers.ts'
import type { RemovalsChange } from './removals.ts'
import type { RightsChange } from './rights.ts'
import type { UsersChange } from './users.ts'
import { type StoredScram, scramColumns, scramOf } from './users.ts'

type ChannelFlag = 'defined' | 'configured' | 'durable' | 'paused'
type StoredChannel = Omit<ChannelRow, ChannelFlag> & Record<ChannelFlag, number>
interface StoredMeta {
  readonly age: number
  readonly wall: number
  readonly nextBlockId: number
  readonly nextUserId: number
  readonly nextRule: number
  readonly nextTokenId: number
  readonly secret: Uint8Array
  readonly generation: string
}
interface StoredDial extends StoredScram {
  readonly channel: number
  readonly bearer: Uint8Array | null
}
interface StoredExecution extends Omit<ExecutionRow, 'result'> {
  readonly result: Uint8Array | null
}
type Kept = Pick<
  Recovered,
  | 'channels'
  | 'lostNames'
  | 'instances'
  | 'bindings'
  | 'places'
  | 'upstreams'
  | 'upstreamBindings'
  | 'qmfAgent'
  | 'stops'
  | 'results'
  | 'dials'
  | 'executions'
  | 'fences'
>

/** A change of these tables. */
export type StateChange = Exclude<Change, UsersChange | RightsChange | AuditChange | RemovalsChange>

export const GAP_ORDER: Ordered = { table: 'gap', place: 'transaction_id', width: GAP_WIDTH }

export interface GapsFound {
  /** GAP_WIDTH numbers each, ascending by channel, lane, transaction, id. */
  readonly sound: Float64Array
  /** Rows that do not match their checksum. */
  readonly damaged: readonly number[][]
}

/** Tables with one row for each channel. */
const ONE_OF_CHANNEL = ['numbers', 'dial'] as const

/** A condition on rows of the tables that have several rows for a channel. */
const HAS_CHANNEL = "channel not in (select id from removal where subject = 'channel')"

export class StateTables {
  readonly numbers: NumbersTable
  readonly #database: Database
  readonly #putChannel: Statement<unknown[]>
  readonly #putLostName: Statement<unknown[]>
  readonly #putInstance: Statement<unknown[]>
  readonly #putBinding: Statement<unknown[]>
  readonly #putPlace: Statement<unknown[]>
  readonly #putUpstream: Statement<unknown[]>
  readonly #putUpstreamBinding: Statement<unknown[]>
  readonly #putQmfAgent: Statement<unknown[]>
  readonly #putStop: Statement<unknown[]>
  readonly #putResult: Statement<unknown[]>
  readonly #putDial: Statement<unknown[]>
  readonly #putExecution: Statement<unknown[]>
  readonly #putFence: Statement<unknown[]>
  readonly #putGap: Statement<unknown[]>
  readonly #removeChannel: readonly Statement<unknown[]>[]
  readonly #removeLostName: Statement<unknown[]>
  readonly #removeBinding: Statement<unknown[]>
  readonly #removePlace: Statement<unknown[]>
  readonly #removeUpstream: Statement<unknown[]>
  readonly #removeUpstreamBinding: Statement<unknown[]>
  readonly #removeStop: Statement<unknown[]>
  readonly #removeResult: Statement<unknown[]>
  readonly #removeFence: Statement<unknown[]>
  readonly #removeGap: Statement<unknown[]>
  readonly #putMeta: Statement<unknown[]>
  readonly #putRecovered: Statement<unknown[]>
  readonly #gaps: Statement<unknown[], number[]>
  readonly #setAsideGap: Statement<unknown[]>
  readonly #gapSum = new RowSum(GAP_WIDTH)

  constructor(database: Database) {
    const put = (table: string, values: string): Statement<unknown[]> =>
      database.prepare(`insert or replace into ${table} values (${values})`)
    this.#database = database
    this.numbers = new NumbersTable(database)
    this.#putChannel = put(
      'channel',
      `@id, @user, @url, @defined, @configured, @durable, @window, @windowBytes, @maxBytes,
      @maxAgeMs, @expireMs, @overflow, @origin, @lastUsed, @name, @paused`,
    )
    this.#putLostName = put('lost_name', '@user, @name, @reason')
    this.#putInstance = put('instance', '@id, @user, @metric, @args')
    this.#putBinding = put('binding', '@channel, @metric, @mode, @since')
    this.#putPlace = put('place', '@channel, @metric, @reached')
    this.#putUpstream = put('upstream', '@name, @generation, @channel, @reached')
    this.#putUpstreamBinding = put('upstream_binding', '@upstream, @generation, @channel, @metric, @selection')
    this.#putQmfAgent = put('qmf_agent', '1, @systemId, @boot, @banks')
    this.#putStop = put('stop', '@channel, @metric, @through')
    this.#putResult = put('result', '@id, @channel, @user, @control, @transaction')
    this.#putDial = put('dial', '@channel, @salt, @iterations, @storedKey, @serverKey, @bearer')
    this.#putExecution = put('execution', '@user, @control, @key, @digest, @at, @result')
    this.#putFence = put('fence', '@sensor')
    this.#putGap = put('gap', `${Array(GAP_WIDTH + 1).fill('?')}`)
    this.#removeChannel = [
      database.prepare('delete from channel where id = ?'),
      ...ONE_OF_CHANNEL.map((table) => database.prepare<unknown[]>(`delete from ${table} where channel = ?`)),
    ]
    this.#removeLostName = database.prepare('delete from lost_name where user = ? and name = ?')
    this.#removeBinding = database.prepare('delete from binding where channel = ? and metric = ?')
    this.#removePlace = database.prepare('delete from place where channel = ? and metric = ?')
    this.#removeUpstream = database.prepare('delete from upstream where name = ?')
    this.#removeUpstreamBinding = database.prepare('delete from upstream_binding where upstream = ? and metric = ?')
    this.#removeStop = database.prepare('delete from stop where channel = ? and metric = ?')
    this.#removeResult = database.prepare('delete from result where id = ?')
    this.#removeFence = database.prepare('delete from fence where sensor = ?')
    this.#removeGap = database.prepare('delete from gap where id = ?')
    this.#putMeta = database.prepare(
      'update meta set age = ?, wall = ?, closed = ?, next_block = max(next_block, ? + 1), progress = progress + ?',
    )
    this.#putRecovered = database.prepare('update meta set restored = 0')
    this.#gaps = database.prepare<unknown[], number[]>(`select * from gap not indexed where ${IS_KEPT}`).raw()
    this.#setAsideGap = database.prepare("insert or ignore into damaged values (?, 'checksum')")
  }

  /** The caller removes the other rows of a channel. */
  change(change: StateChange): void {
    if ('put' in change) this.#put(change)
    else this.#remove(change)
  }

  #put(change: Extract<StateChange, { put: unknown }>): void {
    switch (change.put) {
      case 'channel': {
        const { row } = change
        const [defined, configured, durable, paused] = [row.defined, row.configured, row.durable, row.paused].map(
          Number,
        )
        this.#putChannel.run({ ...row, defined, configured, durable, paused })
        this.numbers.putFirst(row.id, row.origin)
        return
      }
      case 'lost name':
        this.#putLostName.run(change.row)
        return
      case 'instance':
        this.#putInstance.run(change.row)
        return
      case 'binding':
        this.#putBinding.run(change.row)
        return
      case 'place':
        this.#putPlace.run(change.row)
        return
      case 'upstream':
        this.#putUpstream.run(change.row)
        return
      case 'upstream binding':
        this.#putUpstreamBinding.run(change.row)
        return
      case 'qmf agent':
        this.#putQmfAgent.run(change.row)
        return
      case 'stop':
        this.#putStop.run(change.row)
        return
      case 'result':
        this.#putResult.run(change.row)
        return
      case 'dial': {
        const { channel, scram, bearer = null } = change.row
        this.#putDial.run({ channel, ...scramColumns(scram), bearer })
        return
      }
      case 'execution':
        this.#putExecution.run({ ...change.row, result: change.row.result ?? null })
        return
      case 'fence':
        this.#putFence.run(change.row)
        return
      case 'recovered':
        this.#putRecovered.run()
        return
      case 'closed':
        return
    }
  }

  #remove(change: Extract<StateChange, { remove: unknown }>): void {
    switch (change.remove) {
      case 'channel':
        for (const statement of this.#removeChannel) statement.run(change.id)
        return
      case 'lost name':
        this.#removeLostName.run(change.user, change.name)
        return
      case 'binding':
        this.#removeBinding.run(change.channel, change.metric)
        this.#removePlace.run(change.channel, change.metric)
        return
      case 'upstream':
        this.#removeUpstream.run(change.name)
        return
      case 'upstream binding':
        this.#removeUpstreamBinding.run(change.upstream, change.metric)
        return
      case 'stop':
        this.#removeStop.run(change.channel, change.metric)
        return
      case 'result':
        this.#removeResult.run(change.id)
        return
      case 'fence':
        this.#removeFence.run(change.sensor)
        return
    }
  }

  /** Stores numbers, GAPs and clocks of a batch. `highest` is the highest block id in it. */
  store(batch: Batch, highest: number): void {
    const { channels, gaps, gapsRemoved, age, wall } = batch
    for (let at = 0; at < channels.length; at += CHANNEL_WIDTH) this.numbers.put(channels, at)
    for (let at = 0; at < gaps.length; at += GAP_WIDTH) {
      this.#putGap.run(...gaps.subarray(at, at + GAP_WIDTH), this.#gapSum.of(gaps, at))
      highest = Math.max(highest, gaps[at]!)
    }
    for (const id of gapsRemoved) this.#removeGap.run(id)
    this.#putMeta.run(age, wall, Number(closes(batch)), highest, Number(isProgress(batch)))
  }

  recover(): Kept & StoredMeta {
    const above = (table: string): string => `coalesce((select max(id) from ${table}), 0) + 1`
    const meta = this.#database.prepare<unknown[], StoredMeta>(`
      select age, wall, max(next_block, ${above('block')}, ${above('gap')}) as nextBlockId,
        next_user as nextUserId, next_rule as nextRule, next_token as nextTokenId, secret, generation
      from meta`)
    const channels = this.#all<StoredChannel>(`
      select id, user, url, defined, configured, durable, window, window_bytes as windowBytes, max_bytes as maxBytes,
        max_age_ms as maxAgeMs, expire_ms as expireMs, overflow, origin, last_used as lastUsed,
        name, paused
      from channel order by id`)
    return {
      ...meta.get()!,
      channels: channels.map((row) => ({
        ...row,
        defined: row.defined === 1,
        configured: row.configured === 1,
        durable: row.durable === 1,
        paused: row.paused === 1,
      })),
      lostNames: this.#all<LostNameRow>('select user, name, reason from lost_name order by rowid'),
      instances: this.#all<InstanceRow>('select * from instance order by id'),
      bindings: this.#all<BindingRow>(`select * from binding where ${HAS_CHANNEL} order by channel, metric`),
      places: this.#all<PlaceRow>(`select * from place where ${HAS_CHANNEL} order by channel, metric`),
      upstreams: this.#all<UpstreamRow>('select * from upstream order by name'),
      upstreamBindings: this.#all<UpstreamBindingRow>('select * from upstream_binding order by upstream, metric'),
      qmfAgent: this.#all<QmfAgentRow>('select system_id as systemId, boot, banks from qmf_agent')[0],
      stops: this.#all<StopRow>(`select * from stop where ${HAS_CHANNEL} order by channel, metric`),
      results: this.#all<ResultRow>(
        `select id, channel, user, control, transaction_id as "transaction" from result where ${HAS_CHANNEL} order by id`,
      ),
      dials: this.#all<StoredDial>('select * from dial order by channel').flatMap(dialOf),
      executions: this.#all<StoredExecution>(`
        select * from execution where user not in (select id from removal where subject = 'user')
        order by at, user, control, key`).map((row) => ({ ...row, result: row.result ?? undefined })),
      fences: this.#all<{ sensor: string }>('select sensor from fence order by sensor').map(({ sensor }) => sensor),
    }
  }

  /** Reads all GAPs that are kept. */
  gaps(): GapsFound {
    const rows = this.#gaps.all()
    const sound = rows.filter((row) => this.#gapSum.isRight(row)).flatMap((row) => row.slice(0, GAP_WIDTH))
    const damaged = rows.filter((row) => !this.#gapSum.isRight(row))
    return { sound: inOrder(Float64Array.from(sound), GAP_ORDER), damaged }
  }

  /** GAP ids and block ids are one sequence, so one table holds those set aside. */
  setAsideGaps(ids: readonly number[]): void {
    for (const id of ids) this.#setAsideGap.run(id)
  }

  #all<Row>(sql: string): Row[] {
    return this.#database.prepare<unknown[], Row>(sql).all()
  }
}

function closes({ changes }: Batch): boolean {
  return changes.some((change) => 'put' in change && change.put === 'closed')
}

/** Whether a database without this batch must not go on as if it had it. */
export function isProgress(batch: Batch): boolean {
  return batch.reserves || closes(batch)
}

/** A verifier of which a part is missing is no row without one, which would let in whoever has a certificate. */
function dialOf({ channel, bearer, ...stored }: StoredDial): DialRow[] {
  const scram = scramOf(stored)
  const isWhole = scram !== undefined || Object.values(stored).every((column) => column === null)
  return isWhole ? [{ channel, scram, ...(bearer !== null && { bearer }) }] : []
}
