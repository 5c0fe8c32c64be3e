import { expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { FakeHub, makeSensor, metadata, SENDER, text } from './fixture.ts'

const { BOOLEAN, UINT32 } = BasicType

function make() {
  const made = makeSensor(new FakeHub())
  const { sensor, clock, hub } = made
  const after = (ms: number): string[] => {
    clock.advance(ms)
    finish(sensor.sweep())
    return hub.news().filter((line) => line.includes('ganglia.'))
  }
  return { ...made, after }
}

test('a host is up with its first packet, down after four times host_tmax of silence, and up again', () => {
  const { sensor, after } = make()
  sensor.packet(text('10.0.0.9:web1', 'foo', '1'), SENDER)
  expect(after(0)).toEqual([
    'born ganglia.host.up@web1',
    'ganglia.host.up@web1 = true',
    'born ganglia.host.late@web1',
    'ganglia.host.late@web1 = 0',
  ])
  expect(after(80_000)).toEqual(['ganglia.host.late@web1 = 1'])
  expect(after(1)).toEqual(['ganglia.host.up@web1 = false'])
  expect(after(1000)).toEqual([])
  sensor.packet(text('10.0.0.9:web1', 'heartbeat', '5'), SENDER)
  expect(after(0)).toEqual(['ganglia.host.up@web1 = true'])
})

test('a metric is late when its value is older than its tmax, whatever its metadata says since', () => {
  const { sensor, after } = make()
  sensor.packet(metadata('', 'foo', 'uint8', { tmax: 30 }), SENDER)
  sensor.packet(text('', 'foo', '1'), SENDER)
  expect(after(30_000)).toContain(`ganglia.host.late@${SENDER} = 0`)
  sensor.packet(metadata('', 'foo', 'uint8', { tmax: 30 }), SENDER)
  expect(after(1)).toEqual([`ganglia.host.late@${SENDER} = 1`])
  sensor.packet(text('', 'foo', '1'), SENDER)
  expect(after(0)).toEqual([`ganglia.host.late@${SENDER} = 0`])
})

test('a host that is forgotten dies, one that is renamed goes on under its new name', () => {
  const { sensor, after } = make()
  sensor.packet(text('10.0.0.9:web1', 'foo', '1'), SENDER)
  after(0)
  sensor.packet(text('10.0.0.9:web2', 'foo', '1'), SENDER)
  expect(after(0)).toEqual([
    'died ganglia.host.up@web1',
    'died ganglia.host.late@web1',
    'born ganglia.host.up@web2',
    'ganglia.host.up@web2 = true',
    'born ganglia.host.late@web2',
    'ganglia.host.late@web2 = 0',
  ])
  expect(after(86_400_001)).toEqual(['died ganglia.host.up@web2', 'died ganglia.host.late@web2'])
  expect([...sensor.liveness.series()]).toEqual([])
})

test('the two metrics are there before any host is, and others are not', () => {
  const { liveness } = make().sensor
  expect([...liveness.metrics()].map(({ name, type }) => [name, type])).toEqual([
    ['ganglia.host.up', BOOLEAN],
    ['ganglia.host.late', UINT32],
  ])
  expect(liveness.metric('ganglia.host.down')).toBeUndefined()
})

test('asked, it tells of the last second, by address and by name', () => {
  const { sensor, after } = make()
  sensor.packet(text('10.0.0.9:web1', 'foo', '1'), SENDER)
  after(1000)
  const [up] = sensor.liveness.series('ganglia.host.up')
  expect(up && sensor.liveness.last(up)).toMatchObject({ value: { type: BOOLEAN, value: true } })
  for (const name of ['web1', '10.0.0.9']) expect(up?.matches('host', (host) => host === name)).toBe(true)
  expect(up?.matches('source', () => true)).toBe(false)
})

test('fenced with the sensor whose hosts they are, it tells nothing until that goes on', () => {
  const { sensor, fenced, after } = make()
  sensor.packet(text('10.0.0.9:web1', 'foo', '1'), SENDER)
  after(0)
  const [up] = sensor.liveness.series('ganglia.host.up')
  fenced.add(sensor)
  expect(up && sensor.liveness.last(up)).toBeUndefined()
  expect(after(1000)).toEqual(['died ganglia.host.up@web1', 'died ganglia.host.late@web1'])
  sensor.packet(text('10.0.0.8:web2', 'foo', '1'), SENDER)
  expect(after(100_000)).toEqual([])
  expect([...sensor.liveness.series()]).toEqual([])
  fenced.delete(sensor)
  expect(after(0)).toEqual(
    ['web1', 'web2'].flatMap((host) => [
      `born ganglia.host.up@${host}`,
      `ganglia.host.up@${host} = false`,
      `born ganglia.host.late@${host}`,
      `ganglia.host.late@${host} = 1`,
    ]),
  )
})
