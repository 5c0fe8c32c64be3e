/** Section 10: a channel whose results are not committed takes no further EXECUTE, and loses none of those that it has. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { ok } from '../../../server/kernel/controls/control.ts'
import { Results } from '../../../server/kernel/controls/results.ts'
import { args, command, str, type, u32 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'

const QUOTA_EXCEEDED = 16
const LARGE = 1024 * 512

describe('results that are not committed', () => {
  let producer: TestProducer
  let seat: Seat
  let channel: number
  beforeEach(async () => {
    producer = await TestProducer.start({})
    await producer.addUser('root', { role: 'admin' })
    producer.server.parts.producer.executor.add([
      {
        name: 'test.large',
        description: 'A large result.',
        parameters: [],
        prepare: () => () => ok('', { type: BasicType.STRING, value: 'x'.repeat(LARGE) }),
      },
    ])
    seat = await producer.seat('root')
    channel = await seat.defChannel()
    await seat.setChannel(channel)
  })
  afterEach(() => producer.stop())

  const shown = async (): Promise<unknown> => {
    const ledger: Record<string, unknown> = await seat.ledger(channel)
    return ledger['results']
  }
  /** What an EXECUTE that is only checked is answered. */
  const tried = () =>
    seat.ask((seq) =>
      command.execute(
        seq,
        'channel.configure',
        args(['channel', type.uint32, u32(channel)], ['dry_run', type.boolean, u32(1)]),
      ),
    )

  it('have 16 MiB at most, whatever the control and whoever asks, also after a restart', async () => {
    for (let i = 0; i < 32; i++) await seat.ok((seq) => command.execute(seq, 'test.large'))
    await producer.settle()
    expect(await tried()).toMatchObject({ status: QUOTA_EXCEEDED, detail: expect.stringContaining('bytes of results') })
    expect(await shown()).toBe(32)
    producer = await producer.restart()
    seat = await producer.seat('root')
    // Another channel is not concerned.
    expect((await tried()).status).toBe(0)
    await seat.value()
    await seat.setChannel(channel)
    expect((await tried()).status).toBe(QUOTA_EXCEEDED)

    await seat.commit((await seat.value()).transaction)
    expect((await tried()).status).toBe(0)
    // STOP of a result id drops the result, and makes room as well.
    const stopped = await seat.value()
    await seat.ok((seq) => command.stop(seq, stopped.metric))
    expect((await tried()).status).toBe(0)
    // Those that were accepted have all come, and those of the two checks.
    for (let i = 0; i < 30 + 2; i++) await seat.commit((await seat.value()).transaction)
    expect(await shown()).toBe(0)
  })

  it('are 10,000 at most, those that are to come among them', () => {
    const { producer: parts } = producer.server.parts
    const results = new Results(parts)
    const [of] = [...producer.server.parts.producer.registry.all()].filter(({ id }) => id === channel)
    if (of === undefined) throw new Error('the channel is gone')
    for (let id = 1; id < 10_000; id++) of.results.add(-id)
    expect(() => results.needsRoom(of)).not.toThrow()
    of.results.add(0)
    expect(() => results.needsRoom(of)).toThrow(
      `channel ${channel}: 10000 results are not committed and 10000 are allowed; COMMIT them, or STOP their result ids`,
    )
    of.results.clear()
  })

  it('of a repeated key have outlived a crash if their announcement has, before the response is sent', async () => {
    const key = args(['idempotency_key', type.string, str('done')])
    await seat.ok((seq) => command.execute(seq, 'test.large', key))
    await seat.value()
    producer.store.manual = true
    seat.send((seq) => command.execute(seq, 'test.large', key))
    await producer.settle()
    producer.store.complete()
    producer = await producer.crash()
    seat = await producer.seat('root')
    await seat.setChannel(channel)
    await producer.settle()
    const outcomes = seat.rest().flatMap((message) => (message.kind === 'value' ? [decoded(message).outcome] : []))
    // The first one is not committed.
    expect(outcomes).toEqual(['ok', 'ok'])
  })
})
