/** What a page reads of the audit log, and what the hashes say of it. They come from the server's own code, not the page's. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ConnectionError, type Consumer, type Handler, StatusError } from '../../client/browser.ts'
import { AuditLog, type AuditRecord } from '../../console/audit-log.ts'
import { hashOf, NO_HASH } from '../../server/kernel/accounts/audit/record.ts'

/** A consumer whose server has a log. */
class FakeConsumer {
  /** Undefined for somebody who does not see every record. */
  newest: number | undefined
  problem: Error | undefined
  /** The numbers after which the log was read, and how many readings were stopped. */
  readonly afters: number[] = []
  stops = 0
  #handler: Handler = () => {}
  readonly #listeners = new Map<string, (event: unknown) => void>()

  on(event: string, listener: (event: never) => void): () => void {
    this.#listeners.set(event, listener as (event: unknown) => void)
    return () => {}
  }

  connect(): void {
    this.#listeners.get('connected')?.({})
  }

  query() {
    return Promise.resolve({ plain: this.newest === undefined ? {} : { audit_records: this.newest } })
  }

  follow(_: string, { after }: { readonly after: number }, handler: Handler) {
    if (this.problem) return Promise.reject(this.problem)
    this.afters.push(after)
    this.#handler = handler
    return Promise.resolve({ id: 7, stop: () => Promise.resolve(this.stops++) })
  }

  give(...records: readonly AuditRecord[]): readonly unknown[] {
    return records.map((plain) => this.#handler({ plain } as never))
  }

  lose(metric: string): void {
    this.#listeners.get('gap')?.({ metric })
  }
}

function logOf(count: number): AuditRecord[] {
  const records: AuditRecord[] = []
  for (let number = 1; number <= count; number++) {
    const texts = {
      actor: 'ann',
      tenant: 'default',
      address: '::1',
      object: 'é',
      args: '{}',
      outcome: 'ok',
      detail: '',
    }
    const record = { number, time: 1_700_000_000_000_000 + number, action: 'execute', ...texts }
    records.push({ ...record, hash: hashOf(record, records.at(-1)?.hash ?? NO_HASH) })
  }
  return records
}

describe('AuditLog', () => {
  const frames: (() => void)[] = []
  let consumer: FakeConsumer

  beforeEach(() => {
    frames.length = 0
    vi.stubGlobal('requestAnimationFrame', (draw: () => void) => frames.push(draw))
    consumer = new FakeConsumer()
  })
  afterEach(() => vi.unstubAllGlobals())

  async function open(newest: number | undefined, isWhole = false): Promise<AuditLog> {
    consumer.newest = newest
    const log = new AuditLog(consumer as unknown as Consumer, isWhole)
    await log.begin()
    return log
  }

  /** The state when everything that was given has been judged, up to a record or to a fault. */
  async function judged(log: AuditLog, verified: number) {
    return await vi.waitFor(() => {
      for (const draw of frames.splice(0)) draw()
      const state = log.state.value
      if (state === undefined || (state.verified !== verified && state.broken === '')) throw new Error('not yet')
      return state
    })
  }

  it('finds a log whole whose hashes follow from each other, newest first', async () => {
    const log = await open(5)
    consumer.give(...logOf(5))
    const { records, broken, first, last } = await judged(log, 5)
    expect({ numbers: records.map(({ number }) => number), broken, first, last }).toEqual({
      numbers: [5, 4, 3, 2, 1],
      broken: '',
      first: 1,
      last: 5,
    })
  })

  it.each<[string, (records: AuditRecord[]) => AuditRecord[], string]>([
    [
      'a changed text',
      (records) => records.with(2, { ...(records[2] as AuditRecord), actor: 'eve' }),
      'Record 3 does not match',
    ],
    [
      'a changed first record',
      (records) => records.with(0, { ...(records[0] as AuditRecord), time: 1 }),
      'Record 1 does not match',
    ],
    ['missing records', (records) => records.toSpliced(2, 2), 'Records 3 to 4 are missing'],
  ])('names %s', async (_, change, problem) => {
    const log = await open(6)
    consumer.give(...change(logOf(6)))
    expect((await judged(log, 6)).broken).toContain(problem)
  })

  it('begins with the last thousand, whose first one it cannot judge, or with all', async () => {
    const log = await open(1_002)
    expect(consumer.afters).toEqual([2])
    consumer.give(...logOf(4).slice(2))
    expect(await judged(log, 4)).toMatchObject({ first: 3, verified: 4, broken: '' })
    await open(1_002, true)
    expect(consumer.afters).toEqual([2, 0])
  })

  it('reads again from where values were lost on the way, and takes no record twice', async () => {
    const all = logOf(6)
    const log = await open(6)
    consumer.give(...all.slice(0, 2))
    consumer.lose('host.load.one')
    expect(consumer.stops).toBe(0)
    consumer.lose('producer.audit')
    // It was on its way.
    consumer.give(all[4] as AuditRecord)
    await vi.waitFor(() => expect(consumer.afters).toEqual([0, 2]))
    consumer.give(...all.slice(2))
    // A connection that was made again binds what was bound.
    consumer.give(...all)
    const { records, broken } = await judged(log, 6)
    expect([records.map(({ number }) => number), broken]).toEqual([[6, 5, 4, 3, 2, 1], ''])
  })

  it('goes on from the last record when a lost connection ended the reading after a gap', async () => {
    const all = logOf(4)
    const log = await open(4)
    consumer.give(...all.slice(0, 2))
    consumer.problem = new ConnectionError('CLOSED', 'the connection was lost')
    consumer.lose('')
    await vi.waitFor(() => expect(consumer.stops).toBe(1))
    consumer.problem = undefined
    await vi.waitFor(() => {
      consumer.connect()
      expect(consumer.afters).toEqual([0, 2])
    })
    consumer.connect()
    consumer.give(...all.slice(2))
    expect(await judged(log, 4)).toMatchObject({ first: 1, last: 4, broken: '', refusal: undefined })
    expect(consumer.afters).toEqual([0, 2])
  })

  it('opens when there is a connection again', async () => {
    consumer.problem = new ConnectionError('CLOSED', 'the connection was lost')
    const log = await open(1)
    expect(log.state.value).toBeUndefined()
    consumer.problem = undefined
    consumer.connect()
    await vi.waitFor(() => expect(consumer.afters).toEqual([0]))
    consumer.give(...logOf(1))
    expect((await judged(log, 1)).broken).toBe('')
  })

  it('lets the reading wait for the verification now and then', async () => {
    await open(2_000)
    const given = consumer.give(...logOf(2_000))
    expect(given.filter((wait) => wait instanceof Promise)).toHaveLength(2)
    await given.at(-1)
  })

  it('judges nothing for those who do not see every record', async () => {
    const log = await open(undefined)
    const [one, , three] = logOf(3)
    consumer.give(one as AuditRecord, three as AuditRecord)
    expect(await judged(log, 0)).toMatchObject({ newest: undefined, verified: 0, broken: '' })
  })

  it('says why nothing can be read', async () => {
    consumer.problem = new StatusError('SUBSCRIBE', 3, '')
    expect((await open(undefined)).state.value?.refusal).toMatchObject({ isByServer: true })
    consumer.problem = new Error('no memory is left')
    expect((await open(undefined)).state.value?.refusal).toEqual({ reason: 'No memory is left.', isByServer: false })
  })
})
