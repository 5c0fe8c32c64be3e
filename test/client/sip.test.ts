import { expect, test } from 'vitest'
import { Sip } from '../../client/sip.ts'
import { FakeClock } from '../support/fake-clock.ts'

const KIB_256 = 256 * 1024

function sipping() {
  const clock = new FakeClock()
  const told: boolean[] = []
  return { clock, told, sip: new Sip(clock, (isSipping) => told.push(isSipping)) }
}

test('256 KiB are taken every 10 s while reading rests', () => {
  const { clock, told, sip } = sipping()
  sip.start()
  clock.advance(9_999)
  expect(told).toEqual([])
  clock.advance(1)
  expect(told).toEqual([true])
  sip.took(KIB_256 - 1)
  expect(told).toEqual([true])
  sip.took(1000)
  expect(told).toEqual([true, false])
  clock.advance(10_000)
  expect(told).toEqual([true, false, true])
})

test('a sip for which nothing came ends when the next begins', () => {
  const { clock, told, sip } = sipping()
  sip.start()
  clock.advance(20_000)
  expect(told).toEqual([true, false, true])
  sip.took(KIB_256)
  expect(told).toEqual([true, false, true, false])
})

test('what comes between sips is not counted', () => {
  const { clock, told, sip } = sipping()
  sip.start()
  sip.took(KIB_256)
  clock.advance(10_000)
  sip.took(1)
  expect(told).toEqual([true])
})

test('when reading goes on there is no sip any more, and no timer', () => {
  const { clock, told, sip } = sipping()
  sip.start()
  clock.advance(10_000)
  sip.stop()
  expect(told).toEqual([true, false])
  expect(clock.timers).toBe(0)
})
