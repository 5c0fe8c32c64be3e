/** `cluster.hand_over`: who may run it, when it is refused, and that its result comes before the connection ends. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, status, type, u32 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'
import { TestCluster } from '../../support/test-cluster.ts'

describe('cluster.hand_over', () => {
  let cluster: TestCluster
  let producer: TestProducer
  let boss: Seat
  beforeEach(async () => {
    cluster = new TestCluster()
    producer = await TestProducer.start({ cluster })
    await producer.addUser('boss', { role: 'admin' })
    boss = await producer.seat('boss')
  })
  afterEach(() => producer.stop())

  const ask = (seat: Seat, ...list: readonly Uint8Array[]) =>
    seat.ask((seq) => command.execute(seq, 'cluster.hand_over', ...list))

  it('answers, and then lets another node lead', async () => {
    expect((await ask(boss)).status).toBe(status.OK)
    expect(decoded(await boss.value())).toMatchObject({ outcome: 'ok', detail: expect.stringContaining('n1 stops') })
    expect(cluster.asked).toEqual([])
    producer.clock.advance(1_000)
    expect(cluster.asked).toEqual(['handOver'])
  })

  it('is refused if no other node could lead, with what keeps each from it', async () => {
    cluster.change('n2', { obstacle: 'its disk is full' })
    const { status: answered, detail } = await ask(boss)
    expect(answered).toBe(status.BUSY)
    expect(detail).toBe('no other node could lead now (n2: its disk is full; n3: not heard)')
    producer.clock.advance(1_000)
    expect(cluster.asked).toEqual([])
  })

  it('only checks in a dry run', async () => {
    await ask(boss, args(['dry_run', type.boolean, u32(1)]))
    expect(decoded(await boss.value())).toMatchObject({ outcome: 'dry-run' })
    producer.clock.advance(1_000)
    expect(cluster.asked).toEqual([])
  })

  it('does not exist for others, and not on a server that is in no cluster', async () => {
    expect((await ask(await producer.seat())).status).toBe(status.NO_SUCH_CONTROL)
    const single = await TestProducer.start()
    await single.addUser('boss', { role: 'admin' })
    expect((await ask(await single.seat('boss'))).status).toBe(status.NO_SUCH_CONTROL)
    await single.stop()
  })

  it('is logged if the node goes on leading', async () => {
    cluster.refusal = new Error('n2 did not take over')
    await ask(boss)
    await boss.value()
    producer.clock.advance(1_000)
    await producer.settle()
    expect(producer.logged.join('\n')).toMatch(/n2 did not take over.*the lead was not handed over/)
  })

  it('is not done any more by a server that has stopped meanwhile', async () => {
    await ask(boss)
    await boss.value()
    producer = await producer.restart(5_000)
    expect(cluster.asked).toEqual([])
  })
})
