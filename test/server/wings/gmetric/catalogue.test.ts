/** What several hosts say of one metric, as its one entry in the catalogue. */

import { expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { FakeHub, makeSensor, metadata, text } from './fixture.ts'

const { UINT32, DOUBLE } = BasicType
const [A, B] = ['192.0.2.1', '192.0.2.2']

function make() {
  const { sensor, clock } = makeSensor(new FakeHub())
  const say = (from: string, type: string, about: Parameters<typeof metadata>[3] = {}) => {
    sensor.packet(metadata('', 'foo', type, about), from)
    sensor.packet(text('', 'foo', '1'), from)
  }
  return { sensor, clock, say, entry: () => sensor.metric('gmetric.foo') }
}

test('there is one entry, however many hosts send it', () => {
  const { sensor, say } = make()
  say(A, 'uint32')
  say(B, 'uint32')
  expect([...sensor.metrics()].map(({ name }) => name)).toEqual(['gmetric.foo'])
  expect([...sensor.series('gmetric.foo')]).toHaveLength(2)
  expect([...sensor.series('gmetric.other')]).toEqual([])
})

test('type and unit are those of all, or none', () => {
  const { say, entry } = make()
  say(A, 'uint32', { units: 'B' })
  say(B, 'uint8', { units: 'B' })
  expect(entry()).toMatchObject({ type: UINT32, unit: 'B' })
  say(B, 'double', { units: 'KB' })
  expect(entry()).toMatchObject({ type: undefined, unit: '' })
  say(A, 'float', { units: 'KB' })
  expect(entry()).toMatchObject({ type: DOUBLE, unit: 'KB' })
})

test('who says nothing contradicts nobody', () => {
  const { sensor, say, entry } = make()
  say(A, 'uint32', { units: 'B' })
  sensor.packet(metadata('', 'foo', 'double'), B)
  expect(entry()).toMatchObject({ type: UINT32, unit: 'B' })
})

test('who goes takes along what it said', () => {
  const { sensor, clock, say, entry } = make()
  say(A, 'uint32', { units: 'B', extra: ['DESC', 'of A'] })
  say(B, 'double', { units: 'KB', dmax: 10, extra: ['DESC', 'of B'] })
  expect(entry()).toMatchObject({ type: undefined, unit: '', description: 'of A' })
  clock.advance(10_001)
  finish(sensor.sweep())
  expect(entry()).toMatchObject({ type: UINT32, unit: 'B', description: 'of A' })
})

test('the description is DESC, or else TITLE', () => {
  const { say, entry } = make()
  say(A, 'uint32', { extra: ['GROUP', 'g', 'TITLE', 'a title'] })
  expect(entry()?.description).toBe('a title')
  say(A, 'uint32', { extra: ['TITLE', 'a title', 'DESC', 'what it is'] })
  expect(entry()?.description).toBe('what it is')
  say(A, 'uint32')
  expect(entry()?.description).toBe('')
})

test('details are those of the first host that says any, in the words of Ganglia', () => {
  const { sensor, say, entry } = make()
  sensor.packet(text('', 'foo', '1'), A)
  expect(entry()?.details?.()).toEqual([])
  say(B, 'uint32', { dmax: 300, extra: ['TITLE', 'a title', 'GROUP', 'rooms', 'GROUP', 'cellar', 'GROUP', ''] })
  expect(
    entry()
      ?.details?.()
      .map(({ name, value }) => [name, value]),
  ).toEqual([
    ['title', 'a title'],
    ['groups', { element: BasicType.STRING, items: ['rooms', 'cellar'] }],
    ['slope', 'both'],
    ['tmax', 60],
    ['dmax', 300],
  ])
})
