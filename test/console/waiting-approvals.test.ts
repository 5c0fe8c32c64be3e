/** What a page knows of what waits for approval, and how it learns of a change. */
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { ConnectionError, type Consumer, type Handler, type PlainRecord, StatusError } from '../../client/browser.ts'
import { toDecide, WaitingApprovals } from '../../console/waiting-approvals.ts'

const DENIED = new StatusError('SUBSCRIBE', 3, 'no metric control.pending')

/** As `producer.approvals` has it [MON 9.23]. */
function recordOf(id: string, more: PlainRecord = {}): PlainRecord {
  return {
    id,
    control: 'exec.restart',
    args: { service: 'nginx.service', force: true },
    asker: 'olga',
    address: '127.0.0.1',
    role: 'lead',
    rule: 'rule 1: allow EXECUTE exec.restart if lead approves',
    asked: 1_700_000_000_000_000 + Number(id),
    until: 1_700_003_600_000_000,
    result: 7,
    digest: Uint8Array.of(0, 10, 255),
    dry_run: { outcome: 'dry-run', detail: 'checked', value: { exit: 0 } },
    own: false,
    ...more,
  }
}

/** A consumer whose server answers with pages, one after the other. */
class FakeConsumer {
  pages: (readonly PlainRecord[])[] = []
  followProblem: Error | undefined
  queryProblem: Error | undefined
  follows = 0
  readonly asked: unknown[] = []
  /** Ends the answer that is awaited; undefined if answers come at once. */
  held: (() => void)[] | undefined
  #handler: Handler = () => {}
  readonly #listeners = new Set<readonly [event: string, listener: (event: never) => void]>()

  on(event: string, listener: (event: never) => void): () => void {
    const added = [event, listener] as const
    this.#listeners.add(added)
    return () => this.#listeners.delete(added)
  }

  emit(event: string, about: unknown = {}): void {
    for (const [of, listener] of [...this.#listeners]) if (of === event) listener(about as never)
  }

  follow(metric: string, _: unknown, handler: Handler) {
    expect(metric).toBe('control.pending')
    if (this.followProblem) return Promise.reject(this.followProblem)
    this.follows++
    this.#handler = handler
    return Promise.resolve({ id: 7, stop: () => Promise.resolve() })
  }

  async query(metric: string, args: unknown) {
    expect(metric).toBe('producer.approvals')
    this.asked.push(args)
    const plain = this.pages.length > 1 ? this.pages.shift() : this.pages[0]
    if (this.held) await new Promise<void>((resolve) => this.held?.push(resolve))
    if (this.queryProblem) throw this.queryProblem
    return { plain }
  }

  give(record: PlainRecord): void {
    this.#handler({ plain: record, time: 1_700_000_001_000_000 } as never)
  }
}

describe('WaitingApprovals', () => {
  let consumer: FakeConsumer
  let approvals: WaitingApprovals

  beforeEach(() => {
    consumer = new FakeConsumer()
    consumer.pages = [[]]
    approvals = new WaitingApprovals(consumer as unknown as Consumer)
  })

  const ids = (): readonly string[] | undefined => approvals.waiting.value?.map(({ id }) => id)

  it('reads what waits, page by page, and tells what is one’s own', async () => {
    consumer.pages = [[recordOf('1'), recordOf('2', { own: true }), { more: true }], [recordOf('3')]]
    expect(approvals.waiting.value).toBeUndefined()
    await approvals.follow()
    expect(consumer.asked).toEqual([{}, { after: 1_700_000_000_000_002n }])
    expect(ids()).toEqual(['1', '2', '3'])
    expect(toDecide(approvals.waiting.value).map(({ id }) => id)).toEqual(['1', '3'])
    expect(approvals.waiting.value?.[0]).toEqual({
      id: '1',
      control: 'exec.restart',
      args: [
        ['service', 'nginx.service'],
        ['force', true],
      ],
      asker: 'olga',
      address: '127.0.0.1',
      role: 'lead',
      rule: 'rule 1: allow EXECUTE exec.restart if lead approves',
      asked: 1_700_000_000_000_001,
      until: 1_700_003_600_000_000,
      digest: '000aff',
      dryRun: { outcome: 'dry-run', detail: 'checked', value: { exit: 0 } },
      isOwn: false,
    })
  })

  it('knows when a dry run has not ended', async () => {
    const { dry_run: _, ...running } = recordOf('1')
    consumer.pages = [[running]]
    await approvals.follow()
    expect(approvals.waiting.value?.[0]?.dryRun).toBeUndefined()
  })

  it('reads again whenever something begins to wait or ends, and remembers the last ends', async () => {
    await approvals.follow()
    consumer.pages = [[recordOf('1')]]
    consumer.give({ state: 'waiting', ...recordOf('1') })
    await vi.waitFor(() => expect(ids()).toEqual(['1']))
    expect(approvals.ends.value).toEqual([])
    consumer.pages = [[]]
    consumer.give({ ...recordOf('1'), state: 'refused', by: 'luis', reason: 'not now' })
    await vi.waitFor(() => expect(ids()).toEqual([]))
    for (let id = 2; id <= 12; id++)
      consumer.give({ ...recordOf(String(id)), state: 'approved', by: 'luis', reason: '' })
    expect(approvals.ends.value.map(({ id }) => id)).toEqual(['12', '11', '10', '9', '8', '7', '6', '5', '4', '3'])
    expect(approvals.ends.value[0]).toEqual({
      id: '12',
      control: 'exec.restart',
      asker: 'olga',
      state: 'approved',
      by: 'luis',
      reason: '',
      time: 1_700_000_001_000_000,
    })
  })

  it('has one reading at a time, and one more after all changes meanwhile', async () => {
    await approvals.follow()
    consumer.held = []
    for (const id of ['1', '2', '3']) consumer.give({ state: 'waiting', ...recordOf(id) })
    await vi.waitFor(() => expect(consumer.held).toHaveLength(1))
    expect(consumer.asked).toHaveLength(2)
    const [first] = consumer.held
    consumer.held = undefined
    consumer.pages = [[recordOf('3')]]
    first?.()
    await vi.waitFor(() => expect(ids()).toEqual(['3']))
    expect(consumer.asked).toHaveLength(3)
  })

  it('reads again after its values were lost, and after a lost connection', async () => {
    await approvals.follow()
    consumer.emit('gap', { metric: 'host.load.one' })
    expect(consumer.asked).toHaveLength(1)
    consumer.pages = [[recordOf('1')]]
    consumer.emit('gap', { metric: 'control.pending' })
    await vi.waitFor(() => expect(ids()).toEqual(['1']))
    consumer.queryProblem = new ConnectionError('CLOSED', 'the connection was lost')
    consumer.emit('gap', { metric: '' })
    await vi.waitFor(() => expect(consumer.asked).toHaveLength(3))
    // The figures are those of before.
    expect(ids()).toEqual(['1'])
    consumer.queryProblem = undefined
    consumer.pages = [[]]
    consumer.emit('connected')
    await vi.waitFor(() => expect(ids()).toEqual([]))
    expect(consumer.follows).toBe(1)
    expect(approvals.refusal.value).toBeUndefined()
  })

  it('says what the server refuses, and tries again with the next connection', async () => {
    consumer.followProblem = DENIED
    await approvals.follow()
    expect(approvals.refusal.value).toMatchObject({ isByServer: true })
    expect(approvals.waiting.value).toBeUndefined()
    consumer.followProblem = undefined
    consumer.emit('connected')
    await vi.waitFor(() => expect(ids()).toEqual([]))
    expect(approvals.refusal.value).toBeUndefined()
  })
})
