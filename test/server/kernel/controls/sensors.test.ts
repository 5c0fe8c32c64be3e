/** `sensor.fence` and `sensor.resume`: whatever kind of sensor it is, its values are kept out, and that is reported. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { Hub } from '../../../../server/kernel/metrics/hub.ts'
import type { SensorStatus } from '../../../../server/kernel/metrics/metric.ts'
import { args, command, str, type } from '../../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import { numberOf, type Seat, type ValueMessage } from '../../../support/seat.ts'
import { PushSensor } from '../../../support/test-sensor.ts'

const INVALID_ARGUMENT = 6
const NO_SUCH_CONTROL = 10
const PERMISSION_DENIED = 11

/** A sensor of one's own that stands in `producer.sensors`. */
class OwnSensor extends PushSensor {
  values = 0

  constructor(hub: Hub, tenant = 'default') {
    super(hub, `${tenant}.`, { tenant })
  }

  status(): SensorStatus {
    return { name: this.family.slice(0, -1), state: 'listening', detail: '', counters: { values: this.values } }
  }

  take(value: number, name = `${this.family}a`): void {
    this.values++
    this.push(name, { type: BasicType.UINT32, value }, EPOCH + value)
  }
}

describe('a fenced sensor', () => {
  let producer: TestProducer
  let own: OwnSensor
  let root: Seat
  beforeEach(async () => {
    producer = await TestProducer.start()
    own = new OwnSensor(producer.server.parts.hub)
    await producer.addUser('root', { role: 'admin' })
    root = await producer.seat('root')
  })
  afterEach(() => producer.stop())

  const act = (control: string, sensor: string, of = root) =>
    of.execute(`sensor.${control}`, ['sensor', type.string, str(sensor)])
  const ask = (of: Seat, sensor: string) =>
    of.ask((seq) => command.execute(seq, 'sensor.fence', args(['sensor', type.string, str(sensor)])))
  async function values(id: number): Promise<(number | undefined)[]> {
    await producer.settle()
    const all = root.rest().flatMap((message): ValueMessage[] => (message.kind === 'value' ? [message] : []))
    return all
      .filter(({ metric }) => metric === id)
      .map((value) => (value.type === type.void ? undefined : numberOf(value)))
  }
  const shown = async (name: string): Promise<Json> =>
    decoded(await root.query('producer.sensors')).find((sensor: Json) => sensor.name === name)

  it('gives its series one VOID and then nothing, until it is let in again', async () => {
    own.take(1)
    const id = await root.follow('default.a')
    own.take(2)
    expect(await act('fence', 'default')).toMatchObject({ outcome: 'ok', detail: 'default is fenced' })
    own.take(3)
    own.take(4, 'default.b')
    expect(await values(id)).toEqual([2, undefined])
    expect(await act('resume', 'default')).toMatchObject({ outcome: 'ok', detail: 'default is resumed' })
    own.take(5)
    expect(await values(id)).toEqual([5])
  })

  it('is as if nothing came for GET and QUERY, and for whoever binds it meanwhile', async () => {
    own.take(1)
    await act('fence', 'default')
    own.take(2)
    expect((await root.query('default.a', args(['host', type.string, str('h1')]))).type).toBe(type.void)
    expect(decoded(await root.query('default.*'))).toEqual([])
    const id = await root.follow('default.a')
    own.take(3)
    expect(await values(id)).toEqual([])
    await act('resume', 'default')
    own.take(4)
    expect(await values(id)).toEqual([4])
  })

  it('that is measured is not measured: VOID once, and what is under way comes to nothing', async () => {
    const host = producer.server.parts.hub.sensors.find((sensor) => sensor.family === 'host.')
    let measured = 0
    if (host?.polled !== true) throw new Error('host is polled')
    const { measure } = host
    host.measure = (...given) => {
      measured++
      return measure.apply(host, given)
    }
    const id = await root.ok((seq) => command.collect(seq, 'host.load.one'))
    await root.ok((seq) => command.subscribe(seq, id))
    await root.value()
    await act('fence', 'host')
    const before = measured
    producer.clock.advance(5000)
    await producer.settle()
    const all = root.rest().flatMap((message) => (message.kind === 'value' ? [message.type] : []))
    expect([all, measured]).toEqual([[type.void], before])
    expect((await root.query('host.load.one')).type).toBe(type.void)
    await act('resume', 'host')
    producer.clock.advance(1000)
    expect((await root.value()).type).not.toBe(type.void)
    expect((await shown('host')).counters.keptOut).toBe(5)
  })

  it('is shown as such, with how much it kept out', async () => {
    own.take(1)
    await act('fence', 'default')
    own.take(2)
    own.take(3)
    expect(await shown('default')).toMatchObject({ state: 'fenced', counters: { keptOut: 2 } })
    await act('resume', 'default')
    own.take(4)
    expect(await shown('default')).toMatchObject({ state: 'listening', counters: { keptOut: 2 } })
  })

  it.each(['crash', 'restart'] as const)('stays fenced over a %s, and resumed', async (how) => {
    await act('fence', 'default')
    await act('fence', 'gmetric')
    await act('resume', 'gmetric')
    producer = await producer[how]()
    root = await producer.seat('root')
    own = new OwnSensor(producer.server.parts.hub)
    expect((await shown('default')).state).toBe('fenced')
    expect((await shown('gmetric')).state).not.toBe('fenced')
    const id = await root.follow('default.a')
    own.take(1)
    expect(await values(id)).toEqual([])
  })

  it('works for the feeds too', async () => {
    for (const name of ['gmetric', 'smon']) {
      await act('fence', name)
      expect((await shown(name)).state).toBe('fenced')
    }
  })

  it('said twice is no mistake', async () => {
    await act('fence', 'default')
    expect(await act('fence', 'default')).toMatchObject({ outcome: 'ok', detail: 'default is fenced already' })
    await act('resume', 'default')
    expect(await act('resume', 'default')).toMatchObject({ outcome: 'ok', detail: 'default is not fenced' })
  })

  it('is nobody’s without a rule; with one it is of the own tenant alone', async () => {
    new OwnSensor(producer.server.parts.hub, 'other')
    await producer.addUser('op', { role: 'operator' })
    const op = await producer.seat('op')
    expect((await ask(op, 'default')).status).toBe(NO_SUCH_CONTROL)
    const rule = { role: 'operator', command: 'EXECUTE', object: 'sensor.*' }
    await root.execute(
      'role.allow',
      ...Object.entries(rule).map(([name, text]) => [name, type.string, str(text)] as const),
    )
    const [foreign, absent] = [await ask(op, 'other'), await ask(op, 'othex')]
    expect([foreign.status, foreign.detail]).toEqual([INVALID_ARGUMENT, absent.detail.replace('othex', 'other')])
    expect((await ask(op, 'host')).status).toBe(PERMISSION_DENIED)
    expect((await act('fence', 'default', op)).outcome).toBe('ok')
  })
})
